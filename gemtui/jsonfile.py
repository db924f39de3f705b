"""Read and write small JSON files.

The CLI's settings and the records of runs are read as objects. Each question, answer or prompt of a
run is a file of its own, written from a dataclass and read back as that dataclass.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from gemtui.files import SMALL, finish_file, read_small, unfinished_file
from gemtui.jsonin import is_deep, loads

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")
_NOTHING: Mapping[str, Any] = {}
DEEPEST = 100
"""The deepest nesting of lists and objects to accept.

Deeper values could exhaust the stack later.
"""


def read_object(path: Path, most: int = SMALL) -> dict[str, Any]:
    """Read a JSON object from a regular file of at most `most` bytes.

    Raises OSError like `read_small`, including when the file is not a JSON object.
    """
    return object_of(read_small(path, most), path)


def object_of(data: bytes, path: Path) -> dict[str, Any]:
    """Parse `data`, the contents of the file at `path`, as a JSON object.

    Raises OSError like `read_object`.
    """
    try:
        value = loads(data)
    except orjson.JSONDecodeError as error:
        raise _broken(path, f"not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise _broken(path, "not a JSON object")
    if is_deep(value, DEEPEST):
        raise _broken(path, f"nested more than {DEEPEST} levels deep")
    return value


def without_comments(data: bytes) -> bytes:
    """Remove the comments that the CLI permits in the JSON of its settings."""
    return _COMMENT.sub(rb"\1", data)


_COMMENT = re.compile(rb'("(?:[^"\\]++|\\.)*+"?)|//[^\n]*+|/\*.*?(?:\*/|\Z)', re.DOTALL)
"""Matches a string or a comment.

A string is captured as group 1, so that it is kept when comments are removed.
"""


def write_once(
    path: Path, value: DataclassInstance, most: int, *, more: Mapping[str, Any] = _NOTHING
) -> None:
    """Write a dataclass to a new file, completely or not at all.

    Only the user can read the file. `most`: the size limit in bytes. `more`: entries in addition to
    the dataclass's fields, or instead of them. Strings may contain lone surrogates; a `Path` is
    written as a string. Raises FileExistsError if the file exists, OSError (including when the
    value is too large), and ValueError for a number JSON can't represent.
    """
    from dataclasses import asdict

    _write(path, {**asdict(value), **more}, most, over=False)


def write_again(path: Path, value: DataclassInstance, most: int) -> None:
    """Write a dataclass like `write_once`, but replace an existing file.

    Raises OSError, and ValueError as `write_once` does.
    """
    from dataclasses import asdict

    _write(path, asdict(value), most, over=True)


def _write(path: Path, value: Mapping[str, Any], most: int, *, over: bool) -> None:
    import json

    with unfinished_file(path) as (stream, made):
        data = json.dumps(value, allow_nan=False, default=os.fspath).encode("ascii")
        if len(data) > most:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        stream.write(data)
        finish_file(stream, made, path, over=over)


def read_as(path: Path, wanted: type[T], most: int) -> T | None:
    """Read a dataclass that `write_once` wrote, limited to `most` bytes.

    Return None if the file can't be read or does not contain a value of this type.
    """
    import json

    import msgspec

    with suppress(OSError, ValueError, RecursionError):
        value = json.loads(read_small(path, most))
        return msgspec.convert(value, wanted, dec_hook=lambda kind, text: kind(text))
    return None


def _broken(path: Path, words: str) -> OSError:
    return OSError(errno.EINVAL, words, str(path))
