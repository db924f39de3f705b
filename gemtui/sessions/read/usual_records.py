"""Find the facts about records of the usual form without decoding their large texts.

This takes a fraction of the time of `facts_of`, which reads records of any form. For the forms that
are declared here, both return the same facts; all others are left to `facts_of`.
"""

from __future__ import annotations

from itertools import compress
from typing import Literal

from msgspec import UNSET, MsgspecError, Raw, Struct, UnsetType, field
from msgspec.json import Decoder, decode

from gemtui.sessions.read.replay import (
    RICH_FIELDS,
    CallFact,
    RecordFacts,
    Replay,
    Slot,
    call_fact,
    model_facts,
    reply_facts,
    tool_name,
    user_facts,
)
from gemtui.sessions.read.resumable import is_something
from gemtui.transcript.content import UserParts, is_plain
from gemtui.transcript.parts import instant, plausible
from gemtui.transcript.seal import NOTICE
from gemtui.transcript.tools import (
    UNKNOWN_TOOL,
    WRITING,
    ToolKind,
    is_failed_command,
    kind_of,
    named_paths,
)
from gemtui.transcript.usage import Usage


class _Stored(Struct, gc=False):
    """A part of a stored record; of its fields, only the declared ones are decoded."""


class _Response(_Stored):
    output: Raw = Raw(b"null")
    error: str = ""


class _Reply(_Stored, forbid_unknown_fields=True):
    response: _Response
    id: str = ""
    name: str = ""


class _Part(_Stored, forbid_unknown_fields=True):
    text: str | UnsetType = UNSET
    reply: _Reply | UnsetType = field(default=UNSET, name="functionResponse")


class _Result(_Stored):
    reply: _Reply = field(name="functionResponse")


class _Arguments(_Stored):
    file_path: str = ""
    absolute_path: str = ""
    path: str = ""
    notebook_path: str = ""
    paths: list[str] = []


class _Shown(_Stored):
    diff: Raw = field(default=Raw(), name="fileDiff")
    path: str = field(default="", name="filePath")


class _Call(_Stored):
    args: Raw
    result: tuple[_Result]
    id: str = ""
    name: str = ""
    status: str = ""
    timestamp: str = ""
    shown: Raw = field(default=Raw(b"null"), name="resultDisplay")


class _Record(_Stored):
    id: str
    type: Literal["user", "gemini"]
    content: str | list[_Part]
    timestamp: str = ""
    tokens: Usage | None = None
    thoughts: list[_Stored] = []
    model: str | None = None
    calls: list[_Call] = field(default=[], name="toolCalls")
    display: None = field(default=None, name="displayContent")
    rewind: None = field(default=None, name="$rewindTo")


class _Changes(_Stored, forbid_unknown_fields=True):
    updated: str | UnsetType = field(default=UNSET, name="lastUpdated")
    messages: list[Raw] | None = None


class _Change(_Stored, forbid_unknown_fields=True):
    changes: _Changes = field(name="$set")


_record_of = Decoder(_Record).decode
_change_of = Decoder(_Change).decode
_arguments_of = Decoder(_Arguments).decode
_shown_of = Decoder(_Shown).decode
_text_of = Decoder(str).decode
_NO_USAGE = Usage()


def feed_usual(replay: Replay, line: bytes, offset: int) -> bool:
    """Apply a line as `Replay.feed` does; return False, and do nothing, if it has another form."""
    if line.startswith(b'{"$'):
        return _change(replay, line, offset)
    facts = usual_facts(line, len(line))
    if facts is None:
        return False
    replay.has_messages = True
    replay.put(facts, Slot(offset, len(line)))
    return True


def _change(replay: Replay, line: bytes, offset: int) -> bool:
    try:
        changes = _change_of(line).changes
    except (MsgspecError, RecursionError, UnicodeError):
        return False
    stored = changes.messages
    if stored is not None:
        size = len(line) // max(1, len(stored))
        messages = [facts for record in stored if (facts := usual_facts(record, size))]
        if len(messages) < len(stored):
            return False
        replay.has_messages = replay.has_messages or bool(messages)
        replay.rebuild(messages, offset, len(line))
    if isinstance(changes.updated, str):
        replay.metadata["lastUpdated"] = changes.updated
    return True


def usual_facts(record: bytes | Raw, size: int) -> RecordFacts | None:
    """Return the facts about a message record of `size` bytes; None if it has another form."""
    try:
        message = _record_of(record)
        return (_user if message.type == "user" else _answer)(message, size)
    except (MsgspecError, RecursionError, UnicodeError):
        return None


def _user(record: _Record, size: int) -> RecordFacts | None:
    content, time = record.content, instant(record.timestamp)
    parts = [_Part(content)] if isinstance(content, str) else content
    texts = [part.text for part in parts if isinstance(part.text, str)]
    if not texts and parts:
        replies = tuple([_reply(part.reply) for part in parts if isinstance(part.reply, _Reply)])
        if len(replies) == len(parts):
            return reply_facts(replies, id=record.id, time=time, size=size)
    elif len(parts) == 1 and parts[0].reply is UNSET and is_plain(texts[0]):
        typed, resumable = UserParts(texts[0]), is_something(texts[0], prompt=True)
        return user_facts(typed, (), id=record.id, time=time, size=size, resumable=resumable)
    return None


def _reply(reply: _Reply) -> CallFact:
    name, error = reply.name, bool(reply.response.error)
    failed = error
    if not error and kind_of(name) is ToolKind.SHELL:
        failed = is_failed_command(_text_of(reply.response.output), None)
    return CallFact(reply.id, failed, error, tool=tool_name(name))


def _answer(record: _Record, size: int) -> RecordFacts | None:
    text, tokens = record.content, record.tokens
    if not isinstance(text, str) or tokens == _NO_USAGE:
        return None
    rich = (tokens, record.thoughts, record.model, record.calls)
    return model_facts(
        text.strip(),
        tuple(map(_call, record.calls)),
        id=record.id,
        time=instant(record.timestamp),
        size=size,
        usage=None if tokens is None else plausible(tokens),
        model=record.model,
        has=tuple(compress(RICH_FIELDS, rich)),
        resumable=bool(record.calls or record.thoughts) or is_something(text),
    )


def _call(call: _Call) -> CallFact:
    kind, reply = kind_of(call.name), call.result[0].reply
    if call.status != "success" or reply.response.error:
        return call_fact(_stored_call(call, reply))
    failed = False
    if kind is ToolKind.SHELL:
        output = _text_of(reply.response.output)
        if NOTICE in output:
            return call_fact(_stored_call(call, reply))
        failed = is_failed_command(output, decode(call.shown))
    arguments, shown = _arguments_of(call.args), _Shown()
    if bytes(call.shown).startswith(b"{"):
        shown = _shown_of(call.shown)
    asked = arguments.file_path or arguments.absolute_path or arguments.path
    asked = asked or arguments.notebook_path
    file = (shown.path if bytes(shown.diff).startswith(b'"') else "") or asked
    return CallFact(
        call.id,
        failed=failed,
        error=False,
        written=(file or None) if kind in WRITING else None,
        time=instant(call.timestamp),
        tool=tool_name(call.name) or UNKNOWN_TOOL,
        paths=named_paths({"paths": arguments.paths}, file),
    )


def _stored_call(call: _Call, reply: _Reply) -> dict[str, object]:
    return {
        "id": call.id,
        "name": call.name,
        "status": call.status,
        "timestamp": call.timestamp,
        "args": decode(call.args),
        "result": [{"functionResponse": _stored_reply(reply)}],
        "resultDisplay": decode(call.shown),
    }


def _stored_reply(reply: _Reply) -> dict[str, object]:
    response = {"output": decode(reply.response.output), "error": reply.response.error}
    return {"id": reply.id, "name": reply.name, "response": response}
