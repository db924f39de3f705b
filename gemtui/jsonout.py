"""JSON as gemtui prints it: orjson's bytes, with everything a terminal could obey as `\\u` escapes.

Stored sessions are foreign text, and people pipe JSON to terminals: DEL, C1 and bidi controls and
the line ends U+2028 and U+2029 are legal in JSON strings and not harmless there. They are escaped,
C0 is escaped by JSON itself, and nothing else is, so that the text stays readable.
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
    """One JSON value as a line-free, terminal-safe UTF-8 text; `json.loads` gives `value` back.

    Takes what came out of a JSON parser, and dataclass-free dicts, lists, tuples and scalars.
    """
    return _UNSAFE.sub(lambda found: b"\\u%04x" % ord(found[0].decode()), _dump(value))


def encode_array(values: Iterable[Any], *, head: bytes = b"", tail: bytes = b"") -> Iterator[bytes]:
    """A JSON array in pieces, one value per line, so that it never has to be in memory whole."""
    yield head + b"["
    separator = b"\n"
    for value in values:
        yield separator + encode(value)
        separator = b",\n"
    yield b"]" + tail


def indented(value: Any) -> str:
    """One JSON value for people to read, over several lines, still JSON.

    What can't be seen is escaped, other line ends and lone surrogates too. A value that is no JSON
    stands there as its text.
    """
    with _deeper():
        text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _dump(value: Any) -> bytes:
    """`orjson.dumps`; what it can't carry (lone surrogates, big integers) goes the slower way."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        with _deeper():
            text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


@contextmanager
def _deeper() -> Iterator[None]:
    """Room for values as deep as orjson reads them: it writes them only to a depth of 254."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + _DEEPEST)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
