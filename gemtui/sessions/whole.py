"""Files that hold one JSON value: legacy sessions (0.4-0.38) and `/chat save` checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from gemtui.jsonin import loads
from gemtui.transcript.parts import Part, objects, parts_of, string

LIMIT = 128 * 1024 * 1024
"""Bytes. One JSON value can only be parsed whole, in about five times its size of memory."""

_MESSAGE_END = b"\n    }"


def parse(data: bytes) -> tuple[dict[str, Any], bool] | None:
    """The object in `data` and whether it was cut; None if nothing of it can be read.

    A list stands for a checkpoint of older versions: its history alone.

    The CLI rewrites the file in place, so a reader can catch it half-written (contract 1.3): what
    stands before the last complete message is still good.
    """
    try:
        value = loads(data)
    except orjson.JSONDecodeError:
        value = _salvage(data)
        return None if value is None else (value, True)
    if isinstance(value, list):
        value = {"history": value}
    return (value, False) if isinstance(value, dict) else None


def holds_messages(line: bytes) -> bool:
    """Whether a line is an object that carries its messages itself."""
    value = loads(line)
    return isinstance(value.get("messages"), list) or isinstance(value.get("history"), list)


def _salvage(data: bytes) -> dict[str, Any] | None:
    """A pretty-printed session cut anywhere, as far as its messages are whole."""
    for end in (data.rfind(_MESSAGE_END), data.rfind(b"\n  ],"), data.find(b'"messages": [')):
        head = data[: end + len(_MESSAGE_END)] if data[end:].startswith(_MESSAGE_END) else None
        if head is None and end > 0:
            head = data[:end] + (b"\n  " if data[end : end + 1] == b"\n" else b'"messages": [')
        if head is None:
            continue
        try:
            value = loads(head + b"]}")
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict):
            return value
    return None


def is_session(value: Mapping[str, Any]) -> bool:
    """Whether an object looks like a stored session or a checkpoint."""
    return (
        isinstance(value.get("sessionId"), str)
        or isinstance(value.get("messages"), list)
        or any("role" in content for content in objects(value.get("history")))
    )


def records_in(value: Mapping[str, Any], path: Path) -> list[Mapping[str, Any]]:
    """The message records of a legacy object, or those a checkpoint's history stands for."""
    if isinstance(value.get("history"), list) and "messages" not in value:
        return _history(objects(value["history"]), path.stem)
    return objects(value.get("messages"))


class _Asked(NamedTuple):
    """A call of a history that waits for its reply; `made`: it had no id of its own."""

    name: object
    id: str
    made: bool


def _history(contents: list[Mapping[str, Any]], name: str) -> list[Mapping[str, Any]]:
    """The records a list of API contents stands for; calls without id get one, their reply too."""
    waiting: list[_Asked] = []
    records: list[Mapping[str, Any]] = []
    for index, content in enumerate(contents):
        id = f"{name}-{index}"
        parts = [
            _identified(part, f"{id}.{place}", waiting)
            for place, part in enumerate(parts_of(content.get("parts")))
        ]
        kind = "gemini" if content.get("role") == "model" else "user"
        records.append({"id": id, "type": kind, "content": parts})
    return records


def _identified(part: Part, made: str, waiting: list[_Asked]) -> Part:
    """A functionCall with an id, a functionResponse with that of the call that it answers."""
    call, reply = part.get("functionCall"), part.get("functionResponse")
    if isinstance(call, dict):
        id = string(call.get("id"))
        waiting.append(_Asked(call.get("name"), id or made, not id))
        return {**part, "functionCall": {**call, "id": id or made}}
    if not isinstance(reply, dict):
        return part
    own, name = string(reply.get("id")), reply.get("name")
    fitting = [asked for asked in waiting if asked.id == own] or [
        asked for asked in waiting if asked.name == name and (asked.made or not own)
    ]
    if not fitting:
        return part
    waiting.remove(fitting[0])
    return {**part, "functionResponse": {**reply, "id": fitting[0].id}}
