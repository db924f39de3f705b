"""The cache of data read from session files: SQLite files in the cache folder.

The files contain titles (the first words of prompts), paths of written files, and counts, so the
folder has mode 0700 and each file 0600. A row is valid while its session file's inode, size,
modification time, and mode are unchanged. A summary's row has columns by which SQLite selects and
sorts sessions, and the session's JSON. Every row carries a checksum. If the cache is corrupt, it is
replaced by an empty one, and `Cache.renewed` says why. If replacing the cache doesn't help (because
the file is locked, not writable, or written by a newer gemtui), gemtui works without a cache, and
`Cache.problem` says why.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec.msgpack
from msgspec import Struct
from msgspec.structs import force_setattr

from gemtui.jsonout import encode
from gemtui.paths import make_own_file
from gemtui.sessions.catalog.summary import Known, Summary, Unread
from gemtui.sessions.store.store import ChatFile, Problem
from gemtui.sqlite_file import (
    Damaged,
    Newer,
    application_and_version,
    code_of,
    connect,
    is_damage,
    why,
)

VERSION = 24
"""The version of the summaries and of their JSON. Increase it when either changes."""
APPLICATION = 0x67656D00
FILE = "sessions.sqlite3"
_WAIT = 0.25
"""Seconds to wait for another process, which locks the file only for milliseconds."""
_AT_ONCE = 900
_PARTS = 17
"""Into how many parts the files are divided, so that a change concerns only some of them."""
_AT_FIRST = 32
"""Number of sessions in the first batch of `Cache.newest_first`; each later batch is larger."""
_TABLES = (
    "drop table if exists summary",
    "drop table if exists heads",  # of earlier versions, as the next one
    "drop table if exists lines",
    "drop table if exists listing",
    "drop table if exists answer",
    """create table summary (
        path blob primary key, home blob, part integer, stamp blob,
        id text, kind text, time real, hidden integer, directories blob, project_hash text,
        resumable integer, has_header integer, used real, checksum integer, json blob, data blob
    )""",
    "create index parts on summary (home, part, path, stamp)",
    "create index newest on summary (home, time desc, id desc, kind, hidden)",
    "create index ids on summary (home, id)",
    "create index folders on summary (home, directories) where directories is not null",
    """create table listing (
        home blob, part integer, files blob, sessions blob, json blob, primary key (home, part)
    )""",
    """create table answer (
        home blob, number integer, question blob, answer blob, primary key (home, number)
    )""",
)


class SessionColumns(NamedTuple):
    """The columns of a summary's row by which sessions are selected, sorted and printed.

    `id`, `kind`: "" if the file contains no session. `time`: `Summary.when`, in seconds since 1970.
    `hidden`: whether lists would hide the session if this were its only file. `directories`: as in
    `Summary`, encoded; None if there are none. `resumable`, `has_header`: as in `Summary`. `used`:
    when the clean-up takes the session to have been used last; None if it was just now.
    """

    id: str | None = None
    kind: str | None = None
    time: float | None = None
    hidden: int | None = None
    directories: bytes | None = None
    project_hash: str | None = None
    resumable: int | None = None
    has_header: int | None = None
    used: float | None = None


class CachedSession(NamedTuple):
    """A file's session as SQLite has selected it; the fields are those of `SessionColumns`."""

    name: str
    id: str
    kind: str
    time: float
    hidden: int
    project_hash: str | None
    resumable: int
    has_header: int
    used: float | None


T = TypeVar("T")
U = TypeVar("U")


class CachedRows(Struct, Generic[T], frozen=True, kw_only=True):
    """The definition of a kind of cache: its file, its version, and its rows.

    There is one row per session file. `version`: a cache file with a lower version is replaced; one
    with a higher version is left alone. `application`: the cache file's SQLite application id is
    this number plus the version; a mismatch means that the file is corrupt. `decode`: decodes a
    row's data. `share`: makes a decoded row use the same objects as other rows with equal values,
    to save memory. `columns`: what SQLite can select rows by. `json`: what `gemtui sessions --json`
    prints, with null as the project.
    """

    file: str
    version: int
    application: int
    decode: Callable[[bytes], T]
    share: Callable[[T, ChatFile, dict[Any, Any]], T] = lambda row, _place, _shared: row
    columns: Callable[[T], SessionColumns] = lambda _row: SessionColumns()
    json: Callable[[T], bytes] = lambda _row: b""


class Cache(Generic[T]):
    """Cached data about the session files in one store.

    Without a cache file, every method does nothing or finds nothing. `folder`: gemtui's cache
    folder; None disables the cache. Several programs may use one cache at once. `home`: the store's
    folder (`~/.gemini`). `rows`: the kind of data to cache. `problem`: why there is no cache, or
    None. `renewed`: why the cache was replaced by an empty one, or None. `failures`: how often
    something was not found or not stored because of an error.
    """

    def __init__(self, folder: Path | None, home: Path, rows: CachedRows[T]) -> None:
        self.rows = rows
        self.path = None if folder is None else folder / rows.file
        self.problem: Problem | None = None
        self.renewed: Problem | None = None
        self.failures = 0
        self._home = os.fsencode(home)
        self._files: dict[int, bytes | None] = {}
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
        values: dict[str, T] = {}
        shared: dict[Any, Any] = {}
        renewed = self.renewed
        with self._used() as database:
            if database is not None:
                for path, stamp, data in self._rows(database, list(by_path)):
                    packed = _opened(data, path + stamp)
                    place = by_path.get(path)
                    if place is not None and stamp == _stamp(place):
                        values[place.name] = self.rows.share(
                            self.rows.decode(packed), place, shared
                        )
        return values if self.renewed is renewed else {}

    # --- selecting sessions ------------------------------------------------------------------

    def outdated(self, places: Sequence[ChatFile]) -> list[ChatFile]:
        """Return the files whose current state isn't cached.

        `places`: all files of the store.
        """
        outdated: list[ChatFile] = []
        for part, files in self._changed(places).items():
            cached = self._states(part)
            outdated += [place for place in files if _state(place) not in cached]
        return outdated

    def note_current(self, places: Sequence[ChatFile]) -> bool:
        """Return whether the cache has just these files, and note it for `outdated`.

        `places`: all files of the store that can be read.
        """
        for part, files in self._changed(places).items():
            if self._states(part) != set(map(_state, files)):
                return False
            self._files[part] = _packed(files)
            row = (self._home, part, self._files[part], None, None)
            self._change("insert or replace into listing values (?,?,?,?,?)", [row])
        return True

    def _changed(self, places: Sequence[ChatFile]) -> dict[int, list[ChatFile]]:
        """Return the files of each part that isn't as it was noted; `places`: all files."""
        noted = dict(self._all("select part, files from listing where home = ?"))
        changed: dict[int, list[ChatFile]] = {part: [] for part in range(_PARTS)}
        for place in places:
            changed[place.inode % _PARTS].append(place)
        for part, files in list(changed.items()):
            packed = _packed(files)
            if packed is not None and noted.get(part) == packed:
                self._files[part] = packed
                del changed[part]
        return changed

    def _states(self, part: int) -> set[tuple[bytes, bytes]]:
        return set(self._all("select path, stamp from summary where home = ? and part = ?", part))

    def ids_like(self, start: str) -> list[str]:
        """Return the ids that begin with `start`, by file."""
        select = "select id from summary where home = ? and id >= ? and id < ?"
        return [id for (id,) in self._all(select, start, start + _AFTER_ALL)]

    def unreadable(self) -> int:
        """Return how many files contain no session."""
        return len(self.unread_names())

    def unread_names(self) -> set[str]:
        """Return the paths of the files that contain no session."""
        select = "select path from summary where home = ? and id = ''"
        return {os.fsdecode(path) for (path,) in self._all(select)}

    def directories(self) -> Iterator[str]:
        """Yield the folders that sessions name."""
        select = "select distinct directories from summary where home = ? and directories not null"
        for (directories,) in self._all(select):
            yield from _decode_directories(directories)

    def with_id(self, id: str) -> list[CachedSession]:
        """Return the sessions of all files with this id."""
        return self._sessions("and id = ?", id)

    def newest_first(self, names: Collection[str] = ()) -> Iterator[CachedSession]:
        """Yield the sessions of all files, newest first, as far as they are needed.

        `names`: if they are few, only the sessions of the files with these paths are yielded.
        """
        if 0 < len(names) <= _AT_ONCE:
            among = f"and path in ({','.join('?' * len(names))})"
            paths = map(os.fsencode, names)
            yield from self._sessions(f"{among} and id <> '' {_NEWEST_FIRST}", *paths)
            return
        order = "and id <> '' order by time desc, id desc limit ? offset ?"
        start, count = 0, _AT_FIRST
        while True:
            sessions = self._sessions(order, count, start)
            yield from sessions
            if len(sessions) < count:
                return
            start, count = start + count, 2 * count

    def sessions(self) -> list[CachedSession]:
        """Return the sessions of all files, in an order that stays the same."""
        return self._whole("sessions", _decode_sessions, self._select_all)

    def texts(self) -> list[bytes]:
        """Return the JSON of the sessions of all files, in the order of `sessions`."""
        return self._whole("json", _decode_texts, self._select_texts)

    def _whole(
        self,
        column: str,
        decode: Callable[[bytes], list[U]],
        select: Callable[[sqlite3.Connection, int], list[U]],
    ) -> list[U]:
        """Return what `select` does for all parts, from values that are stored until files change.

        `column`: where the values are stored. `decode`: decodes one.
        """
        rows: list[U] = []
        values: list[tuple[object, ...]] = []
        query = f"select {column} from listing where home = ? and part = ? and files = ?"
        with self._used() as database:
            if database is not None:
                for part, files in self._files.items():
                    place = b"%b%b%d" % (self._home, column.encode(), part)
                    stored = database.execute(query, [self._home, part, files]).fetchone()
                    if stored is not None and stored[0] is not None:
                        rows += decode(_opened(stored[0], place))
                        continue
                    database.execute("begin")
                    selected = select(database, part)
                    packed = _packed(selected) if self._is_noted(database, part) else None
                    database.execute("commit")
                    rows += selected
                    if packed is not None:
                        values.append((_sealed(packed, place), self._home, part, files))
        update = f"update listing set {column} = ? where home = ? and part = ? and files = ?"
        self._change(update, values)
        return rows

    def _is_noted(self, database: sqlite3.Connection, part: int) -> bool:
        """Return whether a part's rows are those of the files that were noted as current."""
        files = self._files[part]
        select = "select path, stamp from summary where home = ? and part = ?"
        states = set(database.execute(select, [self._home, part]))
        return files is not None and states == set(map(_state, _decode_files(files)))

    def _select_all(self, database: sqlite3.Connection, part: int) -> list[CachedSession]:
        return self._select(database, f"and part = ? and id <> '' {_IN_PART}", part)

    def _select_texts(self, database: sqlite3.Connection, part: int) -> list[bytes]:
        select = (
            f"select path, json from summary where home = ? and part = ? and id <> '' {_IN_PART}"
        )
        rows = database.execute(select, [self._home, part])
        return [_opened(json, path) for path, json in rows]

    def _sessions(self, condition: str, *values: object) -> list[CachedSession]:
        sessions: list[CachedSession] = []
        with self._used() as database:
            if database is not None:
                sessions = self._select(database, condition, *values)
        return sessions

    def _select(
        self, database: sqlite3.Connection, condition: str, *values: object
    ) -> list[CachedSession]:
        select = f"select {_COLUMNS}, checksum from summary where home = ? {condition}"
        sessions: list[CachedSession] = []
        for *row, checksum in database.execute(select, [self._home, *values]):
            if checksum != zlib.crc32(_pack(row)):
                raise Damaged(_DAMAGED)
            path, _, _, _, id, kind, time, hidden, _, *rest = row
            sessions.append(CachedSession(os.fsdecode(path), id, kind, time, hidden, *rest))
        return sessions

    def answer(self, number: int, question: bytes | None, decode: Callable[[bytes], U]) -> U | None:
        """Return the answer that was kept under a number, if it was to the same question.

        No answer is kept to the question None.
        """
        answer: U | None = None
        select = "select answer from answer where home = ? and number = ? and question = ?"
        with self._used() as database:
            if database is not None and question is not None:
                for (sealed,) in database.execute(select, [self._home, number, question]):
                    answer = decode(_opened(sealed, self._home + question))
        return answer

    def keep_answer(self, number: int, question: bytes | None, answer: bytes | None) -> None:
        """Keep an answer in place of the last one with this number.

        Nothing is kept if the answer or its question is None.
        """
        if question is not None and answer is not None:
            row = (self._home, number, question, _sealed(answer, self._home + question))
            self._change("insert or replace into answer values (?,?,?,?)", [row])

    def _all(self, select: str, *values: object) -> list[Any]:
        """Return the result of a query, whose first parameter is the store; [] without a cache."""
        rows: list[Any] = []
        with self._used() as database:
            if database is not None:
                rows = database.execute(select, [self._home, *values]).fetchall()
        return rows

    # --- changes -----------------------------------------------------------------------------

    def _rows(self, database: sqlite3.Connection, paths: Sequence[bytes]) -> Iterator[Any]:
        """Yield these files' rows, or all of the store's rows if there are many files.

        If there are more than 900 files, the result includes rows of other files, which callers
        must skip.
        """
        if len(paths) > _AT_ONCE:
            return database.execute(f"{_SELECT} where home = ?", [self._home])
        marks = ",".join("?" * len(paths))
        return database.execute(f"{_SELECT} where path in ({marks})", paths)

    def put(self, known: Iterable[tuple[ChatFile, T]]) -> None:
        """Cache each file's data, replacing what was cached for the same file before."""
        rows: list[tuple[object, ...]] = []
        for place, value in known:
            data = _packed(value)
            if data is not None:
                path, stamp = os.fsencode(place.name), _stamp(place)
                part = place.inode % _PARTS
                row = (path, self._home, part, stamp, *self.rows.columns(value))
                json = _sealed(self.rows.json(value), path)
                rows.append((*row, zlib.crc32(_pack(row)), json, _sealed(data, path + stamp)))
        self._change(f"insert or replace into summary values ({','.join('?' * _WIDTH)})", rows)

    def keep_only(self, places: Iterable[ChatFile]) -> None:
        """Delete this store's rows from the cache, except those of the given files."""
        there = {os.fsencode(place.name) for place in places}
        self._remove_all(lambda path: path not in there)

    def remove_gone(self, known: Iterable[str]) -> None:
        """Delete the rows of files that neither are in `known` nor exist on the disk."""
        there = set(map(os.fsencode, known))
        self._remove_all(lambda path: path not in there and not os.path.lexists(path))

    def _remove_all(self, gone: Callable[[bytes], bool]) -> None:
        paths = self._all("select path from summary where home = ?")
        self._change("delete from summary where path = ?", [row for row in paths if gone(row[0])])

    def _change(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
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
                self.failures += 1
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
    if application != (rows.application + version if version else 0):
        raise Damaged("its version is not valid")
    if version > rows.version:
        raise Newer
    return version


def _remove(path: Path) -> None:
    for ending in ("", "-journal", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


# --- row contents --------------------------------------------------------------------------------


_COLUMNS = (
    "path, home, part, stamp, id, kind, time, hidden, directories, project_hash, resumable, "
    "has_header, used"
)
_NEWEST_FIRST = "order by time desc, id desc, path desc"
_IN_PART = "order by +time desc, id desc, path desc"
"""The same order, but SQLite first finds the rows of the part."""
_SELECT = "select path, stamp, data from summary"
_WIDTH = 16
_AFTER_ALL = "\U0010ffff"
"""A character after all others in SQLite's order."""
_CHECKSUM = 4
"""The number of bytes with which JSON and data begin in a row: their checksum."""
_DAMAGED = "a record has changed since it was saved"
_pack = msgspec.msgpack.Encoder().encode
_decode_sessions = msgspec.msgpack.Decoder(list[CachedSession]).decode
_decode_texts = msgspec.msgpack.Decoder(list[bytes]).decode
_decode_files = msgspec.msgpack.Decoder(list[ChatFile]).decode
_decode_directories = msgspec.msgpack.Decoder(tuple[str, ...]).decode


def _state(place: ChatFile) -> tuple[bytes, bytes]:
    return os.fsencode(place.name), _stamp(place)


def _stamp(place: ChatFile) -> bytes:
    return b"%d %d %d %d" % place.stamp


def _sealed(value: bytes, row: bytes) -> bytes:
    """Return a value with its checksum. `row`: what identifies the row in which it is stored."""
    return _checksum(value, row) + value


def _opened(sealed: bytes, row: bytes) -> bytes:
    """Return the value in the result of `_sealed`. Raises Damaged if it has changed since."""
    value = sealed[_CHECKSUM:]
    if sealed[:_CHECKSUM] != _checksum(value, row):
        raise Damaged(_DAMAGED)
    return value


def _checksum(value: bytes, row: bytes) -> bytes:
    return zlib.crc32(value, zlib.crc32(row)).to_bytes(_CHECKSUM, "big")


def _packed(value: object) -> bytes | None:
    """Encode a value; return None if a string in it can't be encoded as UTF-8.

    That happens if a file name contains undecodable bytes.
    """
    try:
        return _pack(value)
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


def _columns(known: Known) -> SessionColumns:
    if isinstance(known, Unread):
        return SessionColumns(id="")
    return SessionColumns(
        id=known.id,
        kind=known.kind.value,
        time=known.when.timestamp(),
        hidden=int(known.hidden),
        directories=_pack(known.directories) if known.directories else None,
        project_hash=known.project_hash,
        resumable=int(known.resumable),
        has_header=int(known.has_header),
        used=None if known.last_use is None else known.last_use.timestamp(),
    )


def _json(known: Known) -> bytes:
    return b"" if isinstance(known, Unread) else encode(known.to_dict(files=False))


SUMMARIES: CachedRows[Known] = CachedRows(
    file=FILE,
    version=VERSION,
    application=APPLICATION,
    decode=msgspec.msgpack.Decoder(Known).decode,
    share=_sharing,
    columns=_columns,
    json=_json,
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
