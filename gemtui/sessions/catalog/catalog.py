"""The catalog of a store's sessions: which files belong to one, and which of them is in use.

The CLI leaves several files for a session: a migration copies every session, and a resume leaves
behind a frozen `.json` file or a ghost (an empty file with the session's id). The newest file with
any content is the one in use, and the others are its copies. Sessions that share only the first
eight characters of their ids are different sessions. So are sessions in two projects that were
given the same id (`--session-id nightly`).

Only the sessions affected by a change are merged again. All others remain the same objects, so that
a list can detect changes by identity.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.catalog.vault_files import place_in_store
from gemtui.sessions.store.projects import Projects, ancestors, is_hash, path_hash
from gemtui.sessions.store.store import Problem, SessionKind, StoreState

# --- one session ---------------------------------------------------------------------------------


LIVE_FOR = timedelta(minutes=1)
_NEVER = datetime.min.replace(tzinfo=UTC)

Identity = tuple[SessionKind, str, str]
"""A key that is equal for all files of one session."""


def identity(kind: SessionKind, id: str, project_key: str) -> Identity:
    """Return a key that is equal for all files of a session.

    It consists of the kind, the full id and, for checkpoints, also the store's folder. Sessions of
    different projects may also have equal keys; `apart` separates them.
    """
    return kind, id, project_key if kind is SessionKind.CHECKPOINT else ""


def _identity(summary: Summary) -> Identity:
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
        names=tuple(name for each in (first, *others) for name in each.names),
        copies=tuple(_copy(other, first, project) for other in others),
        flags=flags,
    )


def with_busy_parents(sessions: Sequence[Summary]) -> Iterator[Summary]:
    """Yield all sessions, marking those that are waiting for a live subagent as live.

    The call of a subagent is stored only when the call ends. Until then, the parent session's file
    doesn't change, so by its own file alone, the parent would not seem to be live.
    """
    busy: dict[str, datetime] = {}
    for each in sessions:
        if each.parent and each.started and Flag.LIVE in each.flags:
            busy[each.parent] = max(each.started, busy.get(each.parent, each.started))
    for each in sessions:
        begun = busy.get(each.id)
        if begun is not None and each.updated is not None and each.updated <= begun:
            yield replace(each, flags=each.flags | {Flag.LIVE}, waits=True)
        else:
            yield each


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
    for at, each in enumerate(ranked):
        saved = Flag.KEPT in each.flags and Flag.KEPT not in first.flags
        fuller = each.spoken >= first.spoken and not supersedes(first, each)
        if saved and fuller and place_in_store(each.path) == first.path:
            return [each, *ranked[:at], *ranked[at + 1 :]]
    return ranked


def _project(files: Iterable[Summary], projects: Projects) -> str | None:
    for file in files:
        if (root := projects.root_of(file.project_key, file.project_hash)) is not None:
            return root
    return None


def _copy(summary: Summary, session: Summary, project: str | None) -> Summary:
    flags = summary.flags | {Flag.DUPLICATE}
    if summary.spoken == 0 and session.spoken > 0:
        flags = (flags - {Flag.EMPTY}) | {Flag.GHOST}
    return replace(summary, flags=flags, project=project)


# --- all sessions --------------------------------------------------------------------------------


Stamp = tuple[int, ...]


class Catalog:
    """The summaries of session files, merged into sessions. Not thread-safe."""

    def __init__(self, projects: Projects) -> None:
        self._projects = projects
        self._files: dict[str, tuple[Stamp, Summary]] = {}
        self._groups: dict[Identity, dict[str, Summary]] = {}
        self._sessions: dict[Identity, tuple[Summary, ...]] = {}
        self._changed: set[Identity] = set()
        self._homeless: set[Identity] = set()
        self._live: set[Identity] = set()
        self._partial: set[str] = set()
        self._listed: tuple[Summary, ...] | None = ()

    def __len__(self) -> int:
        return len(self._files)

    @property
    def whole(self) -> bool:
        """Whether every file in the catalog has been read to its end."""
        return not self._partial

    def use(self, projects: Projects) -> None:
        """Replace the mapping to projects, and determine every session's project again."""
        self._projects = projects
        for _, summary in self._files.values():
            self._learn(summary)
        self._changed |= self._groups.keys()

    def learn(self, paths: Iterable[str]) -> None:
        """Add absolute paths that may be the folders of projects known only by a hash.

        Old sessions name their project only by the hash of its path. If a path in `paths` has that
        hash, it is the project's folder.
        """
        if self._projects.learn(paths):
            self._changed |= self._homeless

    def knows(self, path: str, stamp: Stamp, *, whole: bool) -> bool:
        """Return whether the catalog has the summary of a file in its current state.

        `stamp`: the file's current state. `whole`: accept only a summary for which the whole file
        was read, not just its beginning.
        """
        known = self._files.get(path)
        return known is not None and known[0] == stamp and not (whole and known[1].partial)

    def file(self, path: str) -> Summary | None:
        """Return one file's own summary, before merging; None if it isn't in the catalog."""
        known = self._files.get(path)
        return None if known is None else known[1]

    def put(self, stamp: Stamp, summary: Summary) -> None:
        """Add one file's summary, replacing any earlier one.

        `stamp`: the state of the file when it was read (`ChatFile.stamp`).
        """
        path, key = summary.name, _identity(summary)
        before = self._files.get(path)
        if before is not None and _identity(before[1]) != key:
            self.drop(path)
        self._files[path] = stamp, summary
        self._groups.setdefault(key, {})[path] = summary
        self._changed.add(key)
        (self._partial.add if summary.partial else self._partial.discard)(path)
        self._learn(summary)

    def drop(self, path: str) -> None:
        """Remove the entry for a file that no longer exists."""
        known = self._files.pop(path, None)
        self._partial.discard(path)
        if known is not None:
            self._groups[_identity(known[1])].pop(path)
            self._changed.add(_identity(known[1]))

    def drop_all_but(self, paths: Container[str]) -> None:
        """Remove every entry except the ones for these files; nothing on disk is deleted."""
        for path in [each for each in self._files if each not in paths]:
            self.drop(path)

    def sessions(self, now: datetime) -> tuple[Summary, ...]:
        """Return all sessions, newest first; each one lists its copies.

        `now`: the current time, which determines the sessions that are live.
        """
        self._merge(now)
        if self._listed is None:
            sessions = [*chain.from_iterable(self._sessions.values())]
            self._listed = newest_first(with_busy_parents(sessions))
        return self._listed

    def sessions_of(self, paths: Iterable[str], now: datetime) -> tuple[Summary, ...]:
        """Return the sessions that these files belong to, newest first.

        Files that are not in the catalog are ignored.
        """
        self._merge(now)
        known = [each[1] for path in paths if (each := self._files.get(path)) is not None]
        files = {summary.name for summary in known}
        sessions = chain.from_iterable(self._sessions[key] for key in set(map(_identity, known)))
        return newest_first(each for each in sessions if not files.isdisjoint(each.names))

    def _learn(self, summary: Summary) -> None:
        """Add a session's paths as candidates for projects known only by a hash.

        If such a hash equals that of a path, the path is the project's folder.
        """
        paths = list(summary.directories)
        if is_hash(summary.project_key) and self._projects.root_of(summary.project_key) is None:
            paths += ancestors(summary.files_written)
        if paths:
            self.learn(paths)

    def _merge(self, now: datetime) -> None:
        self._changed |= {key for key in self._live if not self._still_live(key, now)}
        if not self._changed:
            return
        for key in self._changed:
            self._merge_one(key, now)
        self._changed.clear()

    def _merge_one(self, key: Identity, now: datetime) -> None:
        self._live.discard(key)
        self._homeless.discard(key)
        files = self._groups.get(key)
        before = self._sessions.pop(key, ())
        if not files:
            self._groups.pop(key, None)
            self._listed = None
            return
        groups = apart(files.values(), self._projects)
        sessions = tuple([merged(group, self._projects, now) for group in groups])
        if before:
            old = {each.name: each for each in before}
            sessions = tuple([_same(old.get(each.name), each) for each in sessions])
        if sessions != before:
            self._listed = None
        self._sessions[key] = sessions
        for each in sessions:
            if Flag.LIVE in each.flags:
                self._live.add(key)
            if each.project is None:
                self._homeless.add(key)

    def _still_live(self, key: Identity, now: datetime) -> bool:
        live = [each for each in self._sessions.get(key, ()) if Flag.LIVE in each.flags]
        return all(is_live(each, now) for each in live)


def _same(before: Summary | None, now: Summary) -> Summary:
    """Return the earlier object if it equals `now`, else `now`.

    Lists compare by identity, so an equal object must not count as a change.
    """
    return before if before is not None and before == now else now


def newest_first(sessions: Iterable[Summary]) -> tuple[Summary, ...]:
    """Return sessions in the default sort order of lists, newest first."""
    return tuple(sorted(sessions, key=lambda each: (each.when, each.id, each.name), reverse=True))


class Snapshot(Struct, frozen=True, kw_only=True):
    """The known sessions of a store at one moment.

    `sessions`: newest first, including hidden ones (`Summary.hidden`); a session's other files are
    its `copies`. `done`: how many of the `total` files are known. `complete`: whether all files
    have been read to the end. `unreadable`: files without a readable session, and folders that
    can't be accessed. `looked`: the locations that were searched. `cache`: why there is no cache,
    or None. `renewed`: why the cache was replaced, or None.
    """

    sessions: tuple[Summary, ...]
    done: int
    total: int
    complete: bool
    unreadable: tuple[Problem, ...]
    state: StoreState
    looked: tuple[Path, ...] = ()
    cache: Problem | None = None
    renewed: Problem | None = None
