"""Files that contain one JSON value: legacy sessions and `/chat save` checkpoints."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from gemtui.jsonin import loads
from gemtui.transcript.parts import Part, objects, parts_of, string

LIMIT = 128 * 1024 * 1024
"""Maximum file size in bytes.

A JSON value can only be parsed as a whole, and parsing takes about five times its size in memory.
"""

VALUES = 5_000_000
"""Maximum number of JSON values to parse at once.

They take half a gigabyte of memory, however small they are.
"""

_MESSAGE_END = b"\n    }"


def parse_legacy(data: bytes) -> tuple[dict[str, Any], bool] | None:
    """Return the object in `data`, and whether the data was truncated.

    Returns None if nothing is readable. A list is read as a checkpoint of older versions, which
    consists of only the history. The CLI rewrites the file in place, so a reader may see a
    half-written file; in that case, everything up to the last complete message is used.
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
    """Return whether a line is a whole legacy session that contains its messages."""
    value = loads(line)
    return isinstance(value.get("messages"), list) or isinstance(value.get("history"), list)


def _salvage(data: bytes) -> dict[str, Any] | None:
    """Return the object in truncated, pretty-printed JSON, with complete messages."""
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
    """Return whether an object looks like a stored session or a checkpoint."""
    return (
        isinstance(value.get("sessionId"), str)
        or isinstance(value.get("messages"), list)
        or any("role" in content for content in objects(value.get("history")))
    )


def looks_like_session(head: bytes) -> bool:
    """Return whether a file that is too large to parse begins like a session.

    `head`: the beginning of the file.
    """
    return head.lstrip()[:1] in (b"{", b"[") and any(
        name in head for name in (b'"messages"', b'"history"', b'"role"')
    )


def records_in(value: Mapping[str, Any], path: Path) -> list[Mapping[str, Any]]:
    """Return the message records of a legacy session, or of a checkpoint's history."""
    if isinstance(value.get("history"), list) and "messages" not in value:
        return _history(objects(value["history"]), path.stem)
    return objects(value.get("messages"))


def entries_in(value: Mapping[str, Any]) -> int:
    """Return the length of an object's message list, including invalid entries."""
    found = value.get("messages", value.get("history"))
    return len(found) if isinstance(found, list) else 0


class _Waiting:
    """A history's calls that have no reply yet. Matching a reply takes constant time."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._answered: set[int] = set()
        self._queues: defaultdict[tuple[str, str], deque[int]] = defaultdict(deque)

    def ask(self, id: str, name: str, *, made: bool) -> None:
        """Add a call that has no reply yet. `made`: whether its id was generated."""
        call = len(self._ids)
        self._ids.append(id)
        for key in (("id", id), ("name", name), *([("made", name)] if made else ())):
            self._queues[key].append(call)

    def answer(self, id: str, name: str) -> str | None:
        """Return the id of the call that a reply answers, and mark the call as answered.

        Returns None if there is no such call. A reply without an id may answer any call with that
        name. A reply with an id may also answer a call that had no id.
        """
        for key in (("id", id), ("made", name)) if id else (("name", name),):
            queue = self._queues[key]
            while queue:
                if (call := queue.popleft()) not in self._answered:
                    self._answered.add(call)
                    return self._ids[call]
        return None


def _history(contents: list[Mapping[str, Any]], name: str) -> list[Mapping[str, Any]]:
    """Convert API contents to records, generating ids for calls without one.

    The replies to such calls get the same ids.
    """
    waiting = _Waiting()
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


def _identified(part: Part, made: str, waiting: _Waiting) -> Part:
    """Return a call with an id, or a reply with the id of the call it answers."""
    call, reply = part.get("functionCall"), part.get("functionResponse")
    if isinstance(call, dict):
        id = string(call.get("id"))
        waiting.ask(id or made, string(call.get("name")), made=not id)
        return {**part, "functionCall": {**call, "id": id or made}}
    if not isinstance(reply, dict):
        return part
    asked = waiting.answer(string(reply.get("id")), string(reply.get("name")))
    return part if asked is None else {**part, "functionResponse": {**reply, "id": asked}}
