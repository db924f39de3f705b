"""Builders for session files: records as Gemini CLI writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.transcript.model import Text

Record = dict[str, Any]
START = datetime(2026, 11, 20, 23, 4, tzinfo=UTC)
CONTEXT_ID = "d04923d38bb0f6017037e74183378ef4"


def at(seconds: float) -> str:
    """The time so many seconds after START, as the CLI writes it."""
    time = START + timedelta(seconds=seconds)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def header(id: str = "11111111-2222-4333-8444-555555555555", **more: Any) -> Record:
    base = {"sessionId": id, "projectHash": "0" * 64, "startTime": at(0), "lastUpdated": at(0)}
    return base | {"kind": "main"} | more


def context() -> Record:
    text = "<session_context>\nThis is the Gemini CLI.\n</session_context>"
    return {"id": CONTEXT_ID, "timestamp": at(0), "type": "user", "content": [{"text": text}]}


def user(id: str, text: str, seconds: float = 1) -> Record:
    return {"id": id, "timestamp": at(seconds), "type": "user", "content": [{"text": text}]}


def info(id: str, text: str, seconds: float = 1) -> Record:
    return {"id": id, "timestamp": at(seconds), "type": "info", "content": text}


def gemini(id: str, text: str, seconds: float = 2, **more: Any) -> Record:
    tokens = {"input": 10, "output": 2, "cached": 4, "thoughts": 1, "tool": 0, "total": 13}
    base = {"id": id, "timestamp": at(seconds), "type": "gemini", "content": text}
    return base | {"thoughts": [], "tokens": tokens, "model": "gemini-x"} | more


def call(id: str, seconds: float = 3, **more: Any) -> Record:
    reply = {"id": id, "name": "read_file", "response": {"output": "body"}}
    base = {"id": id, "name": "read_file", "args": {"file_path": "a.py"}, "status": "success"}
    return base | {"timestamp": at(seconds), "result": [{"functionResponse": reply}]} | more


def reply(id: str, call_id: str, seconds: float = 4, **response: Any) -> Record:
    body = {"id": call_id, "name": "read_file", "response": response or {"output": "body"}}
    content = [{"functionResponse": body}]
    return {"id": id, "timestamp": at(seconds), "type": "user", "content": content}


def restore(*records: Record) -> Record:
    return {"$set": {"messages": list(records), "lastUpdated": at(9)}}


def legacy(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return header() | {"messages": list(messages)} | more


def raw(line: str) -> orjson.Fragment:
    """A line as it stands."""
    return orjson.Fragment(line)


BUILDERS: dict[str, Callable[..., Any]] = {
    builder.__name__: builder
    for builder in (header, context, user, info, gemini, call, reply, restore, legacy, raw)
}


def built(value: dict[str, Any]) -> Any:
    """Read a record of a table: `{"gemini": ["g", "Yes"], "model": "x"}` for `gemini("g", "Yes",
    model="x")`.
    """
    name = next(iter(value), "")
    if name not in BUILDERS:
        return value
    options = dict(value)
    arguments = options.pop(name)
    return BUILDERS[name](*arguments, **options)


def lines(records: Iterable[object]) -> bytes:
    return b"".join(orjson.dumps(record) + b"\n" for record in records)


def write(path: Path, records: Iterable[object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lines(records))
    return path


def opened(path: Path, data: object) -> SessionLog:
    """The log that a file with these bytes is, or with an object as older versions wrote it."""
    path.write_bytes(
        data if isinstance(data, bytes) else orjson.dumps(data, option=orjson.OPT_INDENT_2)
    )
    log = SessionLog(path)
    log.refresh()
    return log


def texts(log: SessionLog, *, dropped: bool = False) -> list[str]:
    """The text blocks of a transcript, in order."""
    return [
        block.text
        for message in transcript_of(log, dropped=dropped)
        for block in message.blocks
        if isinstance(block, Text)
    ]
