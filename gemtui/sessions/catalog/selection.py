"""Choose a command's sessions: the one that an argument names, or those of a project.

The functions decide about files and summaries that `Index` has read. So they know no index.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from gemtui import system
from gemtui.agents import Agent
from gemtui.errors import SessionAmbiguous, SessionNotFound, StoreUnreadable
from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.store.projects import ProjectFolders
from gemtui.sessions.store.store import ChatFile, Problem, SessionKind, Store, StoreState

LATEST = "latest"
"""The argument that names the newest session in place of an id."""
_SHORT = 8
_PEEK = 4096
_UPDATED = rb'"lastUpdated"\s*:\s*"([^"]{1,40})"'


def is_path(wanted: str) -> bool:
    """Return whether an argument names a file rather than an id."""
    return "/" in wanted or wanted.endswith((".json", ".jsonl"))


def split_agent(wanted: str) -> tuple[Agent | None, str]:
    """Return the agent and the id that an argument such as `claude:ID` names."""
    name, colon, id = wanted.partition(":")
    return (Agent(name), id) if colon and name in list(Agent) else (None, wanted)


def newest_files_first(places: Iterable[ChatFile]) -> list[ChatFile]:
    """Return files by modification time, newest first."""
    return sorted(places, key=lambda place: place.mtime_ns, reverse=True)


def name_fits(place: ChatFile, wanted: str) -> bool:
    """Return whether a file's name is compatible with this session id or prefix.

    The name of a main session's file contains only the first eight characters of its id, so a file
    whose name fits may still contain a different session.
    """
    if place.kind is SessionKind.MAIN:
        return not place.name_id or place.name_id.startswith(wanted[:_SHORT])
    return place.path.stem.startswith(wanted)


def newest_session(
    files: Iterator[tuple[float, ChatFile]],
    *,
    read: Callable[[Sequence[ChatFile]], Sequence[Summary]],
    accept: Callable[[Summary], bool],
) -> Summary | None:
    """Return the session that was updated last, ignoring those that lists hide.

    `files`: main sessions' files, each with the latest time, in seconds since the epoch, at which
    its session may have been updated; the newest come first. They are read in batches of 1, 2, 4,
    and so on. Reading stops at the first file that can't be newer than the newest session found so
    far.
    """
    best: Summary | None = None
    count = 1
    while True:
        some = list(islice(files, count))
        if not some or (best is not None and some[0][0] <= best.when.timestamp()):
            return best
        listed = [
            session
            for session in read([place for _, place in some])
            if not session.hidden and accept(session)
        ]
        best = max([*listed, *([best] if best else [])], key=lambda each: each.when, default=None)
        count *= 2


def latest_update(place: ChatFile) -> float:
    """Return the latest of a file's modification time and the updates recorded in it.

    The result is in seconds since 1970. Only both ends of the file are read, because a log records
    its last update at the end and a legacy file at the beginning. The modification time alone may
    be wrong, for example after restoring a backup or a git checkout.
    """
    moments = [moment for text in re.findall(_UPDATED, _ends(place)) if (moment := _moment(text))]
    return max([place.mtime_ns / 1e9, *moments])


def _moment(text: bytes) -> float | None:
    from gemtui.transcript.parts import instant

    time = instant(text.decode("ascii", "replace"))
    return None if time is None else time.timestamp()


def _ends(place: ChatFile) -> bytes:
    """Return the first and last bytes of a file; b"" if the file can't be read."""
    try:
        handle = os.open(place.name, os.O_RDONLY | system.OWN | system.AT_ONCE)
    except OSError:
        return b""
    try:
        starts = sorted({0, max(0, place.size - _PEEK)})
        return b"\n".join(_piece(handle, start) for start in starts)
    except OSError:
        return b""
    finally:
        os.close(handle)


def _piece(handle: int, start: int) -> bytes:
    os.lseek(handle, start, os.SEEK_SET)
    return os.read(handle, _PEEK)


def with_id_prefix(sessions: Iterable[Summary], wanted: str) -> list[Summary]:
    """Return the sessions whose id begins with `wanted`.

    If an id equals `wanted`, only the sessions with that id are returned.
    """
    matching = [session for session in sessions if wanted and session.id.startswith(wanted)]
    return [session for session in matching if session.id == wanted] or matching


def the_one(found: Sequence[Summary], wanted: str, store: Store) -> Summary:
    """Return the only session found; hidden ones count only if no other was found.

    `wanted`: the id or prefix that was searched, for the error message. Raises SessionNotFound or
    SessionAmbiguous.
    """
    choice = [session for session in found if not session.hidden] or found
    if not choice:
        what = (
            f"no session has the id {wanted}: list all sessions with gemtui sessions --everywhere"
        )
        raise SessionNotFound(what, searched=store.looked)
    if len(choice) == 1:
        return choice[0]
    same = all(session.id == wanted for session in choice)
    message = (
        f"{len(choice)} projects have a session {wanted}: give its project or its file"
        if same
        else f"{len(choice)} sessions have an id that starts with {wanted}: give more characters"
    )
    ids = Counter(session.id for session in choice)
    names = (session.id if ids[session.id] == 1 else session.name for session in choice)
    raise SessionAmbiguous(message, candidates=tuple(names))


def nothing_stored(store: Store, project: Path | None) -> SessionNotFound:
    """Return the error to raise if there is no session in the store or the project."""
    if project is not None:
        what = f"no sessions of {project}: list all sessions with gemtui sessions --everywhere"
    else:
        what = f"no sessions in {store.tmp} yet: Gemini CLI stores them there once you use it"
    return SessionNotFound(what, searched=store.looked)


def require_readable(home: Path, state: StoreState, problems: Sequence[Problem]) -> None:
    """Raise StoreUnreadable if the store exists but none of it can be read.

    `state`, `problems`: of the store in `home`, as in a Snapshot.
    """
    if state is StoreState.UNREADABLE:
        raise StoreUnreadable(
            f"{home} can't be read: give yourself permission to read the folder", path=home
        )
    if state is StoreState.NO_FOLDER:
        path = problems[0].path
        raise StoreUnreadable(
            f"{path} is not a folder: move it away, because Gemini CLI stores sessions there",
            path=path,
        )


# --- several sessions ---------------------------------------------------------------------------


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
    snapshot: Snapshot,
    *,
    session: Summary | None = None,
    project: Path | None = None,
) -> tuple[Summary, ...]:
    """Return the sessions with tool calls, newest first, each before its subagents.

    `session`: return only this session and its subagents. `project`: return only sessions of this
    folder. Ghosts (empty files left by a resume), copies, and checkpoints are left out, because
    they repeat other files. Subagents are included, because policies apply to them; those whose
    parent session isn't listed come last.
    """
    subagents: dict[str | None, list[Summary]] = {}
    for listed in snapshot.sessions:
        if listed.kind is SessionKind.SUBAGENT and not listed.is_copy:
            subagents.setdefault(listed.parent, []).append(listed)
    if session is not None:
        return (session, *subagents.get(session.id, ()))
    mains: list[Summary] = []
    for listed in listed_sessions(snapshot, project=project, hidden=False):
        if listed.tool_calls or listed.partial:
            mains += (listed, *subagents.pop(listed.id, ()))
    folders = None if project is None else ProjectFolders(project)
    rest = (subagent for left in subagents.values() for subagent in left)
    return (
        *mains,
        *(subagent for subagent in rest if folders is None or subagent.project in folders),
    )
