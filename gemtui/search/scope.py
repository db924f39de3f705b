"""The scope of a search: its files, and the session under which hits are listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Protocol

from gemtui.marks import Mark
from gemtui.search.file_list import IndexedFile, id_of, session_of
from gemtui.sessions.catalog.catalog import newest_first
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.newest import Unsure
from gemtui.sessions.catalog.query import Narrowed, fits_all
from gemtui.sessions.catalog.subagents import asker_of, calls_with_subagents, mains_by_id
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.store.projects import ProjectFolders
from gemtui.sessions.store.store import ChatFile, SessionKind, stamp_of

_MOST_UNREAD = 24 * 1024 * 1024
"""Maximum total size, in bytes, of unindexed files in a StoreScope.

If they are larger, all summaries have to be read anyway.
"""


class File(Protocol):
    """A session file and its current state; a Summary or a ChatFile provides these."""

    @property
    def name(self) -> str:
        """The absolute path as a string."""

    @property
    def path(self) -> Path:
        """The absolute path."""

    @property
    def size(self) -> int:
        """The size in bytes."""

    @property
    def modified(self) -> datetime:
        """The modification time."""


class SearchScope(Protocol):
    """The files to search, and the session under which each file's hits are listed."""

    def divided(self, rows: Mapping[str, IndexedFile]) -> tuple[dict[int, str], Sequence[File]]:
        """Split the files to search into indexed files and files to read.

        `rows`: the files in the index, by path. Returns the paths of the indexed files by document
        number, and the remaining files, newest first. A file whose indexed version is outdated must
        be read.
        """

    def prepare(self, names: Iterable[str]) -> None:
        """Read the summaries of these files together, which is faster than one by one."""

    def file(self, name: str) -> Summary:
        """Return the summary of the file with this path."""

    def session(self, name: str) -> Summary:
        """Return the session under which hits in this file are listed.

        For a subagent's file, it is the session that called the subagent. `name`: the file's path.
        """

    @property
    def askers(self) -> Mapping[str, str]:
        """The path of each subagent's file, mapped to that of the calling session's file."""


# --- sessions of a snapshot ----------------------------------------------------------------------


class SnapshotScope:
    """The files of the sessions that satisfy a query's conditions on sessions.

    `sessions`: all sessions, as in a snapshot. `marks`: the user's marks on them. `fields`: the
    conditions.
    """

    def __init__(
        self, sessions: Sequence[Summary], marks: Mapping[str, Mark], fields: tuple[Narrowed, ...]
    ) -> None:
        self._key = sessions, marks, fields
        kept = [session for session in sessions if _is_searched(session)]
        mains = mains_by_id(kept)
        self._files: dict[str, Summary] = {}
        self._sessions: dict[str, Summary] = {}
        calls = calls_with_subagents(kept) if fields else {}
        for file in kept:
            session = asker_of(file.project_key, file.parent, mains) or file
            if not fields or fits_all(
                fields, session, marks.get(session.id), calls.get(session.name, session.calls)
            ):
                self._files[file.name] = file
                self._sessions[file.name] = session

    def is_of(
        self, sessions: Sequence[Summary], marks: Mapping[str, Mark], fields: tuple[Narrowed, ...]
    ) -> bool:
        """Return whether this scope was created from these arguments and can be reused."""
        return self._key[0] is sessions and self._key[1:] == (marks, fields)

    def divided(self, rows: Mapping[str, IndexedFile]) -> tuple[dict[int, str], list[Summary]]:
        """Split the files to search into indexed files and files to read.

        See `SearchScope.divided` for the details.
        """
        indexed: dict[int, str] = {}
        unread: list[Summary] = []
        for name, file in self._files.items():
            row = rows.get(name)
            if row is None or row.size != file.size or row.modified != file.modified.timestamp():
                unread.append(file)
            else:
                indexed.update(dict.fromkeys(row.numbers, name))
        return indexed, unread

    def prepare(self, names: Iterable[str]) -> None:
        """Do nothing, because all summaries are known."""

    def file(self, name: str) -> Summary:
        """Return the summary of the file with this path."""
        return self._files[name]

    def session(self, name: str) -> Summary:
        """Return the session under which hits in this file are listed.

        For a subagent's file, it is the session that called the subagent.
        """
        return self._sessions[name]

    @cached_property
    def askers(self) -> Mapping[str, str]:
        """The path of each subagent's file, mapped to that of the calling session's file."""
        sessions = self._sessions.items()
        return {name: session.name for name, session in sessions if session.name != name}


def _is_searched(each: Summary) -> bool:
    return each.kind is not SessionKind.CHECKPOINT and not each.is_copy


# --- files of a store ----------------------------------------------------------------------------


class StoreScope:
    """The files in a store to search, without reading all their summaries.

    Use this for a single search. `index`: an up-to-date index of the store's sessions, which reads
    summaries when needed. `rows`: the files in the text index. `project`: search only this
    project's sessions; None searches all. Every method may raise Unsure, which means that a
    SnapshotScope is needed.
    """

    def __init__(self, index: Index, rows: Mapping[str, IndexedFile], project: Path | None) -> None:
        self._index = index
        self._rows = rows
        files = [file for file in index.files() if file.kind is not SessionKind.CHECKPOINT]
        self._places = {file.name: file for file in files}
        indexed_files = list(map(rows.get, self._places))
        self._sessions = {
            name: row.session
            for name, row in zip(self._places, indexed_files, strict=True)
            if row is not None
        }
        stamps = map(stamp_of, files)
        self._unread = [
            file
            for file, row, stamp in zip(files, indexed_files, stamps, strict=True)
            if row is None or row.stamp != stamp
        ]
        if sum([file.size for file in self._unread]) > _MOST_UNREAD:
            raise Unsure
        self._read: dict[str, Summary] = {}
        self._take(self._unread)
        self._leave_out(project)

    @property
    def ids(self) -> set[str]:
        """The ids of all sessions."""
        return {id_of(session) for session in self._sessions.values()}

    def divided(self, rows: Mapping[str, IndexedFile]) -> tuple[dict[int, str], list[ChatFile]]:
        """Split the files to search into indexed files and files to read.

        See `SearchScope.divided` for the details.
        """
        lost = (
            ()
            if rows is self._rows
            else [file for name, file in self._places.items() if name not in rows]
        )
        unread = [file for file in {*self._unread, *lost} if file.name in self._wanted]
        unread.sort(key=lambda each: (-each.mtime_ns, each.name))
        indexed_names = self._wanted.difference([file.name for file in unread])
        return {number: name for name in indexed_names for number in rows[name].numbers}, unread

    def prepare(self, names: Iterable[str]) -> None:
        """Read the summaries of these files, and of the sessions that called them, together."""
        wanted = {path for name in names for path in (name, *self._askers(name))}
        self._take([self._places[name] for name in wanted - self._read.keys()])

    def file(self, name: str) -> Summary:
        """Return the summary of the file with this path."""
        if name not in self._read:
            self._take([self._places[name]])
        if name not in self._read or self._read[name].project is None:
            raise Unsure
        return self._read[name]

    def session(self, name: str) -> Summary:
        """Return the session under which hits in this file are listed.

        For a subagent's file, it is the session that called the subagent.
        """
        file, mains = self._places[name], [self.file(main) for main in self._askers(name)]
        asker = asker_of(file.project_key, file.parent, mains_by_id(newest_first(mains)))
        return asker or self.file(name)

    @cached_property
    def askers(self) -> Mapping[str, str]:
        """The path of each subagent's file, mapped to that of the calling session's file."""
        return {
            name: self._asker_of(name)
            for name, file in self._places.items()
            if file.parent and name in self._wanted and self._askers(name)
        }

    def _asker_of(self, name: str) -> str:
        only, *others = self._askers(name)
        return self.session(name).name if others else only

    def _askers(self, name: str) -> Sequence[str]:
        """Return the paths of the files that may contain a subagent's calling session.

        `name`: the path of the subagent's file.
        """
        parent = self._places[name].parent
        return self._mains.get(parent, ()) if parent else ()

    @cached_property
    def _mains(self) -> Mapping[str, Sequence[str]]:
        """The sessions that called subagents: the paths of their files, by session id."""
        parents = {file.parent for file in self._places.values() if file.parent}
        ids = {session_of(SessionKind.MAIN, id): id for id in parents}
        mains: dict[str, list[str]] = {}
        for name, session in self._sessions.items():
            if session in ids and name in self._wanted:
                mains.setdefault(ids[session], []).append(name)
        return mains

    def _take(self, files: Sequence[ChatFile]) -> None:
        """Read the summaries of files, and keep them for later."""
        for session in self._index.sessions_in(files):
            for file in (session, *session.copies):
                self._read[file.name] = file
                self._sessions[file.name] = session_of(file.kind, file.id)

    def _leave_out(self, project: Path | None) -> None:
        """Exclude the files of other projects, and each session's copies.

        `project`: the project to search; None means all.
        """
        count = Counter(self._sessions.values())
        several = [name for name, session in self._sessions.items() if count[session] > 1]
        self._take([self._places[name] for name in several])
        copies = {
            name for path in several if path in self._read for name in self._read[path].names[1:]
        }
        self._wanted = self._places.keys() - copies
        if project is not None:
            inside = {file.name for file in self._index.files(project)}
            inside.difference_update(several)
            folders = ProjectFolders(project)
            inside.update(name for name in several if self.file(name).project in folders)
            self._wanted &= inside
