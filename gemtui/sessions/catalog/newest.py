"""Find the newest sessions of a store without reading all summaries."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from gemtui.jsonout import encode
from gemtui.sessions.catalog.cache import CachedSession
from gemtui.sessions.catalog.catalog import age_order
from gemtui.sessions.catalog.counted import Counted, counted_sessions
from gemtui.sessions.catalog.file_in_use import LIVE_FOR, Identity, identity
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.stored_file import StoredFile
from gemtui.sessions.catalog.summary import Flag, Summary, group_of
from gemtui.sessions.store.projects import ProjectFolders
from gemtui.sessions.store.store import ChatFile, Problem, SessionKind

_AT_FIRST = 32
"""Number of sessions to read in the first batch; each later batch is larger."""


class Unsure(Exception):
    """Raised if the result can't be determined without the summaries of all sessions."""


class SessionLine(Struct, frozen=True, gc=False):
    """The output of `gemtui sessions --json` for a session, from the cache.

    `when`: `Summary.when`, in seconds since 1970. `text`: the JSON.
    """

    when: float
    id: str
    text: bytes


class SessionFiles(NamedTuple):
    """All files of a session, as cached; `when` is the latest `Summary.when` of them."""

    when: float
    id: str
    files: list[ChatFile]


class NewestSessions:
    """The sessions of an index, newest first, without reading all summaries.

    `unreadable`: how many files and folders are unreadable. All methods raise Unsure if the cache
    turns out to be damaged. Creating an instance may raise Unsure or StoreUnreadable.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        files = index.files()
        if not files or _is_busy(files):
            raise Unsure
        cache = index.complete_cache()
        if cache is None:
            raise Unsure
        self._cache, self._failures = cache, cache.failures
        index.learn_projects(cache.directories())
        self.unreadable = index.unreadable(cache)
        self._files = index.places
        self._roots: dict[tuple[str, str | None], str | None] = {}
        self._require_cache()

    def ids_like(self, starts: Iterable[str]) -> set[str]:
        """Return the ids of all sessions that begin like one of `starts`."""
        ids = {id for start in starts for id in self._cache.ids_like(start)}
        self._require_cache()
        return ids

    def listed(self, *, project: Path | None, hidden: bool) -> Iterator[Summary]:
        """Yield the sessions to list, newest first; summaries are read when needed.

        The sessions are those of `gemtui.sessions.catalog.selection.listed_sessions`, which
        explains the arguments.
        """
        folders = None if project is None else ProjectFolders(project)
        for session in self._in_order(self._wanted(project, hidden=hidden)):
            if folders is not None and session.project not in folders:
                continue
            if hidden or not session.hidden:
                yield session
                yield from session.copies if hidden else ()

    def lines(self, *, project: Path | None, hidden: bool) -> Iterator[Summary | SessionLine]:
        """Yield the same sessions as `listed`, as ready JSON (`SessionLine`) if possible.

        A session that is live or has several files is read, and yielded as a summary.
        """
        folders = self._folders(project)
        live_since, main, files = _live_since(), SessionKind.MAIN.value, self._files
        sessions: list[tuple[float, str, str, Summary | SessionLine]] = []
        unread: list[ChatFile] = []
        rows, texts = self._cache.sessions(), self._cache.texts()
        self._require_cache()
        if len(rows) != len(texts):
            raise Unsure  # another gemtui has changed the cache in the meantime
        repeated = _repeated_ids(rows)
        for (name, id, kind, when, is_empty, project_hash, _, _, _), text in zip(
            rows, texts, strict=True
        ):
            file = files.get(name)
            if file is None:
                continue  # another gemtui has found it in the meantime
            several = id in repeated
            listed = kind == main and (several or not is_empty)
            if not (listed or hidden):
                continue
            if several or file.mtime_ns > live_since:
                unread.append(file)
                continue
            root = self._project_of(file, project_hash)
            if folders is None or root in folders:
                if root is not None:
                    text = text.replace(b'"project":null', _project_json(root), 1)
                sessions.append((when, id, name, SessionLine(when, id, text)))
        self._require_cache()
        for session in self._index.sessions_in(unread):
            if folders is not None and session.project not in folders:
                continue
            if hidden or not session.hidden:
                sessions.append((*age_order(session), session))
        sessions.sort(reverse=True)
        for _, _, _, session_or_line in sessions:
            yield session_or_line
            if hidden and isinstance(session_or_line, Summary):
                yield from session_or_line.copies

    def stored(self) -> list[StoredFile]:
        """Return all files that hold a session.

        The files of sessions that have several are read.
        """
        unread: list[ChatFile] = []
        files = [self._stored(cached, file) for cached, file in self._single(unread)]
        for session in self._index.sessions_in(unread):
            files += map(StoredFile.of, (session, *session.copies))
        return files

    def _single(self, others: list[ChatFile]) -> Iterator[tuple[CachedSession, ChatFile]]:
        """Yield the sessions that have one file; add the files of the others to `others`."""
        sessions = self._cache.sessions()
        repeated = _repeated_ids(sessions)
        for cached in sessions:
            file = self._files.get(cached.name)
            if file is None:
                continue  # another gemtui has found it in the meantime
            if cached.id in repeated:
                others.append(file)
            else:
                yield cached, file
        self._require_cache()

    def _stored(self, cached: CachedSession, file: ChatFile) -> StoredFile:
        why_hidden = ""
        if cached.hidden:
            is_main = cached.kind == SessionKind.MAIN
            why_hidden = Flag.EMPTY.value if is_main else cached.kind
        return StoredFile(
            name=file.name,
            project=self._project_of(file, cached.project_hash),
            project_key=file.project_key,
            size=file.size,
            kind=cached.kind,
            parent=file.parent,
            resumable=bool(cached.resumable),
            has_header=bool(cached.has_header),
            last_use=cached.used,
            kept=file.kept,
            why_hidden=why_hidden,
        )

    def problems(self) -> list[Problem]:
        """Return why files and folders are unreadable."""
        problems = self._index.problems(self._cache)
        self._require_cache()
        return problems

    def _project_of(self, file: ChatFile, project_hash: str | None) -> str | None:
        """Return the project of a file; those of a folder with the same hash have the same."""
        key = file.project_key, project_hash
        if key not in self._roots:
            self._roots[key] = self._index.project_of(file, project_hash)
        return self._roots[key]

    def counted(self, project: Path | None) -> list[Counted]:
        """Return the sessions that statistics count, newest first, as `counted_sessions` does.

        A session that has several files is read.
        """
        folders = self._folders(project)
        sessions: list[Counted] = []
        unread: list[ChatFile] = []
        for cached, file in self._single(unread):
            is_subagent = cached.kind == SessionKind.SUBAGENT
            root = self._project_of(file, cached.project_hash)
            outside = folders is not None and root not in folders
            if outside or (cached.hidden and not is_subagent):
                continue
            id = (is_subagent and file.parent) or cached.id
            group = group_of(root, file.project_key)
            sessions.append(Counted(file.name, id, id != cached.id, root, group, cached.time))
        sessions += counted_sessions(self._index.sessions_in(unread), project)
        return sorted(sessions, key=attrgetter("seconds", "id", "name"), reverse=True)

    def _folders(self, project: Path | None) -> ProjectFolders | None:
        """Return the folders of a project; sessions that name only its hash belong to it, too."""
        if project is None:
            return None
        self._index.expect(project)
        self._roots.clear()
        return ProjectFolders(project)

    def _wanted(self, project: Path | None, *, hidden: bool) -> Iterator[SessionFiles]:
        """Yield the sessions to list, newest first.

        Some of the sessions may turn out to be hidden or to belong to a different project.
        """
        inside = None if project is None else {file.name for file in self._index.files(project)}
        grouped: set[str] = set()
        for session in self._newest():
            if session.name in grouped or not (hidden or session.kind == SessionKind.MAIN):
                continue
            names = self._names(session)
            if len(names) == 1:
                outside = inside is not None and session.name not in inside
                if outside or (session.hidden and not hidden):
                    continue
            grouped.update(names)
            yield SessionFiles(session.time, session.id, [self._files[name] for name in names])

    def _newest(self) -> Iterator[CachedSession]:
        for session in self._cache.newest_first():
            self._require_cache()
            if session.name in self._files:  # else another gemtui has found it since
                yield session
        self._require_cache()

    def _names(self, session: CachedSession) -> list[str]:
        """Return the paths of all files that may be of one session with this file."""
        same = [other for other in self._cache.with_id(session.id) if other.name in self._files]
        self._require_cache()
        wanted = self._identity(session)
        return [other.name for other in same if self._identity(other) == wanted]

    def _identity(self, session: CachedSession) -> Identity:
        file = self._files[session.name]
        return identity(SessionKind(session.kind), session.id, file.project_key)

    def _in_order(self, wanted: Iterator[SessionFiles]) -> Iterator[Summary]:
        """Yield the sessions with these files, newest first.

        `wanted`: sorted by the latest time that any of a session's files has.
        """
        read: list[Summary] = []
        count = _AT_FIRST
        while True:
            batch = list(islice(wanted, count))
            read += self._index.sessions_in([file for group in batch for file in group.files])
            read.sort(key=age_order)
            last = batch[-1][:2] if len(batch) == count else None
            while read and (last is None or age_order(read[-1])[:2] > last):
                yield read.pop()
            if last is None:
                return
            count *= 2

    def _require_cache(self) -> None:
        """Raise Unsure if the cache has failed since this instance was created."""
        if self._cache.failures > self._failures:
            raise Unsure


def _repeated_ids(sessions: Sequence[CachedSession]) -> set[str]:
    """Return the ids that several of these files have."""
    last = {session.id: session.name for session in sessions}
    return {session.id for session in sessions if last[session.id] != session.name}


@lru_cache(maxsize=1024)
def _project_json(project: str) -> bytes:
    return b'"project":' + encode(project)


def _live_since() -> float:
    """Return the earliest time at which a live session's file can have been written.

    A file last written before that can't belong to a live session. The time is in nanoseconds, as
    in `stat`.
    """
    return (time.time() - LIVE_FOR.total_seconds()) * 1e9


def _is_busy(files: Iterable[ChatFile]) -> bool:
    """Return whether one of the files may belong to a live subagent.

    If so, the subagent's parent session is live as well, which can't be seen from the parent's
    file.
    """
    since = _live_since()
    return any(file.mtime_ns > since and file.kind is SessionKind.SUBAGENT for file in files)
