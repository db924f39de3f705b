"""What was read of session files, kept between starts: SQLite files in our cache folder.

They hold titles (the first words of prompts), paths of written files and counts, so the folder is
0700 and a file 0600. A row is valid while inode, size, time and mode of its session file are
unchanged. Every row carries a checksum: a damaged cache is replaced by an empty one, whatever the
damage, and `renewed` says so. Where that does not help (the file is locked, not writable, or
written by a newer gemtui), gemtui works without it and `problem` says so.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec.msgpack
from msgspec import Struct
from msgspec.structs import replace

from gemtui.own_folders import make_own_file
from gemtui.sessions.store import ChatFile, Problem
from gemtui.sessions.summary import Known, Summary, Unread
from gemtui.sqlite_file import Damaged, Newer, code_of, connect, identity, is_damage, why

VERSION = 10
APPLICATION = 0x67656D00
FILE = "sessions.sqlite3"
_WAIT = 0.25
"""Seconds to wait for another gemtui, which only holds the file for milliseconds."""
_AT_ONCE = 500
_TABLE = """
    create table summary (
        path blob primary key, home blob, stamp blob, head blob, data blob,
        head_checksum integer, checksum integer
    ) without rowid
"""


class Head(Struct, frozen=True, array_like=True, gc=False):
    """What orders the session in a file among others, without the rest of its summary.

    `kind`: a SessionKind; "" = the file holds no session. `when`: `Summary.when`, in seconds since
    1970. `hidden`: lists leave it out, unless another file of the session says more.
    """

    kind: str = ""
    id: str = ""
    when: float = 0.0
    hidden: bool = True


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedRows(Generic[T]):
    """What a cache holds of each file.

    `version`: a cache of an older one is replaced, one of a newer one is left alone. `application`:
    with the version added it is the file's application id: a version that does not fit is damage.
    `first_marked`: versions before had no application id. `decode`: a row's data. `share`: makes of
    a decoded row one that has nothing of its own that many others have.
    `head`: makes what a row says of itself apart from its data.
    """

    file: str
    version: int
    application: int
    first_marked: int = 0
    decode: Callable[[bytes], T]
    share: Callable[[T, ChatFile, dict[Any, Any]], T] = lambda row, _place, _shared: row
    head: Callable[[T], Head] = lambda _: Head()


class Cache(Generic[T]):
    """What is known of one store's files; without a file every method does or finds nothing.

    `folder`: our cache folder, None = no cache. Several programs may use one cache at once.
    `problem`: why there is no cache, if so. `renewed`: why it was replaced by an empty one, if it
    was.
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
        """Close the file; from then on nothing is found and nothing is kept."""
        with self._lock:
            if self._database is not None:
                self._database.close()
            self._database = None

    # --- rows --------------------------------------------------------------------------------

    def get(self, places: Iterable[ChatFile]) -> dict[str, T]:
        """Return, by path, what is cached of these files in their present state."""
        by_path = {os.fsencode(place.name): place for place in places}
        found: dict[str, T] = {}
        shared: dict[Any, Any] = {}
        renewed = self.renewed
        with self._used() as database:
            if database is not None:
                for path, *row, data, checksum in self._rows(database, list(by_path)):
                    if checksum != _checksum(path, *row, data):
                        raise Damaged("a row is not as it was written")
                    _, stamp, _ = row
                    place = by_path.get(path)
                    if place is not None and stamp == _stamp(place):
                        found[place.name] = self.rows.share(self.rows.decode(data), place, shared)
        return found if self.renewed is renewed else {}

    def heads(self, places: Iterable[ChatFile]) -> dict[str, Head]:
        """Return, by path, what is cached of how these files in their present state are ordered.

        `places`: all files of the store; the rows of others are removed.
        """
        by_path = {os.fsencode(place.name): place for place in places}
        found: dict[str, Head] = {}
        gone: list[tuple[bytes]] = []
        renewed = self.renewed
        decode = msgspec.msgpack.Decoder(Head).decode
        with self._used() as database:
            if database is not None:
                for path, stamp, head, checksum in database.execute(_SELECT_HEADS, [self._home]):
                    if checksum != _checksum(path, stamp, head):
                        raise Damaged("a row is not as it was written")
                    if (place := by_path.get(path)) is None:
                        gone.append((path,))
                    elif stamp == _stamp(place):
                        found[place.name] = decode(head)
        self._change("delete from summary where path = ?", gone)
        return found if self.renewed is renewed else {}

    def _rows(self, database: sqlite3.Connection, paths: Sequence[bytes]) -> Iterator[Any]:
        """The rows of some files; where there are many, of the whole store."""
        if len(paths) > _AT_ONCE:
            return database.execute(f"{_SELECT} where home = ?", [self._home])
        marks = ",".join("?" * len(paths))
        return database.execute(f"{_SELECT} where path in ({marks})", paths)

    def put(self, known: Iterable[tuple[ChatFile, T]]) -> None:
        """Keep what was read; a row replaces an earlier one of the same file."""
        rows: list[tuple[bytes | int, ...]] = []
        for place, each in known:
            head, data = _packed(self.rows.head(each)), _packed(each)
            if head is not None and data is not None:
                path, stamp = os.fsencode(place.name), _stamp(place)
                row = path, self._home, stamp, head, data
                rows.append((*row, _checksum(path, stamp, head), _checksum(*row)))
        self._change("insert or replace into summary values (?,?,?,?,?,?,?)", rows)

    def keep_only(self, places: Iterable[ChatFile]) -> None:
        """Remove the rows of files of this store that no longer exist."""
        there = {os.fsencode(place.name) for place in places}
        self._remove_all(lambda path: path not in there)

    def remove_gone(self, known: Iterable[str]) -> None:
        """The same where only some files are known to exist: for the others the disk is asked."""
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
        """The open database; whatever it fails at ends its use, or makes it anew, with a word.

        Only another gemtui that holds it just now does not: what was not kept is read again.
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
        """Replace the file by an empty one, unless what is wrong is around it: all in it can be
        made again.
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
            what = f"the cache was damaged ({why(error)}) and has been rebuilt"
            self.renewed = Problem(path=path, line=None, what=what)

    def _give_up(self, path: Path, error: Exception) -> None:
        what = f"cache not used: {why(error)}; sessions are read again"
        self.problem = Problem(path=path, line=None, what=what)
        if self._database is not None:
            with suppress(sqlite3.Error):
                self._database.close()
        self._database = None


def _connect(path: Path, rows: CachedRows[Any]) -> sqlite3.Connection:
    database = connect(path, wait=_WAIT, any_thread=True)
    try:
        database.execute("pragma synchronous = off")  # what a power cut breaks is made anew
        database.execute("begin")
        version = _version(database, rows)
        database.execute("commit")
        if version != rows.version:
            database.execute("begin immediate")
            if _version(database, rows) != rows.version:
                database.execute("drop table if exists summary")
                database.execute(_TABLE)
                database.execute(f"pragma user_version = {rows.version}")
                database.execute(f"pragma application_id = {rows.application + rows.version}")
            database.execute("commit")
    except BaseException:
        database.close()
        raise
    return database


def _version(database: sqlite3.Connection, rows: CachedRows[Any]) -> int:
    """The version of an older cache, ours, or 0 of a new file. Raises Newer, Damaged."""
    application, version = identity(database)
    marked = version and version >= rows.first_marked
    if application != (rows.application + version if marked else 0):
        raise Damaged("its version can't be")
    if version > rows.version:
        raise Newer
    return version


def _remove(path: Path) -> None:
    for ending in ("", "-journal", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


# --- what stands in a row ------------------------------------------------------------------------


_SELECT = "select path, home, stamp, head, data, checksum from summary"
_SELECT_HEADS = "select path, stamp, head, head_checksum from summary where home = ?"
_pack = msgspec.msgpack.Encoder().encode


def _stamp(place: ChatFile) -> bytes:
    return b"%d %d %d %d" % place.stamp


def _checksum(*row: bytes) -> int:
    return zlib.crc32(b"\0".join(row))


def _packed(known: object) -> bytes | None:
    """A row's data; None for what is no text (undecodable file names)."""
    try:
        return _pack(known)
    except UnicodeEncodeError:
        return None


def _sharing(known: Known, place: ChatFile, shared: dict[Any, Any]) -> Known:
    """The same, without a copy of its own of what many have: a store may have ten thousand."""
    if isinstance(known, Unread):
        return known
    return replace(
        known,
        names=(place.name,),
        project_key=place.project_key,
        project_hash=shared.setdefault(known.project_hash, known.project_hash),
        models=shared.setdefault(known.models, known.models),
        files_written=tuple([shared.setdefault(path, path) for path in known.files_written]),
    )


def head_of(known: Known) -> Head:
    """Return what orders a session among others."""
    if isinstance(known, Unread):
        return Head()
    return Head(str(known.kind), known.id, known.when.timestamp(), known.hidden)


SUMMARIES: CachedRows[Known] = CachedRows(
    file=FILE,
    version=VERSION,
    application=APPLICATION,
    first_marked=3,
    decode=msgspec.msgpack.Decoder(Known).decode,
    share=_sharing,
    head=head_of,
)
"""What lists show of each session."""


def worth_keeping(place: ChatFile, known: Known | Problem | None) -> list[tuple[ChatFile, Known]]:
    """Return the row to cache, if what was read is valid as long as the file is unchanged."""
    if isinstance(known, Unread) or (isinstance(known, Summary) and not known.partial):
        return [(place, known)]
    return []
