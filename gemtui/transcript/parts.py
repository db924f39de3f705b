"""Read values from stored records, where each value may have any type.

No function here raises an exception. In the Gemini API, content is a string, a part, or a list of
parts and strings.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from msgspec.structs import astuple

from gemtui.jsonin import is_deep
from gemtui.transcript.usage import Usage

if TYPE_CHECKING:
    from gemtui.transcript.model import Image

Part = Mapping[str, Any]

EARLIEST = datetime.min.replace(tzinfo=UTC) + timedelta(days=1)
LATEST = datetime.max.replace(tzinfo=UTC) - timedelta(days=1)
"""Times between EARLIEST and LATEST can be converted to every time zone."""
DEEPEST = 500
"""Maximum nesting of JSON to show; Python's own limit differs between versions."""
_COUNTS = Usage.__struct_fields__
_COUNT_TYPES = frozenset({int, type(None)})
_MOST_TOKENS = 10**9
"""Maximum plausible number of tokens in one answer or run."""


def string(value: object) -> str:
    """Return a string unchanged, a number as JSON, and "" for anything else."""
    if isinstance(value, str):
        return value
    return pretty(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def mapping(value: object) -> Part:
    """Return a dict unchanged, and an empty dict for anything else."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[Part]:
    """Return the dicts in a list, and an empty list for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def parts_of(content: object) -> list[Part]:
    """Return content as a list of parts; strings become text parts.

    Values that are neither strings nor dicts are left out.
    """
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
    """Return the binary content of an `inlineData` or `fileData` part.

    Returns None for other parts.
    """
    data, file = part.get("inlineData"), part.get("fileData")
    if data is None and file is None:
        return None
    from gemtui.transcript.model import Image

    if isinstance(data, dict):
        stored = data.get("data")
        return Image(
            mime_type=string(data.get("mimeType")),
            size=_decoded_size(stored),
            name=string(data.get("displayName")) or None,
            data=stored if isinstance(stored, str) else "",
        )
    if isinstance(file, dict):
        return Image(
            mime_type=string(file.get("mimeType")),
            name=string(file.get("displayName")) or None,
            uri=string(file.get("fileUri")) or None,
        )
    return None


def _decoded_size(data: object) -> int | None:
    """Return the number of bytes that a base64 string decodes to.

    Returns None if `data` isn't a string.
    """
    if not isinstance(data, str):
        return None
    return len(data) * 3 // 4 - data[-2:].count("=")


def instant(value: object) -> datetime | None:
    """Convert a stored ISO 8601 time to UTC; times without an offset count as UTC.

    Returns None if the value is not a time, or is not between EARLIEST and LATEST.
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
    """Return a JSON value as indented JSON, or a note if it is nested too deeply."""
    import json

    try:
        if not is_deep(value, DEEPEST):
            return json.dumps(value, ensure_ascii=False, indent=2, default=str)
    except (RecursionError, ValueError, TypeError):
        pass
    return "(nested too deeply to be shown)"


def usage_of(tokens: object) -> Usage | None:
    """Return the token counts of a message; None if missing or implausible.

    A count that is not a whole number makes all of them implausible.
    """
    if not isinstance(tokens, dict):
        return None
    counts = [*map(tokens.get, _COUNTS)]
    return plausible(Usage(*counts)) if _COUNT_TYPES.issuperset(map(type, counts)) else None


def plausible(usage: Usage) -> Usage | None:
    """Return `usage` if plausible, else None.

    Token counts are implausible if any is negative or huge, or if `cached` exceeds `input` or
    `input` exceeds `total`.
    """
    counts = sorted(filter(None, astuple(usage)))
    if counts and (counts[0] < 0 or counts[-1] > _MOST_TOKENS):
        return None
    cached = usage.cached or 0
    total = _MOST_TOKENS if usage.total is None else usage.total
    input = cached if usage.input is None else usage.input
    return usage if cached <= input <= total else None
