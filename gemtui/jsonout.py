r"""Print JSON in which everything that affects a terminal is escaped as `\u`.

Stored sessions are foreign text, and JSON may be printed to a terminal. DEL, C1 and bidi controls,
U+2028 and U+2029 are valid in JSON strings but not harmless there, so they are escaped. JSON itself
requires that for C0 controls. Nothing else is escaped, so the text stays readable.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import orjson

_UNSAFE = re.compile(
    rb"\x7f|\xc2[\x80-\x9f]"  # DEL, C1
    rb"|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]"  # bidi controls, other line ends
)
_UNSEEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_DEEPEST = 1100
_SURROGATE = re.compile("[\ud800-\udfff]")


def encode(value: Any) -> bytes:
    """Return a JSON value as UTF-8 on one line, safe for terminals.

    `json.loads` restores it. `value`: dicts, lists, tuples and scalars, such as those from a JSON
    parser.
    """
    text = _dump(value)
    if text.isascii() and b"\x7f" not in text:
        return text
    return _UNSAFE.sub(lambda found: b"\\u%04x" % ord(found[0].decode()), text)


def encode_array(values: Iterable[Any], *, head: bytes = b"", tail: bytes = b"") -> Iterator[bytes]:
    """Yield a JSON array with one value per line, without holding it in memory.

    `head`, `tail`: bytes to put before and after it.
    """
    yield head + b"["
    separator = b"\n"
    for value in values:
        yield separator + encode(value)
        separator = b",\n"
    yield b"]" + tail


def indented(value: Any) -> str:
    """Return a JSON value over several indented lines, for reading; it is still JSON.

    Invisible characters, other line ends and lone surrogates are escaped. A value that is not JSON
    is given as its `str`.
    """
    with _deeper():
        text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _dump(value: Any) -> bytes:
    """Call `orjson.dumps`, or the slower `json` for lone surrogates and big integers."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        with _deeper():
            text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


@contextmanager
def _deeper() -> Iterator[None]:
    """Raise the recursion limit to the depth that orjson can read.

    It only writes 254 levels.
    """
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + _DEEPEST)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
