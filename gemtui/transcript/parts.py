"""Reading the pieces of stored records: each value may be of any type, and nothing raises here.

A content of the Gemini API is a string, one part, or a list of parts and strings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from gemtui.transcript.model import Image, Usage

Part = Mapping[str, Any]

EARLIEST = datetime.min.replace(tzinfo=UTC) + timedelta(days=1)
LATEST = datetime.max.replace(tzinfo=UTC) - timedelta(days=1)
"""Between these two, a time can be told in every time zone."""
_MOST_TOKENS = 2**40
"""No answer counts more: the sum of very many of them is still an integer for every reader."""


def string(value: object) -> str:
    """A string as it is, a number in its JSON form, anything else as the empty string."""
    if isinstance(value, str):
        return value
    return pretty(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def mapping(value: object) -> Part:
    """An object as it is, anything else as an empty one."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[Part]:
    """The objects in a stored list, none for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def parts_of(content: object) -> list[Part]:
    """A content as a list of parts, whatever its form; what can't be a part is left out."""
    if isinstance(content, str):
        return [{"text": content}]
    if isinstance(content, dict):
        return [content]
    if not isinstance(content, list):
        return []
    return [
        {"text": item} if isinstance(item, str) else item
        for item in content
        if isinstance(item, (dict, str))
    ]


def image_of(part: Part) -> Image | None:
    """The binary content of an `inlineData` or `fileData` part, None for other parts."""
    data, file = part.get("inlineData"), part.get("fileData")
    if isinstance(data, Mapping):
        return Image(
            mime_type=string(data.get("mimeType")),
            size=_decoded_size(data.get("data")),
            name=string(data.get("displayName")) or None,
        )
    if isinstance(file, Mapping):
        return Image(
            mime_type=string(file.get("mimeType")),
            name=string(file.get("displayName")) or None,
            uri=string(file.get("fileUri")) or None,
        )
    return None


def _decoded_size(data: object) -> int | None:
    """Bytes that a base64 text stands for."""
    if not isinstance(data, str):
        return None
    return len(data) * 3 // 4 - data[-2:].count("=")


def instant(value: object) -> datetime | None:
    """A stored ISO 8601 time as an aware datetime in UTC, None if the value is none, or one that
    not every time zone can tell.
    """
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value)
        if time.tzinfo is not UTC:
            time = time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return time if EARLIEST <= time <= LATEST else None


def pretty(value: object) -> str:
    """Any JSON value as indented JSON; what is nested too deeply is named instead."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, default=str)
    except (RecursionError, ValueError, TypeError):
        return "(nested too deeply to be shown)"


def usage_of(tokens: object) -> Usage | None:
    """The six stored counters as they are, None if there are none."""
    if not isinstance(tokens, dict):
        return None
    counts = map(tokens.get, Usage.__struct_fields__)
    return Usage(
        *[
            count if type(count) is int and -_MOST_TOKENS <= count <= _MOST_TOKENS else None
            for count in counts
        ]
    )
