"""Convert one stored record to one message of a transcript."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import orjson
from msgspec.structs import replace

from gemtui.jsonin import loads
from gemtui.transcript.content import text_of, typed
from gemtui.transcript.media import numbered
from gemtui.transcript.model import (
    Attachment,
    Author,
    Block,
    Image,
    Message,
    Notice,
    NoticeLevel,
    Text,
    Thought,
    ToolCall,
)
from gemtui.transcript.parts import image_of, instant, objects, parts_of, string, usage_of
from gemtui.transcript.tools import call_from_parts, tool_call


class Calls(Protocol):
    """Looks up tool calls and replies in other records by call id."""

    def call(self, id: str) -> Mapping[str, Any] | None:
        """Return the stored `toolCalls` entry with this id; None if there is none."""

    def reply(self, id: str) -> Mapping[str, Any] | None:
        """Return the functionResponse with this id; None if there is none."""


def message_of(
    record: Mapping[str, Any],
    *,
    id: str,
    calls: Calls,
    only: frozenset[int] | None = None,
    rest: bool = True,
    hidden: frozenset[str] = frozenset(),
) -> Message:
    """Convert one record to a message. Never raises.

    `id`: the message's id in the replay. `calls`: looks up calls and replies in other records.
    `only`: indexes of the tool calls that belong to this message; None means all. `rest`: include
    the record's text, thoughts, and everything else. `hidden`: ids of calls to leave out.
    """
    kind = record.get("type")
    if kind == "user":
        return _user(record, id)
    if kind == "gemini":
        found = _calls(record, calls, only, named=rest)
        found = [call for call in found if call.id not in hidden]
        return _model(record, id, tuple(_in_order(record, found) if rest else _by_time(found)))
    return Message(
        id=id,
        author=Author.SYSTEM,
        blocks=(Notice(level=_level(kind), text=text_of(record.get("content"))),),
        time=instant(record.get("timestamp")),
        original=record,
    )


def _level(kind: object) -> NoticeLevel:
    return NoticeLevel(kind) if kind in ("info", "warning", "error") else NoticeLevel.INFO


class _NoCalls:
    """A lookup that finds nothing, for messages that need only a single record."""

    def call(self, id: str) -> None:  # noqa: ARG002
        return None

    def reply(self, id: str) -> None:  # noqa: ARG002
        return None


def message_on_line(line: bytes, id: str) -> Message | None:
    """Build a message from one line of a log, as `placed_messages` yields it.

    `id`: the id the message must have. Returns None if the line contains a different message,
    because the file may have been rewritten.
    """
    try:
        record = loads(line)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(record, dict) or record.get("id", id) != id:
        return None
    return message_of(record, id=id, calls=_NoCalls())


def _user(record: Mapping[str, Any], id: str) -> Message:
    said = typed(record)
    blocks: list[Block] = [Text(text=said.text.rstrip("\n"))] if said.text.strip() else []
    media = [(name, image) for name, part in said.media if (image := image_of(part)) is not None]
    blocks += numbered([each if each.name else replace(each, name=name) for name, each in media])
    blocks += [Attachment(name=name, text=text) for name, text in said.files]
    return Message(
        id=id,
        author=Author.USER,
        blocks=tuple(blocks),
        time=instant(record.get("timestamp")),
        prompt=said.prompt,
        original=record,
    )


def _model(record: Mapping[str, Any], id: str, blocks: tuple[Block, ...]) -> Message:
    model = record.get("model")
    return Message(
        id=id,
        author=Author.MODEL,
        blocks=blocks,
        time=instant(record.get("timestamp")),
        model=model if isinstance(model, str) else None,
        usage=usage_of(record.get("tokens")),
        original=record,
    )


def _calls(record: Mapping[str, Any], calls: Calls, only: frozenset[int] | None, *, named: bool) -> list[ToolCall]:
    """Return the record's tool calls.

    `calls`, `only`: as in `message_of`. `named`: also return the calls that exist only as
    `functionCall` parts.
    """
    asked = instant(record.get("timestamp"))
    stored = objects(record.get("toolCalls"))
    found = [tool_call(raw, asked=asked) for place, raw in enumerate(stored) if only is None or place in only]
    return [*found, *_named_calls(record, stored, calls)] if named else found


def _named_calls(record: Mapping[str, Any], stored: list[Mapping[str, Any]], calls: Calls) -> Iterable[ToolCall]:
    known = {string(raw.get("id")) for raw in stored} - {""}
    for part in parts_of(record.get("content")):
        call = part.get("functionCall")
        if isinstance(call, Mapping) and (id := string(call.get("id"))) not in known:
            raw = calls.call(id)
            yield call_from_parts(call, calls.reply(id)) if raw is None else tool_call(raw)


def _by_time(calls: list[ToolCall]) -> list[ToolCall]:
    """Return calls in the order in which they ended.

    A call without a time stays after the call before it.
    """
    keys, last = [], 0.0
    for place, call in enumerate(calls):
        last = call.time.timestamp() if call.time else last
        keys.append((last, place))
    return [calls[place] for _, place in sorted(keys)]


def _in_order(record: Mapping[str, Any], calls: list[ToolCall]) -> Iterable[Block]:
    """Yield a record's thoughts, text, media, and calls.

    Thoughts that are later than the first call are placed between the calls by time.
    """
    first = min((call.time for call in calls if call.time), default=None)
    early: deque[Thought] = deque()
    late: deque[Thought] = deque()
    for thought in map(_thought, objects(record.get("thoughts"))):
        later = first is not None and thought.time is not None and thought.time > first
        (late if later else early).append(thought)
    yield from early
    if text := _answer(record.get("content")):
        yield Text(text=text)
    yield from _media(record.get("content"))
    for call in _by_time(calls):
        while late and call.time and late[0].time and late[0].time <= call.time:
            yield late.popleft()
        yield call
    yield from late


def _thought(raw: Mapping[str, Any]) -> Thought:
    return Thought(
        subject=string(raw.get("subject")),
        description=string(raw.get("description")),
        time=instant(raw.get("timestamp")),
    )


def _answer(content: object) -> str:
    """Return the answer's text, with any code the model ran as fenced blocks."""
    pieces = []
    for part in parts_of(content):
        code, result = part.get("executableCode"), part.get("codeExecutionResult")
        if isinstance(code, Mapping):
            language = string(code.get("language")).lower()
            pieces.append(f"\n\n```{language}\n{string(code.get('code'))}\n```\n\n")
        elif isinstance(result, Mapping):
            pieces.append(f"\n\n```\n{string(result.get('output'))}\n```\n\n")
        elif not part.get("thought"):
            pieces.append(string(part.get("text")))
    text = "".join(pieces)
    return text.strip("\n") if text.strip() else ""


def _media(content: object) -> tuple[Image, ...]:
    images = (image_of(part) for part in parts_of(content))
    return numbered([image for image in images if image is not None])
