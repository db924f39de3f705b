"""The list of indexed session files and their versions, in SQLite.

All documents of a file carry the same document number, which identifies the file; a file indexed in
parts has several such numbers. A changed file gets a new number, and no number is used twice.
Documents whose numbers are not in the list are never found, so nothing is found twice if indexing
is interrupted.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import msgspec.msgpack
from msgspec import Struct

from gemtui import system
from gemtui.sessions.catalog.file_in_use import identity
from gemtui.sessions.store.store import ChatFile, SessionKind
from gemtui.sqlite_file import Damaged, application_and_version, connect

VERSION = 11
"""The version of the list and the documents.

Increase it when either changes, so that every index is rebuilt.
"""
_APPLICATION = 0x67657300
_WAIT = 2.0
"""Seconds to wait for another process, which locks the file for milliseconds."""
_TABLES = """
    create table shelf (number integer primary key, paths blob, files blob, checksum integer);
    create table replaced (number integer primary key);
    create table index_name (name text);
"""
_SHELVES = 64
"""Number of database rows over which the files are distributed.

Few rows are fast to read. A single row would have to be written anew, all megabytes of it, whenever
a session grows.
"""
_encode = msgspec.msgpack.Encoder().encode


def index_folder(cache: Path, home: Path) -> Path:
    """Return the folder for a store's search index, inside gemtui's cache folder.

    `home`: the folder that contains the store (`~/.gemini`).
    """
    name = hashlib.sha256(os.fsencode(os.path.realpath(home))).hexdigest()[:16]
    return cache / "search" / name


def list_file(folder: Path) -> Path:
    """Return the path of an index's list of files."""
    return folder / "files.sqlite3"


class NoIndex(Exception):
    """Raised if there is no usable index; the message says why.

    `is_there`: whether an index exists. `damaged`: whether the existing index is corrupt.
    """

    def __init__(self, why: str, *, is_there: bool = True, damaged: bool = False) -> None:
        super().__init__(why)
        self.is_there = is_there
        self.damaged = damaged


class IndexedFile(Struct, frozen=True, array_like=True, gc=False):
    """A file in the index.

    `numbers`: the numbers of its documents. `stamp`: the `ChatFile.stamp` of the indexed version.
    `size`: in bytes. `modified`: seconds since 1970, as in `ChatFile.modified`. `session`: the
    result of `session_of`, which is the same for all files of one session; "" if the file contains
    no session.
    """

    numbers: tuple[int, ...]
    stamp: tuple[int, ...]
    size: int
    modified: float
    session: str


def session_of(kind: SessionKind, id: str) -> str:
    """Return `identity` as a string, for a session that is not a checkpoint.

    Undecodable characters in an id are replaced; an id may come from a file name.
    """
    key = identity(kind, id, "")
    return f"{key[0]} {key[1]}".encode(errors="replace").decode()


def id_of(session: str) -> str:
    """Return the session's id in a key returned by `session_of`."""
    return session.partition(" ")[2]


class Indexed(NamedTuple):
    """A newly indexed file's document numbers and session (see `IndexedFile`)."""

    numbers: tuple[int, ...]
    session: str


class FileList:
    """The list of indexed files at `path`.

    `name`: the name of the folder with the text index that belongs to this list. Creating an
    instance may raise sqlite3.Error; it raises NoIndex if there is no list of this version.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            there = os.path.lexists(path)
            raise NoIndex(
                "its list of files is not a file" if there else "no index exists yet",
                is_there=there,
            )
        self._database = connect(path, wait=_WAIT, any_thread=True)
        try:
            self._database.execute("pragma synchronous = off")  # a corrupt list is rebuilt
            self.name = self._name()
        except BaseException:
            self.close()
            raise

    @classmethod
    def create(cls, path: Path, name: str) -> FileList:
        """Create an empty list that only the user can read.

        `name`: as in `FileList`.
        """
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | system.OWN, 0o600))
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
        application, version = application_and_version(self._database)
        if application != _APPLICATION:
            raise NoIndex("it is not a search index of gemtui")
        if version != VERSION:
            raise NoIndex("it belongs to another version of gemtui")
        return str(self._database.execute("select name from index_name").fetchone()[0])

    def _number(self, pragma: str) -> int:
        return int(self._database.execute(f"pragma {pragma}").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        with suppress(sqlite3.Error):
            self._database.close()

    @property
    def revision(self) -> int:
        """A number that changes whenever another program changes the list."""
        return self._number("data_version")

    def rows(self) -> dict[str, IndexedFile]:
        """Return an IndexedFile for each file in the index, by path.

        Raises Damaged or sqlite3.Error.
        """
        return self._rows(range(_SHELVES))

    def _rows(self, shelves: Collection[int]) -> dict[str, IndexedFile]:
        rows: dict[str, IndexedFile] = {}
        marks = ",".join("?" * len(shelves))
        select = f"select paths, files, checksum from shelf where number in ({marks})"
        for paths, files, kept in self._database.execute(select, [*shelves]):
            if kept != crc32(files, crc32(paths)):
                raise Damaged("a record has changed since it was saved")
            rows.update(zip(os.fsdecode(paths).split("\0"), _decode(files), strict=True))
        return rows

    def _fill(self, number: int, rows: Mapping[str, IndexedFile]) -> None:
        self._database.execute("delete from shelf where number = ?", [number])
        if rows:
            paths, files = os.fsencode("\0".join(rows)), _encode(list(rows.values()))
            values = [number, paths, files, crc32(files, crc32(paths))]
            self._database.execute("insert into shelf values (?,?,?,?)", values)

    def replaced(self) -> list[int]:
        """Return the document numbers that no file uses any more.

        The documents with these numbers still have to be deleted from the index.
        """
        return [number for (number,) in self._database.execute("select number from replaced")]

    def change(
        self,
        taken: Mapping[ChatFile, Indexed],
        gone: Iterable[str],
        *,
        replaced: Iterable[int],
        removed: Iterable[int],
    ) -> None:
        """Add and remove files with their document numbers, in one transaction.

        `taken`: the files to add. `gone`: paths of files to remove from the list. `replaced`:
        document numbers that no longer belong to any file. `removed`: previously replaced numbers
        whose documents have been deleted.
        """
        changes: dict[int, dict[str, IndexedFile | None]] = {}
        for path, file in (*((path, None) for path in gone), *map(_row, taken.items())):
            changes.setdefault(crc32(os.fsencode(path)) % _SHELVES, {})[path] = file
        execute, executemany = self._database.execute, self._database.executemany
        execute("begin immediate")
        try:
            executemany("delete from replaced where number = ?", [(number,) for number in removed])
            executemany("insert into replaced values (?)", [(number,) for number in replaced])
            for number, changed in changes.items():
                rows = self._rows([number]) | changed
                self._fill(number, {path: file for path, file in rows.items() if file is not None})
            execute("commit")
        except BaseException:
            with suppress(sqlite3.Error):
                execute("rollback")
            raise


def _row(taken: tuple[ChatFile, Indexed]) -> tuple[str, IndexedFile]:
    place, file = taken
    modified = place.modified.timestamp()
    return place.name, IndexedFile(file.numbers, place.stamp, place.size, modified, file.session)


_decode = msgspec.msgpack.Decoder(list[IndexedFile]).decode
