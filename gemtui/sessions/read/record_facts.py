"""The facts about a record that stay in memory without the record's body."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import Enum
from sys import intern
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gemtui.transcript.content import text_of, typed
from gemtui.transcript.model import Author, Outline, ToolStatus, excerpt
from gemtui.transcript.parts import instant, objects, parts_of, string, usage_of
from gemtui.transcript.tools import ToolKind, call_status, exit_code_of, kind_of, raw_from_parts, written_path

RICH_FIELDS = ("tokens", "thoughts", "model", "toolCalls")
"""Fields that a message loses when a session is resumed.

See assets/gemini-cli.md#ghosts.
"""
_MADE = ("inlineData", "fileData", "executableCode", "codeExecutionResult")


_LONGEST_NAME = 200
"""Maximum number of characters of a tool's name that are kept."""


class RecordKind(Enum):
    """A record's role in the conversation."""

    MESSAGE = "message"
    CONTEXT = "context"
    REPLY = "reply"
    """A record that contains only functionResponse parts.

    They repeat `toolCalls[].result`.
    """


class CallFact(Struct, frozen=True, gc=False):
    """The facts about a tool call: its id, tool, written file, and end time.

    `failed`, `error`: whether the call is counted in `Outline.failures` and `Outline.errors`.
    """

    id: str
    failed: bool
    error: bool
    written: str | None = None
    time: datetime | None = None
    tool: str = ""


class RecordFacts(Struct, frozen=True, kw_only=True, gc=False):
    """The facts about one record.

    `has`: which of the RICH_FIELDS the record itself contains. `content`: whether it contains text,
    images, or code the model ran. `calls`: the calls in its `toolCalls` field. `part_ids`: ids of
    `functionCall` parts for calls that are not in `calls`. `replies`: its `functionResponse` parts.
    `digest`: a hash that is equal for records with equal content.
    """

    outline: Outline
    kind: RecordKind = RecordKind.MESSAGE
    has: tuple[str, ...] = ()
    content: bool
    digest: int
    calls: tuple[CallFact, ...] = ()
    part_ids: tuple[str, ...] = ()
    replies: tuple[CallFact, ...] = ()

    @property
    def has_content(self) -> bool:
        """Whether the record contains content or calls."""
        return bool(self.content or self.calls or self.part_ids)


def facts_of(record: Mapping[str, Any], size: int) -> RecordFacts:
    """Return the facts about one message record of `size` bytes; never raises."""
    kind = record.get("type")
    if kind == "user":
        return _user(record, size)
    if kind == "gemini":
        return _model(record, size)
    return _system(record, size)


def _user(record: Mapping[str, Any], size: int) -> RecordFacts:
    said = typed(record)
    prompt = said.prompt
    kind = RecordKind.MESSAGE
    if not prompt and said.replies:
        kind = RecordKind.REPLY
    elif not prompt and (said.context or said.files):
        kind = RecordKind.CONTEXT
    replies = tuple([_reply(reply) for reply in said.replies])
    return RecordFacts(
        outline=Outline(
            id=_id(record),
            author=Author.USER,
            time=instant(record.get("timestamp")),
            prompt=prompt,
            excerpt=excerpt(said.text) or ("(image)" if said.media else ""),
            size=size,
        ),
        kind=kind,
        content=prompt,
        digest=hash(("user", said.text, len(said.media), replies)),
        replies=replies,
    )


def _reply(reply: Mapping[str, Any]) -> CallFact:
    response = reply.get("response")
    error = isinstance(response, dict) and bool(response.get("error"))
    shell = kind_of(string(reply.get("name"))) is ToolKind.SHELL
    if error or not shell:
        return CallFact(_id(reply), error, error, tool=_tool(reply))
    return replace(_call(raw_from_parts({}, reply)), error=False)


def _model(record: Mapping[str, Any], size: int) -> RecordFacts:
    value = record.get
    calls = tuple([_call(call) for call in objects(value("toolCalls"))])
    content = value("content")
    text = text_of(content).strip()
    ids = tuple([call.id for call in calls])
    part_ids, made = ((), ()) if isinstance(content, str) else (_part_ids(content), _made(content))
    model = value("model")
    return RecordFacts(
        outline=Outline(
            id=_id(record),
            author=Author.MODEL,
            time=instant(value("timestamp")),
            calls=len(calls),
            failures=sum([call.failed for call in calls]),
            errors=sum([call.error for call in calls]),
            size=size,
            usage=usage_of(value("tokens")),
            model=model if isinstance(model, str) else None,
            writes=tuple([call.written for call in calls if call.written]),
            tools=tools_of(calls),
        ),
        has=tuple([name for name in RICH_FIELDS if value(name)]),
        content=bool(text or made),
        digest=hash(("gemini", text, made, ids or part_ids)),
        calls=calls,
        part_ids=_without(part_ids, ids) if part_ids else (),
    )


def _part_ids(content: object) -> tuple[str, ...]:
    calls = [part.get("functionCall") for part in parts_of(content)]
    return tuple([_id(call) for call in calls if isinstance(call, dict)])


def _made(content: object) -> tuple[str, ...]:
    """Return the types of the parts that hold images, files, or code the model ran."""
    return tuple([name for part in parts_of(content) for name in _MADE if isinstance(part.get(name), dict)])


def _without(part_ids: tuple[str, ...], ids: tuple[str, ...]) -> tuple[str, ...]:
    known = set(ids)
    return tuple([id for id in part_ids if id not in known])


def _call(raw: Mapping[str, Any]) -> CallFact:
    status = call_status(raw)
    time = instant(raw.get("timestamp"))
    failed = status.failed or bool(exit_code_of(raw))
    error = status.failed and status is not ToolStatus.REFUSED
    return CallFact(_id(raw), failed, error, written_path(raw, status), time, _tool(raw))


def _tool(raw: Mapping[str, Any]) -> str:
    """Return a tool's name; to save memory, equal names are the same string object."""
    return intern(string(raw.get("name"))[:_LONGEST_NAME])


def tools_of(calls: Iterable[CallFact]) -> tuple[str, ...]:
    """Return the names of the called tools, each once, in order of the first call."""
    return tuple(dict.fromkeys([call.tool for call in calls if call.tool]))


def _system(record: Mapping[str, Any], size: int) -> RecordFacts:
    return RecordFacts(
        outline=Outline(id=_id(record), author=Author.SYSTEM, time=instant(record.get("timestamp")), size=size),
        content=True,
        digest=hash((string(record.get("type")), text_of(record.get("content")))),
    )


def _id(thing: Mapping[str, Any]) -> str:
    id = thing.get("id")
    return id if isinstance(id, str) else ""
