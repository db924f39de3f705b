"""Which version of which session file the index holds: one SQLite file beside the words.

A file's documents carry its number, or one of several where it was indexed in parts. What changed
gets a new number, and no number is given twice: whatever is interrupted, documents of numbers that
are not in the list are not found.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import msgspec.msgpack
from msgspec import Struct

from gemtui.sessions.store import ChatFile, SessionKind
from gemtui.sqlite_file import Damaged, connect, identity

VERSION = 6
"""Of list and documents. Raise it when either changes: an index of another version is made anew."""
_APPLICATION = 0x67657300
_WAIT = 2.0
"""Seconds to wait for another gemtui, which only holds the file for milliseconds."""
_TABLES = """
    create table file (path blob primary key, data blob, checksum integer) without rowid;
    create table replaced (number integer primary key);
    create table index_name (name text);
"""
_encode = msgspec.msgpack.Encoder().encode


def index_folder(cache: Path, home: Path) -> Path:
    """Return where the index of the store in `home` is kept: a folder of our cache folder."""
    name = hashlib.sha256(os.fsencode(os.path.realpath(home))).hexdigest()[:16]
    return cache / "search" / name


def list_file(folder: Path) -> Path:
    """Return where the list of an index is."""
    return folder / "files.sqlite3"


class NoIndex(Exception):
    """There is no index that this gemtui can use; the words say why.

    `is_there`: there is one. `damaged`: it is none any more.
    """

    def __init__(self, why: str, *, is_there: bool = True, damaged: bool = False) -> None:
        super().__init__(why)
        self.is_there = is_there
        self.damaged = damaged


class IndexedFile(Struct, frozen=True, array_like=True, gc=False):
    """A file in the index.

    `numbers`: those of its documents. `stamp`: `ChatFile.stamp` of the version that was read.
    `size`: bytes. `modified`: the time of change in seconds since 1970, as `ChatFile.modified` has
    it. `session`: what the files of one session share, `session_of`; "" = it holds none.
    """

    numbers: tuple[int, ...]
    stamp: tuple[int, ...]
    size: int
    modified: float
    session: str


def session_of(kind: SessionKind, id: str) -> str:
    """Return the session in a file as a row holds it; an id from a file's name may be no text."""
    return f"{kind} {id}".encode(errors="replace").decode()


class Indexed(NamedTuple):
    """A file as it was indexed: as `IndexedFile.numbers` and `IndexedFile.session`."""

    numbers: tuple[int, ...]
    session: str


class FileList:
    """The list at `path`. Raises NoIndex if there is none of our version, and sqlite3.Error.

    `name`: that of the folder with the words that belong to it.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            there = os.path.lexists(path)
            raise NoIndex("its list is no file" if there else "there is none yet", is_there=there)
        self._database = connect(path, wait=_WAIT, any_thread=True)
        try:
            self._database.execute("pragma synchronous = off")  # what a power cut breaks is remade
            self.name = self._name()
        except BaseException:
            self.close()
            raise

    @classmethod
    def create(cls, path: Path, name: str) -> FileList:
        """Make an empty list, readable by the user alone."""
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        database = connect(path, wait=_WAIT)
        with database:
            database.executescript(f"begin; {_TABLES}")
            database.execute("insert into index_name values (?)", [name])
            database.execute(f"pragma user_version = {VERSION}")
            database.execute(f"pragma application_id = {_APPLICATION}")
            database.execute("commit")
        database.close()
        return cls(path)

    def _name(self) -> str:
        application, version = identity(self._database)
        if application != _APPLICATION:
            raise NoIndex("what is there is no index of gemtui")
        if version != VERSION:
            raise NoIndex("it is of another version")
        return str(self._database.execute("select name from index_name").fetchone()[0])

    def _number(self, pragma: str) -> int:
        return int(self._database.execute(f"pragma {pragma}").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        with suppress(sqlite3.Error):
            self._database.close()

    @property
    def revision(self) -> int:
        """Another number whenever another program has changed the list."""
        return self._number("data_version")

    def rows(self) -> dict[str, IndexedFile]:
        """Return all files in the index, by path. Raises Damaged, sqlite3.Error."""
        found: dict[str, IndexedFile] = {}
        decode = msgspec.msgpack.Decoder(IndexedFile).decode
        for path, data, kept in self._database.execute("select path, data, checksum from file"):
            if kept != crc32(data, crc32(path)):
                raise Damaged("a row is not as it was written")
            found[os.fsdecode(path)] = decode(data)
        return found

    def replaced(self) -> list[int]:
        """Return the numbers whose documents no list names any more."""
        return [number for (number,) in self._database.execute("select number from replaced")]

    def change(
        self,
        taken: Mapping[ChatFile, Indexed],
        gone: Iterable[str],
        *,
        replaced: Iterable[int],
        removed: Iterable[int],
    ) -> None:
        """Take files under their numbers, and drop others, all at once.

        `replaced`: numbers that no file has any more. `removed`: those of them whose documents have
        been removed.
        """
        paths = [(os.fsencode(path),) for path in (*(place.name for place in taken), *gone)]
        new = [_values(place, each) for place, each in taken.items()]
        execute, executemany = self._database.execute, self._database.executemany
        execute("begin immediate")
        try:
            executemany("delete from replaced where number = ?", [(each,) for each in removed])
            executemany("insert into replaced values (?)", [(each,) for each in replaced])
            executemany("delete from file where path = ?", paths)
            executemany("insert into file values (?,?,?)", new)
            execute("commit")
        except BaseException:
            with suppress(sqlite3.Error):
                execute("rollback")
            raise


def _values(place: ChatFile, file: Indexed) -> tuple[bytes, bytes, int]:
    path, modified = os.fsencode(place.name), place.modified.timestamp()
    data = _encode(IndexedFile(file.numbers, place.stamp, place.size, modified, file.session))
    return path, data, crc32(data, crc32(path))
