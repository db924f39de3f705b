"""Other programs whose files people put among Gemini CLI's sessions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from gemtui.jsonin import loads

OTHER_PROGRAM = "another program"
_MOST_LINES = 50


def _is_claude(line: Mapping[str, Any]) -> bool:
    message = line.get("message")
    return "leafUuid" in line or (
        "uuid" in line and isinstance(message, dict) and "content" in message
    )


def _is_qwen(line: Mapping[str, Any]) -> bool:
    message = line.get("message")
    return "uuid" in line and isinstance(message, dict) and "parts" in message


def _is_codex(line: Mapping[str, Any]) -> bool:
    return (
        line.get("type") in ("session_meta", "turn_context", "event_msg", "response_item")
        and "payload" in line
    )


_PROGRAMS: tuple[tuple[str, Callable[[Mapping[str, Any]], bool]], ...] = (
    ("Claude Code", _is_claude),
    ("Qwen Code", _is_qwen),
    ("Codex", _is_codex),
)


def foreign_program(data: bytes) -> str | None:
    """Return the name of the program that wrote a file that is no session of Gemini CLI.

    The result is OTHER_PROGRAM if the program is unknown, and None if the file may be damaged or
    incomplete instead: it has no complete JSON object, or only what a header has. `data`: the
    beginning of the file.
    """
    objects = list(
        filter(None, map(_object, [data, *data.split(b"\n", _MOST_LINES)[:_MOST_LINES]]))
    )
    for name, wrote in _PROGRAMS:
        if any(map(wrote, objects)):
            return name
    return (
        OTHER_PROGRAM
        if any("sessionId" not in line or "type" in line for line in objects)
        else None
    )


def _object(text: bytes) -> Mapping[str, Any] | None:
    try:
        value = loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
