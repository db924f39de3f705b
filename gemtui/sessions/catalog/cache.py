"""The cache of data read from session files: SQLite files in the cache folder.

The files contain titles (the first words of prompts), paths of written files, and counts, so the
folder has mode 0700 and each file 0600. A row is valid while its session file's inode, size,
modification time, and mode are unchanged. Every row carries a checksum. If the cache is corrupt, it
is replaced by an empty one, and `Cache.renewed` says why. If replacing the cache doesn't help
(because the file is locked, not writable, or written by a newer gemtui), gemtui works without a
cache, and `Cache.problem` says why.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec.msgpack
from msgspec import Struct
from msgspec.structs import force_setattr

from gemtui.paths import make_own_file
from gemtui.sessions.catalog.summary import Known, Summary, Unread
from gemtui.sessions.store.store import ChatFile, Problem, stamp_of
from gemtui.sqlite_file import (
    Damaged,
    Newer,
    application_and_version,
    code_of,
    connect,
    is_damage,
    why,
)

VERSION = 19
"""The version of the summaries and of their JSON. Increase it when either changes."""
APPLICATION = 0x67656D00
FILE = "sessions.sqlite3"
_WAIT = 0.25
"""Seconds to wait for another process, which locks the file only for milliseconds."""
_AT_ONCE = 500
_TABLES = (
    "drop table if exists summary",
    "drop table if exists heads",
    "drop table if exists lines",
    """create table summary (
        path blob primary key, home blob, stamp blob, data blob, checksum integer
    ) without rowid""",
    "create index homes on summary (home)",  # lists paths without reading data
    "create table heads (home blob primary key, files blob, heads blob, checksum integer)",
    "create table lines (home blob primary key, files blob, lines blob, checksum integer)",
)


class Head(Struct, frozen=True, array_like=True, gc=False):
    """The part of a file's summary that is needed to select and sort sessions.

    `kind`: a SessionKind; "" if the file contains no session. `when`: `Summary.when`, in seconds
    since 1970. `hidden`: whether lists would hide the session if this were its only file.
    `directories`: as in `Summary`.
    """

    kind: str = ""
    id: str = ""
    when: float = 0.0
    hidden: bool = True
    directories: tuple[str, ...] = ()


class SessionLine(Struct, frozen=True, array_like=True, gc=False):
    """The cached output of `gemtui sessions --json` for a session with one file.

    `when`, `id`: as in `Head`. `text`: the JSON, without the flag `live`. `project`: the project
    named in the JSON; if the session now belongs to a different project, the cached JSON must not
    be used. `project_hash`: as in the session's header.
    """

    when: float
    id: str
    project: str | None
    project_hash: str | None
    text: bytes


T = TypeVar("T")
V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedRows(Generic[T]):
    """The definition of a kind of cache: its file, its version, and its rows.

    There is one row per session file. `version`: a cache file with a lower version is replaced; one
    with a higher version is left alone. `application`: the cache file's SQLite application id is
    this number plus the version; a mismatch means that the file is corrupt. `first_marked`: the
    first version whose files have an application id. `decode`: decodes a row's data. `share`: makes
    a decoded row use the same objects as other rows with equal values, to save memory.
    """

    file: str
    version: int
    application: int
    first_marked: int = 0
    decode: Callable[[bytes], T]
    share: Callable[[T, ChatFile, dict[Any, Any]], T] = lambda row, _place, _shared: row


class Cache(Generic[T]):
    """Cached data about the session files in one store.

    Without a cache file, every method does nothing or finds nothing. `folder`: gemtui's cache
    folder; None disables the cache. Several programs may use one cache at once. `home`: the store's
    folder (`~/.gemini`). `rows`: the kind of data to cache. `problem`: why there is no cache, or
    None. `renewed`: why the cache was replaced by an empty one, or None.
    """

    def __init__(self, folder: Path | None, home: Path, rows: CachedRows[T]) -> None:
        self.rows = rows
        self.path = None if folder is None else folder / rows.file
        self.problem: Problem | None = None
        self.renewed: Problem | None = None
        self._home = os.fsencode(home)
        self._lock = threading.Lock()
        self._database: sqlite3.Connection | None = None
        if self.path is not None:
            self._open(self.path)

    def close(self) -> None:
        """Close the cache; later calls find and store nothing."""
        with self._lock:
            if self._database is not None:
                self._database.close()
            self._database = None

    # --- rows --------------------------------------------------------------------------------

    def get(self, places: Iterable[ChatFile]) -> dict[str, T]:
        """Return the cached rows of files that haven't changed since they were cached.

        The rows are keyed by the file's path.
        """
        by_path = {os.fsencode(place.name): place for place in places}
        found: dict[str, T] = {}
        shared: dict[Any, Any] = {}
        renewed = self.renewed
        with self._used() as database:
            if database is not None:
                for path, *row, data, checksum in self._rows(database, list(by_path)):
                    if checksum != _checksum(path, *row, data):
                        raise Damaged("a record has changed since it was saved")
                    _, stamp = row
                    place = by_path.get(path)
                    if place is not None and stamp == _stamp(place):
                        found[place.name] = self.rows.share(self.rows.decode(data), place, shared)
        return found if self.renewed is renewed else {}

    def heads(self, places: Sequence[ChatFile]) -> list[Head | None]:
        """Return each file's cached `Head`; None if none is cached for its current state.

        `places`: all files of the store. The cache rows of files that no longer exist are deleted.
        """
        found, gone = self._of_all("heads", _decode_heads, places)
        if gone:
            self._change("delete from summary where path = ?", [(path,) for path in gone])
            self.put_heads(places, found)
        return found

    def put_heads(self, places: Sequence[ChatFile], heads: Sequence[Head | None]) -> None:
        """Store the `Head` of every file, replacing those stored earlier.

        `places`: all files of the store.
        """
        self._put_of_all("heads", places, heads)

    def lines(self, places: Sequence[ChatFile]) -> list[SessionLine | None]:
        """Return each file's `SessionLine`; None if none is cached for its current state.

        `places`: all files of the store.
        """
        return self._of_all("lines", _decode_lines, places)[0]

    def put_lines(self, places: Sequence[ChatFile], lines: Sequence[SessionLine | None]) -> None:
        """Store the `SessionLine` of every file, replacing those stored earlier.

        `places`: all files of the store.
        """
        self._put_of_all("lines", places, lines)

    def _of_all(
        self, table: str, decode: Callable[[bytes], list[V | None]], places: Sequence[ChatFile]
    ) -> tuple[list[V | None], Set[bytes]]:
        """Return a table's cached value for each file, and the cached files now deleted.

        The table has one row per store, which contains the values of all its files. A value is None
        if none is cached for the file's current state. The deleted files are given by path.
        """
        files, renewed = _columns(places), self.renewed
        found: list[V | None] | None = None
        gone: Set[bytes] = frozenset()
        with self._used() as database:
            if database is not None:
                select = f"select * from {table} where home = ?"
                for home, kept, data, checksum in database.execute(select, [self._home]):
                    if checksum != _checksum(home, kept, data):
                        raise Damaged("a record has changed since it was saved")
                    found = decode(data)
                    if kept != files:
                        before, now = _stamps(kept), _stamps(files)
                        known = dict(zip(before.items(), found, strict=True))
                        found = [known.get(each) for each in now.items()]
                        gone = before.keys() - now.keys()
        if found is None or self.renewed is not renewed:
            return [None] * len(places), frozenset()
        return found, gone

    def _put_of_all(self, table: str, places: Sequence[ChatFile], values: Sequence[object]) -> None:
        files, data = _columns(places), _packed(values)
        if data is not None:
            row = self._home, files, data
            insert = f"insert or replace into {table} values (?,?,?,?)"
            self._change(insert, [(*row, _checksum(*row))])

    def _rows(self, database: sqlite3.Connection, paths: Sequence[bytes]) -> Iterator[Any]:
        """Yield these files' rows, or all of the store's rows if there are many files.

        If there are more than 500 files, the result includes rows of other files, which callers
        must skip.
        """
        if len(paths) > _AT_ONCE:
            return database.execute(f"{_SELECT} where home = ?", [self._home])
        marks = ",".join("?" * len(paths))
        return database.execute(f"{_SELECT} where path in ({marks})", paths)

    def put(self, known: Iterable[tuple[ChatFile, T]]) -> None:
        """Cache each file's data, replacing what was cached for the same file before."""
        rows: list[tuple[bytes | int, ...]] = []
        for place, each in known:
            if (data := _packed(each)) is not None:
                row = os.fsencode(place.name), self._home, _stamp(place), data
                rows.append((*row, _checksum(*row)))
        self._change("insert or replace into summary values (?,?,?,?,?)", rows)

    def keep_only(self, places: Iterable[ChatFile]) -> None:
        """Delete this store's rows from the cache, except those of the given files."""
        there = {os.fsencode(place.name) for place in places}
        self._remove_all(lambda path: path not in there)

    def remove_gone(self, known: Iterable[str]) -> None:
        """Delete the rows of files that neither are in `known` nor exist on the disk."""
        there = set(map(os.fsencode, known))
        self._remove_all(lambda path: path not in there and not os.path.lexists(path))

    def _remove_all(self, gone: Callable[[bytes], bool]) -> None:
        rows: list[tuple[bytes]] = []
        with self._used() as database:
            if database is not None:
                found = database.execute("select path from summary where home = ?", [self._home])
                rows = [row for row in found if gone(row[0])]
        self._change("delete from summary where path = ?", rows)

    def _change(self, statement: str, rows: Sequence[tuple[bytes | int, ...]]) -> None:
        with self._used() as database:
            if database is not None and rows:
                database.execute("begin immediate")
                database.executemany(statement, rows)
                database.execute("commit")

    @contextmanager
    def _used(self) -> Iterator[sqlite3.Connection | None]:
        """Lock the cache and yield its database, or None if there is no cache.

        If there is a database, errors raised in the `with` block are handled and not passed on. If
        another process has locked the file, the block's changes are lost, and the session files
        concerned are read again later. After any other error, `_recover` replaces the cache or
        disables it.
        """
        with self._lock:
            try:
                yield self._database
            except Exception as error:
                if self._database is None or self.path is None:
                    raise
                if code_of(error) == sqlite3.SQLITE_BUSY:
                    self._database.rollback()
                else:
                    self._recover(self.path, error)

    # --- the file ----------------------------------------------------------------------------

    def _open(self, path: Path) -> None:
        try:
            make_own_file(path)
            self._database = _connect(path, self.rows)
        except Exception as error:
            self._recover(path, error)

    def _recover(self, path: Path, error: Exception) -> None:
        """Replace the cache with an empty file if it is corrupt; otherwise stop using it.

        Nothing is lost, because the cache can be rebuilt from the session files.
        """
        self._give_up(path, error)
        if not is_damage(error):
            return
        try:
            _remove(path)
            make_own_file(path)
            self._database = _connect(path, self.rows)
        except Exception as another:
            self._give_up(path, another)
        else:
            self.problem = None
            what = f"the cache was corrupt ({why(error)}) and has been rebuilt"
            self.renewed = Problem(path=path, line=None, what=what)

    def _give_up(self, path: Path, error: Exception) -> None:
        what = f"the cache is not used: {why(error)}; sessions are read from their files"
        self.problem = Problem(path=path, line=None, what=what)
        if self._database is not None:
            with suppress(sqlite3.Error):
                self._database.close()
        self._database = None


def _connect(path: Path, rows: CachedRows[Any]) -> sqlite3.Connection:
    database = connect(path, wait=_WAIT, any_thread=True)
    try:
        database.execute("pragma synchronous = off")  # a corrupt cache is recreated
        database.execute("begin")
        version = _version(database, rows)
        database.execute("commit")
        if version != rows.version:
            database.execute("begin immediate")
            if _version(database, rows) != rows.version:
                for statement in _TABLES:
                    database.execute(statement)
                database.execute(f"pragma user_version = {rows.version}")
                database.execute(f"pragma application_id = {rows.application + rows.version}")
            database.execute("commit")
    except BaseException:
        database.close()
        raise
    return database


def _version(database: sqlite3.Connection, rows: CachedRows[Any]) -> int:
    """Return the version of a cache file, or 0 if the file is new.

    Raises Newer if a newer gemtui wrote the file, and Damaged if the file's application id isn't
    the one that belongs to its version.
    """
    application, version = application_and_version(database)
    marked = version and version >= rows.first_marked
    if application != (rows.application + version if marked else 0):
        raise Damaged("its version is not valid")
    if version > rows.version:
        raise Newer
    return version


def _remove(path: Path) -> None:
    for ending in ("", "-journal", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


# --- row contents --------------------------------------------------------------------------------


_SELECT = "select path, home, stamp, data, checksum from summary"
_pack = msgspec.msgpack.Encoder().encode
_decode_heads = msgspec.msgpack.Decoder(list[Head | None]).decode
_decode_lines = msgspec.msgpack.Decoder(list[SessionLine | None]).decode
_decode_columns = msgspec.msgpack.Decoder(list[Any]).decode


def _stamp(place: ChatFile) -> bytes:
    return b"%d %d %d %d" % place.stamp


def _columns(places: Sequence[ChatFile]) -> bytes:
    """Encode files' paths and stamps as bytes, to compare two lists of files quickly.

    A stamp (`ChatFile.stamp`) changes whenever the file does.
    """
    names = os.fsencode("\0".join([place.name for place in places]))
    stamps = zip(*map(stamp_of, places), strict=True)
    return _pack((names, *stamps))


def _stamps(columns: bytes) -> dict[bytes, tuple[int, ...]]:
    """Decode the result of `_columns` to a dict from path to stamp, in the same order."""
    names, *stamps = _decode_columns(columns)
    return dict(zip(names.split(b"\0"), zip(*stamps, strict=True), strict=True)) if names else {}


def _checksum(*row: bytes) -> int:
    return zlib.crc32(b"\0".join(row))


def _packed(known: object) -> bytes | None:
    """Encode a row's data; return None if a string in it can't be encoded as UTF-8.

    That happens if a file name contains undecodable bytes.
    """
    try:
        return _pack(known)
    except UnicodeEncodeError:
        return None


def _sharing(known: Known, place: ChatFile, shared: dict[Any, Any]) -> Known:
    """Replace a row's values with shared objects if other rows have equal ones.

    This saves memory, because a store may have 10,000 rows. `shared`: the objects used so far.
    """
    if isinstance(known, Summary):  # just decoded, so nothing else refers to it yet
        one = shared.setdefault
        force_setattr(known, "names", (place.name,))
        force_setattr(known, "project_key", place.project_key)
        force_setattr(known, "project_hash", one(known.project_hash, known.project_hash))
        force_setattr(known, "models", one(known.models, known.models))
        force_setattr(known, "calls", tuple([one(call, call) for call in known.calls]))
        if known.files_written:
            written = tuple([one(path, path) for path in known.files_written])
            force_setattr(known, "files_written", written)
    return known


def head_of(known: Known) -> Head:
    """Return the part of a cached summary that `Head` contains.

    For a file that contains no session, return a `Head` with default values.
    """
    if isinstance(known, Unread):
        return Head()
    when = known.when.timestamp()
    return Head(str(known.kind), known.id, when, known.hidden, known.directories)


SUMMARIES: CachedRows[Known] = CachedRows(
    file=FILE,
    version=VERSION,
    application=APPLICATION,
    first_marked=3,
    decode=msgspec.msgpack.Decoder(Known).decode,
    share=_sharing,
)
"""The cache of session summaries, with one row for each session file."""


def worth_keeping(place: ChatFile, known: Known | Problem | None) -> list[tuple[ChatFile, Known]]:
    """Return `[(place, known)]` if what was read from a file may be cached, else `[]`.

    It isn't cached if reading the unchanged file again may give something different: a temporary
    problem, or a summary of only the file's beginning.
    """
    if isinstance(known, Unread) or (isinstance(known, Summary) and not known.partial):
        return [(place, known)]
    return []
