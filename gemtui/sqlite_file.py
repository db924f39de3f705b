"""The common parts of our small SQLite files: id, version and checks for damage."""

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
"""SQLite's errors about a file's surroundings rather than its content."""


_JOURNALS = ("-journal", "-wal", "-shm")


class Damaged(ValueError):
    """Raised for file contents that gemtui can't have written."""


class Newer(Exception):
    """Raised for a file that was written by a newer gemtui."""

    def __init__(self) -> None:
        super().__init__("it was written by a newer gemtui")


DAMAGE = (sqlite3.Error, ValueError, TypeError, OverflowError, RecursionError)
"""Errors that a damaged file can cause while its rows are read and decoded."""


def connect(path: Path, *, wait: float, any_thread: bool = False) -> sqlite3.Connection:
    """Open a file in autocommit mode.

    `wait`: seconds to wait for another program that writes to it. `any_thread`: the caller ensures
    that only one thread at a time uses it. Raises sqlite3.Error, OSError, and Damaged if something
    else is in the place of a journal, as SQLite would wait for a pipe for ever.
    """
    for journal in _JOURNALS:
        with suppress(FileNotFoundError):
            if not S_ISREG(os.lstat(f"{path}{journal}").st_mode):
                raise Damaged(f"{path.name}{journal} is not a file")
    return sqlite3.connect(
        path, timeout=wait, isolation_level=None, check_same_thread=not any_thread
    )


def identity(database: sqlite3.Connection) -> tuple[int, int]:
    """Return the application id and the version of a file; (0, 0) for a new one."""
    application: int = database.execute("pragma application_id").fetchone()[0]
    version: int = database.execute("pragma user_version").fetchone()[0]
    return application, version


def code_of(error: BaseException) -> int | None:
    """Return an error's primary SQLite code; None if it is not an SQLite error."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def is_damage(error: BaseException) -> bool:
    """Return whether an error is about the file's content, not its surroundings."""
    return not isinstance(error, (OSError, Newer)) and code_of(error) not in _AROUND


def why(error: BaseException) -> str:
    """Return a one-line message for an error, without text from a damaged file."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, (Newer, Damaged)) or not is_damage(error):
        return str(error)
    return "its content is damaged"


def checksum(row: Sequence[object]) -> int:
    """Return the checksum to store with a row of texts, numbers, bytes and None."""
    return zlib.crc32(repr(tuple(row)).encode(errors="replace"))
