"""The catalog of a store's sessions, kept up to date file by file.

Only the sessions affected by a change are merged again. All others remain the same objects, so that
a list can detect changes by identity.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from datetime import datetime
from itertools import chain
from pathlib import Path

from msgspec import Struct

from gemtui.sessions.catalog.file_in_use import (
    Identity,
    apart,
    identity_of,
    is_live,
    merged,
    with_busy_parents,
)
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.store.projects import Projects, ancestors, is_hash
from gemtui.sessions.store.store import Problem, StoreState

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
        read = self._files.get(path)
        return read is not None and read[0] == stamp and not (whole and read[1].partial)

    def file(self, path: str) -> Summary | None:
        """Return one file's own summary, before merging; None if it isn't in the catalog."""
        read = self._files.get(path)
        return None if read is None else read[1]

    def put(self, stamp: Stamp, summary: Summary) -> None:
        """Add one file's summary, replacing any earlier one.

        `stamp`: the state of the file when it was read (`ChatFile.stamp`).
        """
        path, key = summary.name, identity_of(summary)
        before = self._files.get(path)
        if before is not None and identity_of(before[1]) != key:
            self.drop(path)
        self._files[path] = stamp, summary
        self._groups.setdefault(key, {})[path] = summary
        self._changed.add(key)
        (self._partial.add if summary.partial else self._partial.discard)(path)
        self._learn(summary)

    def drop(self, path: str) -> None:
        """Remove the entry for a file that no longer exists."""
        dropped = self._files.pop(path, None)
        self._partial.discard(path)
        if dropped is not None:
            self._groups[identity_of(dropped[1])].pop(path)
            self._changed.add(identity_of(dropped[1]))

    def drop_all_but(self, paths: Container[str]) -> None:
        """Remove every entry except the ones for these files; nothing on disk is deleted."""
        for path in tuple(self._files):
            if path not in paths:
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
        read = [self._files[path][1] for path in paths if path in self._files]
        files = {summary.name for summary in read}
        sessions = chain.from_iterable(self._sessions[key] for key in set(map(identity_of, read)))
        return newest_first(session for session in sessions if not files.isdisjoint(session.names))

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
            old = {session.name: session for session in before}
            sessions = tuple([_same(old.get(session.name), session) for session in sessions])
        if sessions != before:
            self._listed = None
        self._sessions[key] = sessions
        for session in sessions:
            if Flag.LIVE in session.flags:
                self._live.add(key)
            if session.project is None:
                self._homeless.add(key)

    def _still_live(self, key: Identity, now: datetime) -> bool:
        live = [session for session in self._sessions.get(key, ()) if Flag.LIVE in session.flags]
        return all(is_live(session, now) for session in live)


def _same(before: Summary | None, now: Summary) -> Summary:
    """Return the earlier object if it equals `now`, else `now`.

    Lists compare by identity, so an equal object must not count as a change.
    """
    return before if before is not None and before == now else now


def newest_first(sessions: Iterable[Summary]) -> tuple[Summary, ...]:
    """Return sessions in the default sort order of lists, newest first."""
    return tuple(sorted(sessions, key=age_order, reverse=True))


def age_order(session: Summary) -> tuple[float, str, str]:
    """Return a session's sort key in lists, of which the newest session has the greatest."""
    when = session.updated or session.modified  # `when`, without the call: many are sorted often
    return when.timestamp(), session.id, session.names[0]


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
