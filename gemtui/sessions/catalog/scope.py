"""Select the sessions for a command: those of the whole store, or of one folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from gemtui.errors import SessionAmbiguous, SessionNotFound, StoreUnreadable
from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.resolve import LATEST
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.store.repositories import ProjectFolders
from gemtui.sessions.store.store import SessionKind, StoreState

_COPIES = frozenset({Flag.GHOST, Flag.DUPLICATE})


def read_store(index: Index, *, project: Path | None = None) -> Snapshot:
    """Return a snapshot of all sessions in the store.

    `project`: the folder whose sessions are wanted; sessions stored under the hash of its path are
    assigned to it. Raises StoreUnreadable if none of the store can be read.
    """
    if project is not None:
        index.expect(project)
    snapshot = index.load(publish=lambda _: None, cancelled=lambda: False)
    if snapshot.state is StoreState.UNREADABLE:
        raise StoreUnreadable(
            f"{index.home} can't be read: give yourself permission to read the folder", path=index.home
        )
    if snapshot.state is StoreState.NO_FOLDER:
        place = snapshot.unreadable[0].path
        raise StoreUnreadable(
            f"{place} is not a folder: move it away, because Gemini CLI stores sessions there", path=place
        )
    return snapshot


def listed_sessions(snapshot: Snapshot, *, project: Path | None, hidden: bool) -> Iterator[Summary]:
    """Yield the sessions of the folder `project` and its worktrees, newest first.

    If `project` is None, sessions of all folders are yielded. `hidden`: also yield sessions that
    lists hide, and each session's copies after it.
    """
    folders = None if project is None else ProjectFolders(project)
    for summary in snapshot.sessions:
        inside = folders is None or summary.project in folders
        if inside and (hidden or not summary.hidden):
            yield summary
            yield from summary.copies if hidden else ()


def sessions_with_calls(
    snapshot: Snapshot, *, session: Summary | None = None, project: Path | None = None
) -> tuple[Summary, ...]:
    """Return the sessions with tool calls, newest first, each before its subagents.

    `session`: return only this session and its subagents. `project`: return only sessions of this
    folder. Ghosts (empty files left by a resume), copies, and checkpoints are left out, because
    they repeat other files. Subagents are included, because policies apply to them; those whose
    parent session isn't listed come last.
    """
    subagents: dict[str | None, list[Summary]] = {}
    for each in filter(_is_subagent, snapshot.sessions):
        subagents.setdefault(each.parent, []).append(each)
    if session is not None:
        return (session, *subagents.get(session.id, ()))
    found: list[Summary] = []
    for each in listed_sessions(snapshot, project=project, hidden=False):
        if each.tool_calls or each.partial:
            found += (each, *subagents.pop(each.id, ()))
    folders = None if project is None else ProjectFolders(project)
    rest = (each for left in subagents.values() for each in left)
    return (*found, *(each for each in rest if folders is None or each.project in folders))


def _is_subagent(session: Summary) -> bool:
    return session.kind is SessionKind.SUBAGENT and _COPIES.isdisjoint(session.flags)


def find_session(index: Index, wanted: str, *, project: Path | None, here: Path | None) -> Summary:
    """Return the session for a full id, a unique prefix, a file's path, or `latest`.

    `project`: consider only this folder's sessions. If it is None, `latest` means the newest
    session of the folder `here`, or of all folders if `here` is None or has no sessions; and if
    several sessions have the same id, the one in `here` is chosen. Raises SessionNotFound,
    SessionAmbiguous, or StoreUnreadable.
    """
    if project is not None or here is None:
        return index.find(wanted, project=project)
    if wanted == LATEST:
        with suppress(SessionNotFound):
            return index.find(wanted, project=here)
    try:
        return index.find(wanted)
    except SessionAmbiguous:
        with suppress(SessionNotFound, SessionAmbiguous):
            mine = index.find(wanted, project=here)
            if mine.id == wanted:
                return mine
        raise
