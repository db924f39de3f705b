"""What could not be read of the store or of a session."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct


class Problem(Struct, frozen=True, kw_only=True):
    """Something in a file that could not be read; `line` from 1, None = the whole file.

    `too_large`: for us; others may read it.
    """

    path: Path
    line: int | None
    what: str
    too_large: bool = False


def refused(path: Path, error: OSError) -> Problem:
    """Return the problem that the system's refusal to open a path is."""
    return Problem(path=path, line=None, what=f"can't be read: {error.strerror or error}")
