"""JSON as others wrote it: orjson, and what the CLI reads or writes that orjson refuses.

The CLI cuts texts by UTF-16 units, so that one can end inside an emoji; `JSON.stringify` then
writes half of a surrogate pair (`\\ud83d`), and a strict parser drops the whole line for it, as it
does for a byte that is no UTF-8. JavaScript reads both.
"""

from __future__ import annotations

import re
from typing import Any

import orjson


def loads(data: bytes) -> Any:
    """One JSON value; half surrogate pairs and bytes that are no UTF-8 become U+FFFD in it.

    Integers beyond 64 bits become floats, as in JavaScript all do. Raises orjson.JSONDecodeError.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        repaired = _repaired(data)
        if repaired is None:
            raise
        return orjson.loads(repaired)


_ESCAPES = re.compile(
    rb"\\\\"
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\u[dD][c-fC-F][0-9a-fA-F]{2})?"
    rb"|\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
"""Escaped backslashes, and surrogates: pairs where there are any, else halves."""
_HALF = len(rb"\ud83d")


def _repaired(data: bytes) -> bytes | None:
    """The same JSON in strict UTF-8, None if there is nothing to repair."""
    whole = _ESCAPES.sub(_without_half, data) if b"\\ud" in data or b"\\uD" in data else data
    decoded = whole.decode("utf-8", "replace").encode()
    return None if decoded == data else decoded


def _without_half(found: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if len(found[0]) == _HALF else found[0]


_MANY = 1_000_000


def values_in(data: bytes) -> int:
    """About how many values a JSON text holds, at least as many as parsing it would make.

    For bounds: parsing costs memory by values, a hundred bytes for each, not by bytes.
    """
    if len(data) < _MANY:
        return len(data)
    if (count := _separators(data)) < _MANY:
        return count + 1
    plain = data.replace(rb"\\", b"").replace(rb"\"", b"")
    count, inside = 1, 0
    for start in range(0, len(plain), _MANY):
        pieces = plain[start : start + _MANY].split(b'"')
        count += _separators(b"".join(pieces[inside::2]))
        inside = (inside + len(pieces) - 1) % 2
    return count


def _separators(data: bytes) -> int:
    return sum(map(data.count, (b",", b"[", b"{")))
