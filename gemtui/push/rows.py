"""A session's rows: one per message, with all columns described in assets/push.md."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from msgspec.structs import asdict

from gemtui.jsonin import loads
from gemtui.jsonout import encode
from gemtui.sessions.catalog.summary import Summary, iso
from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.transcript.model import Attachment, DiffDisplay, Message, Notice, Text, Thought, ToolCall, ToolStatus, Usage
from gemtui.transcript.tools import WRITING, kind_of, named_file

SCHEMA = 1
"""The version of the columns; increased when a column's meaning changes."""
_MILLISECOND = timedelta(milliseconds=1)


def message_rows(log: SessionLog, summary: Summary, *, raw: str | None) -> Iterator[bytes]:
    """Yield a session's messages as JSON lines, including dropped messages.

    `raw`: the SHA-256 of the session file; None if the file itself is not pushed.
    """
    transcript = transcript_of(log, dropped=True, in_flight=False)
    about = {
        "session": summary.id,
        "schema": SCHEMA,
        "title": summary.title,
        "project": summary.project,
        "kind": summary.kind.value,
        "parent": summary.parent,
        "started": iso(summary.started),
        "updated": iso(summary.updated),
        "raw": raw,
    }
    for number, message in enumerate(transcript):
        row = encode({**about, "number": number, **_columns(message)}) + b"\n"
        yield encode(_sound(loads(row))) + b"\n" if rb"\ud" in row else row


def _columns(message: Message) -> dict[str, Any]:
    blocks = message.blocks
    usage = message.usage or Usage()
    return {
        "message": message.id,
        "timestamp": iso(message.time),
        "author": message.author.value,
        "prompt": message.prompt,
        "dropped": None if message.dropped is None else message.dropped.value,
        "model": message.model,
        "text": "\n\n".join(each.text for each in blocks if isinstance(each, Text | Notice)),
        "thoughts": "\n\n".join(f"{each.subject}: {each.description}" for each in blocks if isinstance(each, Thought)),
        "attachments": [each.name for each in blocks if isinstance(each, Attachment)],
        "tokens": asdict(usage),
        "calls": [_call(each) for each in blocks if isinstance(each, ToolCall)],
    }


def _call(call: ToolCall) -> dict[str, Any]:
    diff = call.display if isinstance(call.display, DiffDisplay) else None
    path = named_file(call, str)
    wrote = kind_of(call.name) in WRITING and call.status is ToolStatus.SUCCESS
    return {
        "id": call.id,
        "name": call.name,
        "status": call.status.value,
        "time": iso(call.time),
        "duration_ms": None if call.duration is None else call.duration // _MILLISECOND,
        "exit_code": call.exit_code,
        "path": path or None,
        "wrote": wrote,
        "added": diff.added if diff else None,
        "removed": diff.removed if diff else None,
        "arguments": encode(dict(call.args)).decode(),
        "output": call.output,
        "error": call.error,
    }


def _sound(value: Any) -> Any:
    """Replace lone surrogates in a value, because most JSON parsers reject them."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode() if not value.isascii() else value
    if isinstance(value, dict):
        return {_sound(key): _sound(each) for key, each in value.items()}
    return [_sound(each) for each in value] if isinstance(value, list) else value
