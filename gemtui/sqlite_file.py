"""Helpers for gemtui's small SQLite files: id, version and corruption checks."""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG

from gemtui.errors import reason_of

_AROUND = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
    }
)
"""SQLite errors with causes outside the file's contents, such as locks."""


JOURNALS = ("-journal", "-wal", "-shm")
"""Endings of the files in which SQLite keeps unfinished changes."""


class Damaged(ValueError):
    """Raised if a file contains something that gemtui can't have written."""


class Newer(Exception):
    """Raised for a file written by a newer version of gemtui."""

    def __init__(self) -> None:
        super().__init__("it was written by a newer gemtui")


DAMAGE = (sqlite3.Error, ValueError, TypeError, OverflowError, RecursionError)
"""Errors that a corrupt file can cause while its rows are being read and decoded."""


def connect(
    path: Path, *, wait: float, any_thread: bool = False, create: bool = True
) -> sqlite3.Connection:
    """Open a database file in autocommit mode.

    `create`: create the file if it is missing; otherwise, its first use raises sqlite3.Error.
    `wait`: seconds to wait for another process that is writing to the file. `any_thread`: allow use
    from any thread; the caller ensures that only one thread at a time uses the connection. Raises
    sqlite3.Error and OSError. Raises Damaged if a journal file isn't a regular file, because SQLite
    would wait forever for a pipe.
    """
    for journal in JOURNALS:
        with suppress(FileNotFoundError):
            if not S_ISREG(os.lstat(f"{path}{journal}").st_mode):
                raise Damaged(f"{path.name}{journal} is not a file")
    name = f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
    return sqlite3.connect(
        name, uri=True, timeout=wait, isolation_level=None, check_same_thread=not any_thread
    )


def application_and_version(database: sqlite3.Connection) -> tuple[int, int]:
    """Return a file's application id and version; (0, 0) for a new file."""
    application: int = database.execute("pragma application_id").fetchone()[0]
    version: int = database.execute("pragma user_version").fetchone()[0]
    return application, version


def code_of(error: BaseException) -> int | None:
    """Return the primary SQLite code of an error; None if it has none."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def is_damage(error: BaseException) -> bool:
    """Return whether an error means that a file's contents are corrupt."""
    return not isinstance(error, (OSError, Newer)) and code_of(error) not in _AROUND


def why(error: BaseException) -> str:
    """Return a one-line message for an error, without text from a corrupt file."""
    if isinstance(error, OSError):
        return reason_of(error)
    if isinstance(error, (Newer, Damaged)) or not is_damage(error):
        return str(error)
    return "its contents are corrupt"


def checksum(row: Sequence[object]) -> int:
    """Return the checksum to store with a row of strings, numbers, bytes and None."""
    return zlib.crc32(repr(tuple(row)).encode(errors="replace"))
