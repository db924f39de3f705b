"""Read small JSON files that others may have written: settings of the CLI, records of runs."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import orjson

from gemtui.files import SMALL, read_small
from gemtui.jsonin import is_deep, loads

DEEPEST = 100
"""Levels of nested lists and objects; a value with more could exhaust the stack later."""


def read_object(path: Path, most: int = SMALL) -> dict[str, Any]:
    """Read a JSON object from a small regular file.

    Raises OSError as `read_small` does, and also if the file contains anything else.
    """
    return object_of(read_small(path, most), path)


def object_of(data: bytes, path: Path) -> dict[str, Any]:
    """Parse a JSON object from `data`, the content of `path`. Raises OSError as `read_object`."""
    try:
        value = loads(data)
    except orjson.JSONDecodeError as error:
        raise _broken(path, f"not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise _broken(path, "not a JSON object")
    if is_deep(value, DEEPEST):
        raise _broken(path, f"nested more than {DEEPEST} levels deep")
    return value


def _broken(path: Path, words: str) -> OSError:
    return OSError(errno.EINVAL, words, str(path))
