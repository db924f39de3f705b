r"""Parse JSON as Gemini CLI writes it, including invalid Unicode.

The CLI truncates strings by UTF-16 code units, so a cut can fall in the middle of an emoji.
`JSON.stringify` then writes a lone surrogate: a single escape from the range U+D800 to U+DFFF. A
strict parser rejects the whole line because of one lone surrogate, or because of bytes that aren't
UTF-8. JavaScript accepts both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import isfinite
from typing import Any

import orjson


def loads(data: bytes) -> Any:
    """Parse a JSON value; lone surrogates and bytes that are not UTF-8 become U+FFFD.

    Integers beyond 64 bits become floats, as all numbers do in JavaScript, and what is infinite
    there becomes 1e308. Raises orjson.JSONDecodeError.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        infinite = "infinity" in error.msg
        repaired = _STRING_OR_NUMBER.sub(_finite, data) if infinite else _repaired(data)
        if repaired in (None, data):
            raise
        return loads(repaired)


_STRING_OR_NUMBER = re.compile(
    rb'"(?:[^"\\]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?', re.DOTALL
)


def _finite(found: re.Match[bytes]) -> bytes:
    value = found[0]
    if value.startswith(b'"') or isfinite(float(value)):
        return value
    return b"-1e308" if value.startswith(b"-") else b"1e308"


_ESCAPES = re.compile(
    rb"\\\\"
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\u[dD][c-fC-F][0-9a-fA-F]{2})?"
    rb"|\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
"""Matches escaped backslashes, pairs of escaped surrogates, and lone ones."""
_HALF = len(rb"\ud83d")


def _repaired(data: bytes) -> bytes | None:
    """Return the same JSON as valid UTF-8; None if there is nothing to repair."""
    whole = _ESCAPES.sub(_without_half, data) if b"\\ud" in data or b"\\uD" in data else data
    decoded = whole.decode("utf-8", "replace").encode()
    return None if decoded == data else decoded


def _without_half(found: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if len(found[0]) == _HALF else found[0]


_MANY = 1_000_000


def values_in(data: bytes) -> int:
    """Return an upper bound for the number of values in JSON, without parsing it.

    Check it before parsing to limit memory use: each parsed value takes about a hundred bytes,
    however short it is in the data.
    """
    if len(data) < _MANY:
        return len(data)
    count = _separators(data)
    if count < _MANY:
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


def is_deep(value: object, most: int) -> bool:
    """Return whether lists and objects are nested more than `most` levels deep."""
    level = [value]
    for _ in range(most):
        level = [item for outer in level for item in _items(outer)]
        if not level:
            return False
    return True


def _items(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
