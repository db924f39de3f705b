"""Cursors: tokens that mark where a list's next page begins, for use in scripts."""

from __future__ import annotations

import base64
import binascii
from types import UnionType
from typing import Any

import click

from gemtui.jsonin import loads
from gemtui.jsonout import encode

_LONGEST = 20_000
"""The maximum length of a cursor, in characters.

This leaves enough room for a path, which has at most 4,096 bytes.
"""


def write_cursor(kind: str, *values: Any) -> str:
    """Return a cursor that contains these values, which must be valid JSON values.

    `kind`: identifies the kind of list, so that `read_cursor` rejects other lists' cursors.
    """
    return base64.urlsafe_b64encode(encode([kind, *values])).decode("ascii").rstrip("=")


def not_a_cursor() -> click.UsageError:
    """Return the error to raise for an argument that isn't a cursor of this list."""
    return click.UsageError("--cursor: this is not a next_cursor from an earlier answer: leave it out to start over")


def read_cursor(kind: str, cursor: str, *types: type | UnionType) -> list[Any]:
    """Return the values that `write_cursor` put into a cursor.

    `kind`: as for `write_cursor`. `types`: the expected types of the values. Raises
    click.UsageError if the argument isn't a cursor for this kind of list.
    """
    try:
        padded = cursor[:_LONGEST] + "=" * (-len(cursor) % 4)
        found = loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, binascii.Error):
        found = None
    if isinstance(found, list) and found[:1] == [kind] and len(found) == len(types) + 1:
        values = found[1:]
        if all(map(_is_a, values, types)):
            return values
    raise not_a_cursor()


def _is_a(value: object, wanted: type | UnionType) -> bool:
    return isinstance(value, wanted) and not isinstance(value, bool)
