"""Recognise the records that let Gemini CLI resume a session (assets/gemini-cli.md#clean-up).

The CLI skips a session without any such record when it looks for one to resume, and deletes it at
its next start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gemtui.calls.javascript import BLANKS
from gemtui.transcript.parts import Part, parts_of, string

_IGNORED = ("/", "?", "<session_context>", "<hook_context>")
"""The beginnings of messages that the CLI ignores: commands, and context it added itself."""
_MARKED = frozenset(
    {
        "videoMetadata",
        "thought",
        "codeExecutionResult",
        "executableCode",
        "fileData",
        "functionCall",
        "functionResponse",
        "inlineData",
    }
)
"""Fields for which the CLI puts a text such as `[Function Call: glob]` in place of the part."""


def is_resumable(record: Mapping[str, Any]) -> bool:
    """Return whether a message record is something to resume.

    That is a prompt that is not a command, or an answer with any content, calls, or thoughts.
    """
    kind = record.get("type")
    if kind == "gemini" and (
        _has_items(record.get("toolCalls")) or _has_items(record.get("thoughts"))
    ):
        return True
    if kind not in ("user", "gemini"):
        return False
    content = record.get("content")
    text = content if isinstance(content, str) else "".join(map(_text, parts_of(content)))
    return is_something(text, prompt=kind == "user")


def is_something(text: str, *, prompt: bool = False) -> bool:
    """Return whether a message's text is something to resume. `prompt`: the user wrote it."""
    text = text.lstrip(BLANKS)
    return bool(text) and not (prompt and text.startswith(_IGNORED))


def _text(part: Part) -> str:
    """Return the text that the CLI uses for a part here."""
    return string(part.get("text")) if _MARKED.isdisjoint(part) else "[…]"


def _has_items(value: object) -> bool:
    return isinstance(value, list | str) and len(value) > 0
