"""JSON as others wrote it: orjson, and what the CLI reads or writes that orjson refuses.

The CLI cuts texts by UTF-16 units, so that one can end inside an emoji; `JSON.stringify` then
writes half of a surrogate pair (`\\ud83d`), and a strict parser drops the whole line for it, as it
does for a byte that is no UTF-8. JavaScript reads both.
"""

from __future__ import annotations

import json
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


def _repaired(data: bytes) -> bytes | None:
    """The same JSON in strict UTF-8, None if there is nothing to repair or it is no JSON."""
    text = data.decode("utf-8", "replace")
    decoded = text.encode()
    if b"\\ud" not in data and b"\\uD" not in data:
        return None if decoded == data else decoded
    try:
        text = json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
