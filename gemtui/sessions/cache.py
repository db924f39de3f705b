"""Summaries kept between starts: one SQLite file in our cache folder, private to the user.

It holds titles (the first words of prompts), paths of written files and counts, so the folder is
0700 and the file 0600. A row counts only while inode, size and time of its session file are the
same. Whatever is wrong with the cache (damaged, locked, not writable, written by a newer gemtui),
gemtui works without it and `problem` says so.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from gemtui.sessions.records import Problem
from gemtui.sessions.store import ChatFile, SessionKind
from gemtui.sessions.summary import Flag, Summary, TitleSource
from gemtui.transcript.model import Usage

VERSION = 2
"""Of the rows. A cache of an older version is made anew, one of a newer is left alone."""
FILE = "sessions.sqlite3"
_WAIT = 0.25
"""Seconds to wait for another gemtui, which only holds the file for milliseconds."""
_AT_ONCE = 500
_TABLE = """
    create table summary (
        path blob primary key, home blob, inode integer, size integer, mtime_ns integer, data blob
    ) without rowid
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A file that is no session, or one that is too large: it need not be tried again."""

    what: str


Known = Summary | Unread


class Cache:
    """The summaries of one store; every method does nothing, or finds nothing, without a file.

    `folder`: our cache folder, None = no cache. Several programs may use one cache at once.
    """

    def __init__(self, folder: Path | None, home: Path) -> None:
        self.path = None if folder is None else folder / FILE
        self.problem: Problem | None = None
        self._home = os.fsencode(home)
        self._lock = threading.Lock()
        self._database: sqlite3.Connection | None = None
        if self.path is not None:
            self._open(self.path)

    def close(self) -> None:
        """Close the file; the cache is empty from then on."""
        with self._lock:
            if self._database is not None:
                self._database.close()
            self._database = None

    # --- rows --------------------------------------------------------------------------------

    def get(self, places: Iterable[ChatFile]) -> dict[str, Known]:
        """What is known of these files as they are now."""
        by_path = {os.fsencode(place.name): place for place in places}
        found: dict[str, Known] = {}
        paths = list(by_path)
        for start in range(0, len(paths), _AT_ONCE):
            some = paths[start : start + _AT_ONCE]
            marks = ",".join("?" * len(some))
            for path, *stamp, data in self._select(f"path in ({marks})", some):
                place = by_path[path]
                known = _unpacked(data, place) if tuple(stamp) == place.stamp else None
                if known is not None:
                    found[place.name] = known
        return found

    def put(self, known: Iterable[tuple[ChatFile, Known]]) -> None:
        """Keep what was found out; a later row for the same file replaces the earlier."""
        rows: list[tuple[Any, ...]] = []
        for place, each in known:
            data = _packed(each)
            if data is not None:
                rows.append((os.fsencode(place.name), self._home, *place.stamp, data))
        self._change("insert or replace into summary values (?,?,?,?,?,?)", rows)

    def keep_only(self, places: Iterable[ChatFile]) -> None:
        """Forget files of this store that are no longer there."""
        there = {os.fsencode(place.name) for place in places}
        gone = [row[:1] for row in self._select("home = ?", [self._home]) if row[0] not in there]
        self._change("delete from summary where path = ?", gone)

    def _select(self, where: str, values: list[bytes]) -> list[tuple[Any, ...]]:
        columns = "path, inode, size, mtime_ns, data"
        with self._used() as database:
            if database is None:
                return []
            return database.execute(
                f"select {columns} from summary where {where}", values
            ).fetchall()
        return []

    def _change(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        with self._used() as database:
            if database is not None and rows:
                database.execute("begin immediate")
                database.executemany(statement, rows)
                database.execute("commit")

    @contextmanager
    def _used(self) -> Iterator[sqlite3.Connection | None]:
        """The open database; whatever it fails at ends its use, with a word.

        Only another gemtui that holds it just now does not: what was not kept is read again.
        """
        with self._lock:
            try:
                yield self._database
            except (sqlite3.Error, OverflowError) as error:
                if self._database is not None and _busy(error):
                    self._database.rollback()
                    return
                self._give_up(f"{error}; sessions are read anew")
                if type(error) is sqlite3.DatabaseError and self.path is not None:
                    self._rebuild(self.path)

    # --- the file ----------------------------------------------------------------------------

    def _open(self, path: Path) -> None:
        try:
            _private(path)
            self._database = _connect(path)
        except (OSError, sqlite3.Error, _Newer) as error:
            self._give_up(f"{error}; sessions are read anew")
            if type(error) is sqlite3.DatabaseError:
                self._rebuild(path)

    def _rebuild(self, path: Path) -> None:
        """Replace a damaged file by an empty one: all in it can be made again."""
        try:
            _remove(path)
            _private(path)
            self._database = _connect(path)
            self.problem = None
        except (OSError, sqlite3.Error, _Newer) as error:
            self._give_up(f"{error}; sessions are read anew")

    def _give_up(self, why: str) -> None:
        if self.path is not None:
            self.problem = Problem(path=self.path, line=None, what=f"cache not used: {why}")
        if self._database is not None:
            self._database.close()
        self._database = None


def _busy(error: Exception) -> bool:
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY


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
        if _version(database) != VERSION:
            database.execute("begin immediate")
            if _version(database) != VERSION:
                database.execute("drop table if exists summary")
                database.execute(_TABLE)
                database.execute(f"pragma user_version = {VERSION}")
            database.execute("commit")
    except BaseException:
        database.close()
        raise
    return database


def _version(database: sqlite3.Connection) -> int:
    version: int = database.execute("pragma user_version").fetchone()[0]
    if version > VERSION:
        raise _Newer("it was written by a newer gemtui")
    return version


def _remove(path: Path) -> None:
    for each in (path, path.with_name(f"{path.name}-journal")):
        each.unlink(missing_ok=True)


# --- what stands in a row ------------------------------------------------------------------------


def _packed(known: Known) -> bytes | None:
    """A row's data; None for what JSON can't hold (undecodable file names)."""
    try:
        return orjson.dumps([known.what] if isinstance(known, Unread) else _values(known))
    except orjson.JSONEncodeError:
        return None


def _values(summary: Summary) -> list[object]:
    usage = summary.tokens
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
        (usage.input, usage.output, usage.cached, usage.thoughts, usage.tool, usage.total),
        summary.files_written,
        tuple(summary.flags),
        summary.problems,
        summary.directories,
        summary.project_hash,
    ]


def _unpacked(data: bytes, place: ChatFile) -> Known | None:
    """What a row says; None if it is none of ours."""
    try:
        values = orjson.loads(data)
        return Unread(what=values[0]) if len(values) == 1 else _summary(values, place)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _summary(values: list[Any], place: ChatFile) -> Summary:
    (
        id, title, source, kind, format, started, updated, models, prompts, messages, spoken,
        calls, failures, tokens, written, flags, problems, directories, project_hash,
    ) = values  # fmt: skip
    names = ("input", "output", "cached", "thoughts", "tool", "total")
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
        modified=datetime.fromtimestamp(place.mtime_ns / 1e9, UTC),
        started=_time(started),
        updated=_time(updated),
        models=tuple(models),
        prompts=prompts,
        messages=messages,
        spoken=spoken,
        tool_calls=calls,
        tool_failures=failures,
        tokens=Usage(**dict(zip(names, tokens, strict=True))),
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
