"""Summaries kept between starts: one SQLite file in our cache folder, private to the user.

It holds titles (the first words of prompts), paths of written files and counts, so the folder is
0700 and the file 0600. A row is valid while inode, size, time and mode of its session file are
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
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import astuple

from gemtui.errors import NotASession, SessionTooLarge
from gemtui.sessions.records import Problem, SessionLog
from gemtui.sessions.store import ChatFile, SessionKind
from gemtui.sessions.summary import Flag, Summary, TitleSource, summarise
from gemtui.transcript.model import Usage

VERSION = 4
"""Of the rows. A cache of an older version is replaced, one of a newer version is left alone."""
APPLICATION = 0x67656D00
"""With the version added it is the file's application id: a version that does not fit is damage."""
FILE = "sessions.sqlite3"
_WAIT = 0.25
"""Seconds to wait for another gemtui, which only holds the file for milliseconds."""
_AT_ONCE = 500
_TABLE = """
    create table summary (
        path blob primary key, home blob, stamp blob, data blob, checksum integer
    ) without rowid
"""


class Unread(Struct, frozen=True, kw_only=True):
    """A file that holds no session, or one that is too large: it need not be read again."""

    what: str
    too_large: bool = False


Known = Summary | Unread
_Row = tuple[bytes, bytes, bytes, bytes]
"""Path, home, stamp, data."""


class Cache:
    """The cached summaries of one store; without a file every method does or finds nothing.

    `folder`: our cache folder, None = no cache. Several programs may use one cache at once.
    `problem`: why there is no cache, if so. `renewed`: why it was replaced by an empty one, if it
    was.
    """

    def __init__(self, folder: Path | None, home: Path) -> None:
        self.path = None if folder is None else folder / FILE
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

    def get(self, places: Iterable[ChatFile]) -> dict[str, Known]:
        """Return, by path, what is cached of these files in their present state."""
        by_path = {os.fsencode(place.name): place for place in places}
        found: dict[str, Known] = {}
        renewed = self.renewed
        paths = list(by_path)
        for start in range(0, len(paths), _AT_ONCE):
            some = paths[start : start + _AT_ONCE]
            with self._used() as database:
                if database is not None:
                    marks = ",".join("?" * len(some))
                    for row in database.execute(f"{_SELECT} where path in ({marks})", some):
                        place, stamp, known = _checked(row, by_path)
                        if stamp == _stamp(place):
                            found[place.name] = known
        return found if self.renewed is renewed else {}

    def put(self, known: Iterable[tuple[ChatFile, Known]]) -> None:
        """Keep what was read; a row replaces an earlier one of the same file."""
        rows: list[tuple[bytes | int, ...]] = []
        for place, each in known:
            data = _packed(each)
            if data is not None:
                row = os.fsencode(place.name), self._home, _stamp(place), data
                rows.append((*row, _checksum(row)))
        self._change("insert or replace into summary values (?,?,?,?,?)", rows)

    def keep_only(self, places: Iterable[ChatFile]) -> None:
        """Remove the rows of files of this store that no longer exist."""
        there = {os.fsencode(place.name) for place in places}
        gone: list[tuple[bytes]] = []
        with self._used() as database:
            if database is not None:
                rows = database.execute("select path from summary where home = ?", [self._home])
                gone = [row for row in rows if row[0] not in there]
        self._change("delete from summary where path = ?", gone)

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
                if _code(error) == sqlite3.SQLITE_BUSY:
                    self._database.rollback()
                else:
                    self._recover(self.path, error)

    # --- the file ----------------------------------------------------------------------------

    def _open(self, path: Path) -> None:
        try:
            _private(path)
            self._database = _connect(path)
        except Exception as error:
            self._recover(path, error)

    def _recover(self, path: Path, error: Exception) -> None:
        """Replace the file by an empty one, unless what is wrong is around it: all in it can be
        made again.
        """
        self._give_up(path, error)
        if isinstance(error, (OSError, _Newer)) or _code(error) in _NOT_THE_FILE:
            return
        try:
            _remove(path)
            _private(path)
            self._database = _connect(path)
        except Exception as another:
            self._give_up(path, another)
        else:
            self.problem = None
            what = f"the cache was damaged ({error}) and has been made anew"
            self.renewed = Problem(path=path, line=None, what=what)

    def _give_up(self, path: Path, error: Exception) -> None:
        what = f"cache not used: {error}; sessions are read anew"
        self.problem = Problem(path=path, line=None, what=what)
        if self._database is not None:
            with suppress(sqlite3.Error):
                self._database.close()
        self._database = None


_NOT_THE_FILE = frozenset(
    {
        sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PERM, sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_NOMEM,
    }
)  # fmt: skip
"""What SQLite says of its surroundings, not of what stands in the file."""


def _code(error: Exception) -> int | None:
    """SQLite's code of an error without its details; None if it is not SQLite's."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


class _Damaged(Exception):
    """What stands in the file can't be what gemtui wrote."""


class _Newer(Exception):
    """The cache was written by a newer gemtui."""


def _private(path: Path) -> None:
    """Make the folder 0700 and the file 0600 before anything is written into it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path.parent.stat().st_mode & 0o077:
        path.parent.chmod(0o700)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.fchmod(handle, 0o600)
    finally:
        os.close(handle)


def _connect(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
    try:
        database.execute("pragma synchronous = off")  # what a power cut breaks is made anew
        database.execute("begin")
        version = _version(database)
        database.execute("commit")
        if version != VERSION:
            database.execute("begin immediate")
            if _version(database) != VERSION:
                database.execute("drop table if exists summary")
                database.execute(_TABLE)
                database.execute(f"pragma user_version = {VERSION}")
                database.execute(f"pragma application_id = {APPLICATION + VERSION}")
            database.execute("commit")
    except BaseException:
        database.close()
        raise
    return database


def _version(database: sqlite3.Connection) -> int:
    """The version of an older cache, ours, or 0 of a new file. Raises _Newer, _Damaged."""
    version: int = database.execute("pragma user_version").fetchone()[0]
    application: int = database.execute("pragma application_id").fetchone()[0]
    if application != (APPLICATION + version if version >= VERSION else 0):
        raise _Damaged("its version can't be")
    if version > VERSION:
        raise _Newer("it was written by a newer gemtui")
    return version


def _remove(path: Path) -> None:
    for ending in ("", "-journal", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


# --- what stands in a row ------------------------------------------------------------------------


_SELECT = "select path, home, stamp, data, checksum from summary"


def _stamp(place: ChatFile) -> bytes:
    return b"%d %d %d %d" % place.stamp


def _checksum(row: _Row) -> int:
    return zlib.crc32(b"\0".join(row))


def _checked(row: tuple[Any, ...], places: dict[bytes, ChatFile]) -> tuple[ChatFile, bytes, Known]:
    """What a row says, and of what. Raises _Damaged, or anything, if it is none of ours."""
    path, home, stamp, data, checksum = row
    place = places.get(path)
    if place is None or checksum != _checksum((path, home, stamp, data)):
        raise _Damaged("a row is not as it was written")
    return place, stamp, _unpacked(data, place)


def _packed(known: Known) -> bytes | None:
    """A row's data; None for what JSON can't hold (undecodable file names)."""
    try:
        return orjson.dumps([known.what] if isinstance(known, Unread) else _values(known))
    except orjson.JSONEncodeError:
        return None


def _values(summary: Summary) -> list[object]:
    return [
        summary.id,
        summary.title,
        summary.title_source,
        summary.kind,
        summary.format,
        _seconds(summary.started),
        _seconds(summary.updated),
        summary.models,
        summary.prompts,
        summary.messages,
        summary.spoken,
        summary.tool_calls,
        summary.tool_failures,
        astuple(summary.tokens),
        summary.files_written,
        tuple(summary.flags),
        summary.problems,
        summary.directories,
        summary.project_hash,
    ]


def _unpacked(data: bytes, place: ChatFile) -> Known:
    values = orjson.loads(data)
    return Unread(what=values[0]) if len(values) == 1 else _summary(values, place)


def _summary(values: list[Any], place: ChatFile) -> Summary:
    (
        id, title, source, kind, format, started, updated, models, prompts, messages, spoken,
        calls, failures, tokens, written, flags, problems, directories, project_hash,
    ) = values  # fmt: skip
    return Summary(
        id=id,
        title=title,
        title_source=TitleSource(source),
        project=None,
        project_key=place.project_key,
        kind=SessionKind(kind),
        parent=place.parent,
        format=format,
        files=(place.path,),
        size=place.size,
        modified=place.modified,
        started=_time(started),
        updated=_time(updated),
        models=tuple(models),
        prompts=prompts,
        messages=messages,
        spoken=spoken,
        tool_calls=calls,
        tool_failures=failures,
        tokens=Usage(*tokens),
        files_written=tuple(written),
        flags=frozenset(Flag(flag) for flag in flags),
        problems=problems,
        directories=tuple(directories),
        project_hash=project_hash,
    )


def _seconds(when: datetime | None) -> float | None:
    return None if when is None else when.timestamp()


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def never() -> bool:
    """Never cancelled."""
    return False


def read_file(
    log: SessionLog,
    place: ChatFile,
    *,
    upto: int | None = None,
    cancelled: Callable[[], bool] = never,
) -> Known | Problem | None:
    """Read a session file; return its summary or why it holds none.

    A Problem may go away by itself; None = the file is gone. `upto`: read only about that many
    bytes. `cancelled` is asked while reading.
    """
    try:
        log.refresh(upto=upto, cancelled=cancelled)
        return summarise(log, place)
    except (NotASession, SessionTooLarge) as error:
        what = str(error).removeprefix(f"{place.path} ")
        return Unread(what=what, too_large=isinstance(error, SessionTooLarge))
    except FileNotFoundError:
        return None
    except OSError as error:
        return refused(place.path, error)
    except MemoryError:
        return Problem(path=place.path, line=None, what="can't be read: there is no memory left")
    except RecursionError:
        return Unread(what="is nested too deeply to be read")


def refused(path: Path, error: OSError) -> Problem:
    """Return the problem that the system's refusal to open a path is."""
    return Problem(path=path, line=None, what=f"can't be read: {error.strerror or error}")


def worth_keeping(place: ChatFile, known: Known | Problem | None) -> list[tuple[ChatFile, Known]]:
    """Return the row to cache, if what was read is valid as long as the file is unchanged."""
    if isinstance(known, Unread) or (isinstance(known, Summary) and not known.partial):
        return [(place, known)]
    return []
