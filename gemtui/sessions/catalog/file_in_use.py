"""One session from all of its files: which files belong together, and which one is in use.

The CLI leaves several files for a session: a migration copies every session, and a resume leaves
behind a frozen `.json` file or a ghost (an empty file with the session's id). The newest file with
any content is the one in use, and the others are its copies. Sessions that share only the first
eight characters of their ids are different sessions. So are sessions in two projects that were
given the same id (`--session-id nightly`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.catalog.vault_files import place_in_store
from gemtui.sessions.store.projects import Projects, is_hash, path_hash
from gemtui.sessions.store.shelf import agent_of_key
from gemtui.sessions.store.store import SessionKind

LIVE_FOR = timedelta(minutes=1)
_NEVER = datetime.min.replace(tzinfo=UTC)

Identity = tuple[SessionKind, str, str]
"""A key that is equal for all files of one session."""


def identity(kind: SessionKind, id: str, project_key: str) -> Identity:
    """Return a key that is equal for all files of a session.

    It consists of the kind, the full id, and the agent or, for checkpoints, the store's folder.
    Sessions of different projects may also have equal keys; `apart` separates them.
    """
    return kind, id, project_key if kind is SessionKind.CHECKPOINT else agent_of_key(project_key)


def identity_of(summary: Summary) -> Identity:
    """Return the `identity` key of a summary's session."""
    return identity(summary.kind, summary.id, summary.project_key)


def apart(files: Collection[Summary], projects: Projects) -> list[Collection[Summary]]:
    """Separate files with equal `identity` keys into groups, one for each session.

    Files in the same folder belong to one session. So do files of the same project, because
    migrated copies keep the hash of the project's path. If only one project is named among the
    files, a file that names none belongs to it.
    """
    if len(files) == 1:
        return [files]
    above: dict[str, str] = {}

    def top(mark: str) -> str:
        """Return the mark that represents this mark's group, as in a union-find."""
        while above.setdefault(mark, mark) != mark:
            above[mark] = mark = above[above[mark]]
        return mark

    marked: list[tuple[Summary, str, str]] = []
    for number, file in enumerate(files):
        project_hash = _project_hash(file, projects)
        mark = file.project_key or project_hash or f"#{number}"
        above[top(project_hash or mark)] = top(mark)
        marked.append((file, mark, project_hash))
    if len({top(mark) for _, mark, project_hash in marked if project_hash}) <= 1:
        return [files]
    groups: dict[str, list[Summary]] = {}
    for file, mark, _ in marked:
        groups.setdefault(top(mark), []).append(file)
    return [*groups.values()]


def _project_hash(file: Summary, projects: Projects) -> str:
    """Return the hash of a file's project path, or "" if it is unknown.

    The hash comes from the session's header, the name of its folder, or the known projects.
    """
    if file.project_hash is not None or is_hash(file.project_key):
        return file.project_hash or file.project_key
    root = projects.root_of(file.project_key)
    return "" if root is None else path_hash(root)


def is_live(file: Summary, now: datetime) -> bool:
    """Return whether a session has been written to within the last minute.

    Both the file's modification time and the session's own last update must be recent, because the
    file may just have been copied. Future times don't count. Sessions read only in part, and files
    in the vault (gemtui's archive of sessions), are never live.
    """
    if file.partial or Flag.KEPT in file.flags or not timedelta() <= now - file.modified < LIVE_FOR:
        return False
    return file.updated is None or file.modified - file.updated < LIVE_FOR


def merged(files: Collection[Summary], projects: Projects, now: datetime) -> Summary:
    """Return the summary of the session in `files`, a group returned by `apart`.

    It is the summary of the highest-ranked file (`_rank`); the other files are its copies. Its
    project is the first one that any of the files names.
    """
    ranked = files if len(files) == 1 else _undamaged_first(sorted(files, key=_rank, reverse=True))
    first, *others = ranked
    project = _project(ranked, projects)
    flags = first.flags | {Flag.LIVE} if is_live(first, now) else first.flags
    if not others:
        return replace(first, project=project, flags=flags)
    return replace(
        first,
        project=project,
        names=tuple(name for session in (first, *others) for name in session.names),
        copies=tuple(_copy(other, first, project) for other in others),
        flags=flags,
    )


def with_busy_parents(sessions: Sequence[Summary]) -> Iterator[Summary]:
    """Yield all sessions, marking those that are waiting for a live subagent as live.

    The call of a subagent is stored only when the call ends. Until then, the parent session's file
    doesn't change, so by its own file alone, the parent would not seem to be live.
    """
    busy: dict[str, datetime] = {}
    for session in sessions:
        if session.parent and session.started and Flag.LIVE in session.flags:
            busy[session.parent] = max(session.started, busy.get(session.parent, session.started))
    for session in sessions:
        begun = busy.get(session.id)
        if begun is not None and session.updated is not None and session.updated <= begun:
            yield replace(session, flags=session.flags | {Flag.LIVE}, waits=True)
        else:
            yield session


def _rank(summary: Summary) -> tuple[bool, bool, datetime, int, bool, bool, datetime, str]:
    """Return a sort key that ranks the file in use highest.

    If all else is equal, the CLI's own file ranks above a copy in the vault (gemtui's archive), and
    a file in a folder named by a slug ranks above one in a folder named by a hash.
    """
    return (
        summary.spoken > 0,
        Flag.EMPTY not in summary.flags,
        summary.when if summary.partial else summary.updated or _NEVER,
        summary.spoken,
        Flag.KEPT not in summary.flags,
        not is_hash(summary.project_key),
        summary.modified,
        summary.name,
    )


def supersedes(file: Summary, other: Summary) -> bool:
    """Return whether a session file is undamaged and newer than another version of it.

    It may lack messages of that version nevertheless, because Gemini CLI rewrites legacy files, for
    example after a rewind, and can create a log anew (assets/gemini-cli.md#growth).
    """
    intact = file.has_header and file.resumable and not file.problems and not file.partial
    return intact and (file.updated or _NEVER) > (other.updated or _NEVER)


def _undamaged_first(ranked: list[Summary]) -> list[Summary]:
    """Move the vault's version of the first file to the front if that file was damaged.

    The vault lists a version only if the file does not begin with it. Unless Gemini CLI has written
    the file anew, it was then damaged. A version with fewer messages stays behind it.
    """
    first = ranked[0]
    for at, session in enumerate(ranked):
        saved = Flag.KEPT in session.flags and Flag.KEPT not in first.flags
        fuller = session.spoken >= first.spoken and not supersedes(first, session)
        if saved and fuller and place_in_store(session.path) == first.path:
            return [session, *ranked[:at], *ranked[at + 1 :]]
    return ranked


def _project(files: Iterable[Summary], projects: Projects) -> str | None:
    for file in files:
        root = projects.root_of(file.project_key, file.project_hash)
        if root is not None:
            return root
    return None


def _copy(summary: Summary, session: Summary, project: str | None) -> Summary:
    flags = summary.flags | {Flag.DUPLICATE}
    if summary.spoken == 0 and session.spoken > 0:
        flags = (flags - {Flag.EMPTY}) | {Flag.GHOST}
    return replace(summary, flags=flags, project=project)
