"""Small JSON files that others may have written: settings of the CLI, records of runs."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from gemtui.files import SMALL, read_small
from gemtui.jsonin import loads

DEEPEST = 100
"""Levels of lists and objects within each other: what takes a value apart may call itself."""


def read_object(path: Path, most: int = SMALL) -> dict[str, Any]:
    """The JSON object that a small regular file holds.

    Raises OSError as `read_small` does, and where the file holds something else: its `strerror` is
    a plain word, its `filename` the path.
    """
    return object_of(read_small(path, most), path)


def object_of(data: bytes, path: Path) -> dict[str, Any]:
    """The JSON object in `data`, which was read from `path`. Raises OSError as `read_object`."""
    try:
        value = loads(data)
    except orjson.JSONDecodeError as error:
        raise _broken(path, f"not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise _broken(path, "not a JSON object")
    if _is_deep(value):
        raise _broken(path, f"nested more than {DEEPEST} levels deep")
    return value


def _broken(path: Path, words: str) -> OSError:
    return OSError(errno.EINVAL, words, str(path))


def _is_deep(value: object) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        level = [item for each in level for item in _items(each)]
        if not level:
            return False
    return True


def _items(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
