r"""JSON as gemtui prints it: records as values, and values as text.

Every character that could affect a terminal is escaped as `\u`.
Stored sessions are untrusted text, and JSON may be printed to a terminal. DEL, C1 and bidi
controls, U+2028 and U+2029 are valid in JSON strings but can do harm in a terminal, so they are
escaped here. For C0 controls, JSON itself requires escapes. Nothing else is escaped, to keep the
text readable.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any, overload

import orjson
from msgspec import Struct

_UNSAFE = re.compile(
    rb"\x7f|\xc2[\x80-\x9f]"  # DEL, C1
    rb"|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]"  # bidi controls, line separators
)
_UNSEEN = "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
_DEEPEST = 1100
_PLAIN = frozenset({str, int, float, bool, bytes, type(None)})
_SURROGATE = "[\ud800-\udfff]"


def fields(record: object, *names: str, **renamed: str) -> dict[str, Any]:
    """Return attributes of a record as a JSON object.

    `names`: attributes, which are also the keys of the object. `renamed`: attributes by their key.
    The values are converted with `json_value`.
    """
    attributes = {name: name for name in names} | renamed
    return {key: json_value(getattr(record, name)) for key, name in attributes.items()}


def json_value(value: Any) -> Any:
    """Convert a value to one that JSON can contain.

    A record becomes what its `to_dict` returns, or else an object of all its fields; a time what
    `iso` returns, a path its text, and a member of an enum its value. Sequences become lists; other
    values stay as they are.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is datetime:
        return iso(value)
    if kind is tuple:
        return [json_value(item) for item in value]
    if hasattr(value, "to_dict"):
        return value.to_dict()
    match value:
        case Enum():
            return value.value
        case Path():
            return str(value)
        case Struct():
            return fields(value, *value.__struct_fields__)
        case list() | tuple():
            return [json_value(item) for item in value]
        case _:
            return value


@overload
def iso(when: datetime) -> str: ...
@overload
def iso(when: datetime | None) -> str | None: ...
def iso(when: datetime | None) -> str | None:
    """Format a time for JSON: ISO 8601 in UTC, with milliseconds and `Z`."""
    if when is None:
        return None
    utc = when if when.tzinfo is UTC else when.astimezone(UTC)
    return utc.isoformat("T", "milliseconds")[: -len("+00:00")] + "Z"


def encode(value: Any) -> bytes:
    """Encode a JSON value as UTF-8 on one line that is safe to print to a terminal.

    `json.loads` restores the value. `value`: dicts, lists, tuples and scalars, such as those
    returned by a JSON parser.
    """
    text = _dump(value)
    if text.isascii() and b"\x7f" not in text:
        return text
    return _UNSAFE.sub(lambda found: b"\\u%04x" % ord(found[0].decode()), text)


def encode_array(values: Iterable[Any], *, head: bytes = b"", tail: bytes = b"") -> Iterator[bytes]:
    """Yield a JSON array, one value per line, without holding the array in memory.

    `values`: JSON values; a `bytes` object is inserted unchanged, because it is JSON that has
    already been encoded. `head`, `tail`: bytes to put before and after the array.
    """
    yield head + b"["
    separator = b"\n"
    for value in values:
        yield separator + (value if isinstance(value, bytes) else encode(value))
        separator = b",\n"
    yield b"]" + tail


def indented(value: Any) -> str:
    """Format a value as indented JSON for people to read.

    Invisible characters, unusual line endings and lone surrogates are escaped. A value that JSON
    can't represent is shown as its `str`.
    """
    import json

    with _deeper():
        text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    return re.sub(_UNSEEN, lambda found: f"\\u{ord(found[0]):04x}", text)


def _dump(value: Any) -> bytes:
    """Serialise with `orjson`, or with the slower `json` if `orjson` can't.

    `orjson` does not support lone surrogates, big integers and deep nesting.
    """
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        import json

        with _deeper():
            text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return re.sub(_SURROGATE, lambda found: f"\\u{ord(found[0]):04x}", text).encode()


@contextmanager
def _deeper() -> Iterator[None]:
    """Raise the recursion limit in this block, so that `json` can write deep nesting.

    orjson reads deeper nesting than the 254 levels that it can write.
    """
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + _DEEPEST)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
