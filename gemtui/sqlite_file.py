"""What small SQLite files of ours have in common: an id, a version, and any kind of damage."""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG

_AROUND = frozenset(
    {
        sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PERM, sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN,
    }
)  # fmt: skip
"""What SQLite says of a file's surroundings, not of what is in it."""


_JOURNALS = ("-journal", "-wal", "-shm")


class Damaged(ValueError):
    """What is in the file can't be what gemtui wrote."""


class Newer(Exception):
    """The file was written by a newer gemtui."""

    def __init__(self) -> None:
        super().__init__("it was written by a newer gemtui")


DAMAGE = (sqlite3.Error, ValueError, TypeError, OverflowError, RecursionError)
"""What reading a damaged file raises, while its rows are read and decoded as well."""


def connect(path: Path, *, wait: float, any_thread: bool = False) -> sqlite3.Connection:
    """Open a file; statements that change it begin and commit by themselves.

    `wait`: seconds to wait for another program that writes to it. `any_thread`: the caller sees to
    it that one thread at a time uses it. Raises sqlite3.Error, OSError, and Damaged where something
    else is in the place of a journal: SQLite would wait for a pipe for ever.
    """
    for journal in _JOURNALS:
        with suppress(FileNotFoundError):
            if not S_ISREG(os.lstat(f"{path}{journal}").st_mode):
                raise Damaged(f"{path.name}{journal} is no file")
    return sqlite3.connect(
        path, timeout=wait, isolation_level=None, check_same_thread=not any_thread
    )


def identity(database: sqlite3.Connection) -> tuple[int, int]:
    """Return the application id and the version of a file; (0, 0) for a new one."""
    application: int = database.execute("pragma application_id").fetchone()[0]
    version: int = database.execute("pragma user_version").fetchone()[0]
    return application, version


def code_of(error: BaseException) -> int | None:
    """Return SQLite's code of an error without its details; None if it is not SQLite's."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def is_damage(error: BaseException) -> bool:
    """Return whether an error is about what is in the file, which making it anew would mend."""
    return not isinstance(error, (OSError, Newer)) and code_of(error) not in _AROUND


def why(error: BaseException) -> str:
    """Return the words for an error in one line; what a damaged file made up is not repeated."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, (Newer, Damaged)) or not is_damage(error):
        return str(error)
    return "its content is damaged"


def checksum(row: Sequence[object]) -> int:
    """Return the checksum that is kept with a row of texts, numbers, bytes and None."""
    return zlib.crc32(repr(tuple(row)).encode(errors="replace"))
