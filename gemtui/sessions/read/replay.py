"""Replay a session log: turn its records into the current conversation.

Of each record, only facts stay in memory (`RecordFacts`), not its body.

This module only holds state and reads no files: `SessionLog` passes it one parsed line after
another, with each line's position in the file. For the meaning of each line, see
assets/gemini-cli.md#session-files. Messages that a later line drops are remembered with the reason,
so that failed prompts and rewound messages can still be found.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum
from sys import intern
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gemtui.sessions.read.resumable import is_resumable
from gemtui.transcript.content import UserParts, is_feedback, text_of, typed
from gemtui.transcript.model import Author, Dropped, Outline, ToolStatus, excerpt
from gemtui.transcript.parts import instant, objects, parts_of, string, usage_of
from gemtui.transcript.tools import (
    UNKNOWN_TOOL,
    ToolKind,
    call_end,
    kind_of,
    paths_of_stored,
    raw_from_parts,
    written_path,
)
from gemtui.transcript.usage import Usage

# --- facts about one record ----------------------------------------------------------------------


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
    `written`: of a call that is only asked for, the file that it would write. `paths`: the files
    that it names.
    """

    id: str
    failed: bool
    error: bool
    written: str | None = None
    time: datetime | None = None
    tool: str = ""
    paths: tuple[str, ...] = ()


class RecordFacts(Struct, frozen=True, kw_only=True, gc=False):
    """The facts about one record.

    `has`: which of the RICH_FIELDS the record itself contains. `content`: whether it contains text,
    images, or code the model ran. `calls`: the calls in its `toolCalls` field. `asked`: those in
    `functionCall` parts that are not in `calls`. `replies`: its `functionResponse` parts.
    `attached`: the names of files that were attached to a prompt. `digest`: a hash that is equal
    for records with equal content. `resumable`: see `is_resumable`.
    """

    outline: Outline
    kind: RecordKind = RecordKind.MESSAGE
    has: tuple[str, ...] = ()
    content: bool
    digest: int
    calls: tuple[CallFact, ...] = ()
    asked: tuple[CallFact, ...] = ()
    replies: tuple[CallFact, ...] = ()
    attached: tuple[str, ...] = ()
    resumable: bool = False

    @property
    def part_ids(self) -> tuple[str, ...]:
        """The ids of the calls in `asked`."""
        return tuple([call.id for call in self.asked])

    @property
    def has_content(self) -> bool:
        """Whether the record contains content or calls."""
        return bool(self.content or self.calls or self.asked)


def facts_of(record: Mapping[str, Any], size: int) -> RecordFacts:
    """Return the facts about one message record of `size` bytes; never raises."""
    kind = record.get("type")
    if kind == "gemini":
        return _model(record, size)
    if kind == "user" and not is_feedback(record):
        parts = typed(record)
        return user_facts(
            parts,
            tuple(map(reply_fact, parts.replies)),
            id=_id(record),
            time=instant(record.get("timestamp")),
            size=size,
            resumable=is_resumable(record),
        )
    return _system(record, size)


def reply_facts(
    replies: tuple[CallFact, ...], *, id: str, time: datetime | None, size: int
) -> RecordFacts:
    """Return the facts about a user record of nothing but these replies."""
    return RecordFacts(
        outline=Outline(id=id, author=Author.USER, time=time, size=size),
        kind=RecordKind.REPLY,
        content=False,
        digest=hash(("user", "", 0, replies)),
        replies=replies,
        resumable=True,
    )


def user_facts(
    parts: UserParts,
    replies: tuple[CallFact, ...],
    *,
    id: str,
    time: datetime | None,
    size: int,
    resumable: bool,
) -> RecordFacts:
    """Return the facts about a user record with these parts and replies."""
    prompt = parts.prompt
    kind = RecordKind.MESSAGE
    if not prompt and replies:
        kind = RecordKind.REPLY
    elif not prompt and (parts.context or parts.files):
        kind = RecordKind.CONTEXT
    shown = excerpt(parts.text) if parts.text else ""
    return RecordFacts(
        outline=Outline(
            id=id,
            author=Author.USER,
            time=time,
            prompt=prompt,
            excerpt=shown or ("(image)" if parts.media else ""),
            size=size,
        ),
        kind=kind,
        content=prompt,
        digest=hash(("user", parts.text, len(parts.media), replies)),
        replies=replies,
        attached=tuple([name for name, _ in (*parts.media, *parts.files) if name]),
        resumable=resumable,
    )


def reply_fact(reply: Mapping[str, Any]) -> CallFact:
    """Return the facts about a `functionResponse` part, whatever its form."""
    if "status" in reply:
        return call_fact(raw_from_parts({}, reply))
    response = reply.get("response")
    error = isinstance(response, dict) and bool(response.get("error"))
    shell = kind_of(string(reply.get("name"))) is ToolKind.SHELL
    if error or not shell:
        return CallFact(_id(reply), error, error, tool=tool_name(string(reply.get("name"))))
    return replace(call_fact(raw_from_parts({}, reply)), error=False)


def _model(record: Mapping[str, Any], size: int) -> RecordFacts:
    value = record.get
    content, model = value("content"), value("model")
    text = text_of(content).strip()
    asked, made = ((), ()) if isinstance(content, str) else (_part_calls(content), _made(content))
    return model_facts(
        text,
        tuple(map(call_fact, objects(value("toolCalls")))),
        asked,
        made,
        id=_id(record),
        time=instant(value("timestamp")),
        size=size,
        usage=usage_of(value("tokens")),
        model=model if isinstance(model, str) else None,
        has=tuple([name for name in RICH_FIELDS if value(name)]),
        resumable=is_resumable(record),
    )


def model_facts(
    text: str,
    calls: tuple[CallFact, ...],
    asked: tuple[CallFact, ...] = (),
    made: tuple[str, ...] = (),
    *,
    id: str,
    time: datetime | None,
    size: int,
    usage: Usage | None,
    model: str | None,
    has: tuple[str, ...],
    resumable: bool,
) -> RecordFacts:
    """Return the facts about a model's answer.

    `text`: stripped. `made`: the types of its parts that hold images, files, or code the model ran.
    """
    outline = Outline(id=id, author=Author.MODEL, time=time, size=size, usage=usage, model=model)
    content = bool(text or made)
    if not (calls or asked):
        digest = hash(("gemini", text, made, ()))
        return RecordFacts(
            outline=outline, has=has, content=content, digest=digest, resumable=resumable
        )
    ids = tuple([call.id for call in calls])
    return RecordFacts(
        outline=replace(
            outline,
            calls=len(calls),
            failures=sum([call.failed for call in calls]),
            errors=sum([call.error for call in calls]),
            writes=tuple([call.written for call in calls if call.written]),
            tools=tools_of((*calls, *asked)),
        ),
        has=has,
        content=content,
        digest=hash(("gemini", text, made, ids or tuple([call.id for call in asked]))),
        calls=calls,
        asked=_without(asked, ids),
        resumable=resumable,
    )


def _part_calls(content: object) -> tuple[CallFact, ...]:
    calls = [part.get("functionCall") for part in parts_of(content)]
    return tuple([_asked(call) for call in calls if isinstance(call, dict)])


def _asked(call: Mapping[str, Any]) -> CallFact:
    return CallFact(
        _id(call),
        failed=False,
        error=False,
        written=written_path(call, ToolStatus.SUCCESS),
        tool=tool_name(string(call.get("name"))),
        paths=paths_of_stored(call),
    )


def _made(content: object) -> tuple[str, ...]:
    """Return the types of the parts that hold images, files, or code the model ran."""
    return tuple(
        [name for part in parts_of(content) for name in _MADE if isinstance(part.get(name), dict)]
    )


def _without(calls: tuple[CallFact, ...], ids: Iterable[str]) -> tuple[CallFact, ...]:
    """Return the calls that have none of these ids."""
    ids_left = set(ids) if calls else set()
    return tuple([call for call in calls if call.id not in ids_left]) if ids_left else calls


def call_fact(raw: Mapping[str, Any]) -> CallFact:
    """Return the facts about a `toolCalls` entry, whatever its form."""
    status, exit_code = call_end(raw)
    time = instant(raw.get("timestamp"))
    failed = status.failed or bool(exit_code)
    error = status.failed and status is not ToolStatus.REFUSED
    tool = tool_name(string(raw.get("name"))) or UNKNOWN_TOOL
    return CallFact(
        _id(raw), failed, error, written_path(raw, status), time, tool, paths_of_stored(raw)
    )


def tool_name(name: str) -> str:
    """Return a tool's name as it is kept; equal names are the same object, to save memory."""
    return intern(name[:_LONGEST_NAME])


def tools_of(calls: Iterable[CallFact]) -> tuple[str, ...]:
    """Return the names of the called tools, each once, in order of the first call."""
    return _distinct([call.tool for call in calls])


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([name for name in names if name]))


def _system(record: Mapping[str, Any], size: int) -> RecordFacts:
    return RecordFacts(
        outline=Outline(
            id=_id(record), author=Author.SYSTEM, time=instant(record.get("timestamp")), size=size
        ),
        content=True,
        digest=hash((string(record.get("type")), text_of(record.get("content")))),
        resumable=is_resumable(record),
    )


def _id(thing: Mapping[str, Any]) -> str:
    id = thing.get("id")
    return id if isinstance(id, str) else ""


# --- the replay ----------------------------------------------------------------------------------


class Slot(Struct, frozen=True, gc=False):
    """A record's position: a line of the file, and the record's index within the line.

    `offset` and `length` locate the line, in bytes. `place` is -1 if the line itself is the record.
    """

    offset: int
    length: int
    place: int = -1


class ReplayedMessage(Struct, frozen=True, gc=False):
    """One message record in the replay.

    `borrowed`: fields that the message lost when a resume restored it, each with the position of
    the earlier record that still has the field. `birth`: the message's place in the order of first
    appearance in the log. `more`: the records that continue it, as in answers of several lines.
    """

    id: str
    slot: Slot
    facts: RecordFacts
    birth: int
    borrowed: tuple[tuple[str, Slot], ...] = ()
    more: tuple[Slot, ...] = ()

    @property
    def is_silent(self) -> bool:
        """Whether this is an answer without text and without calls.

        Such an answer may be waiting for its calls, which the CLI stores only when they end; see
        assets/gemini-cli.md#tool-calls.
        """
        return self.facts.outline.author is Author.MODEL and not self.facts.has_content


class StoredCall(Struct, frozen=True, gc=False):
    """The position and facts of a tool call or a reply, anywhere in the log."""

    slot: Slot
    fact: CallFact


class Replay:
    """The state of a session's conversation after the log lines read so far."""

    def __init__(self) -> None:
        self.metadata: dict[str, Any] = {}
        self.started: datetime | None = None
        """The earliest start time in any header, because a resume writes a later one."""
        self.calls: dict[str, StoredCall] = {}
        self.replies: dict[str, StoredCall] = {}
        self.parts: set[str] = set()
        self.has_messages = False
        """Whether any record was a message of a type that Gemini CLI writes."""
        self.held = 0
        """How many messages, calls, and replies are in memory, for limiting memory use."""
        self._entries: dict[str, ReplayedMessage] = {}
        self._dropped: dict[str, tuple[ReplayedMessage, Dropped]] = {}
        self._seen: dict[str, ReplayedMessage] = {}
        self._derived: dict[tuple[Outline, Hashable], Outline] = {}
        self.calls_are_late = True
        """Whether calls are stored only when they end, as by Gemini CLI."""

    def feed(self, line: Mapping[str, Any], offset: int, length: int) -> str | None:
        """Apply one line the way the CLI does.

        Returns a note on anything left out, or None. Unlike the CLI, this also applies messages
        without an id.
        """
        if isinstance(target := line.get("$rewindTo"), str):
            self._rewind(target)
        elif isinstance(line.get("id"), str) or (is_message(line) and "content" in line):
            self.has_messages = self.has_messages or is_message(line)
            self.put(facts_of(line, length), Slot(offset, length))
        elif isinstance(change := line.get("$set"), dict):
            return self._merge(change, offset, length)
        elif _is_header(line):
            return self._merge(line, offset, length)
        else:
            return "left out because its type is unknown"
        return None

    def _merge(self, change: Mapping[str, Any], offset: int, length: int) -> str | None:
        self.metadata.update(change)
        start = instant(change.get("startTime"))
        if start is not None and (self.started is None or start < self.started):
            self.started = start
        messages = self.metadata.pop("messages", None)
        if not isinstance(messages, list):
            return None
        records = objects(messages)
        self.has_messages = self.has_messages or any(map(is_message, records))
        size = length // max(1, len(records))
        self.rebuild([facts_of(record, size) for record in records], offset, length)
        return left_out_note(len(messages) - len(records))

    def rebuild(
        self, messages: Sequence[RecordFacts], offset: int, length: int, *, unique: bool = False
    ) -> None:
        """Apply `$set.messages`: replace all messages, dropping those not in the list.

        `messages`: the facts about the list's records. `unique`: whether a repeated id in the list
        denotes a different message (as in legacy files), rather than a newer version of the same
        message. In legacy files, messages need no id to be resumed.
        """
        before = list(self._entries.values())
        self._entries = {}
        for index, facts in enumerate(messages):
            again = facts.outline.id in self._entries
            id = f"{facts.outline.id}~{index}" if again and unique else ""
            slot = Slot(offset, length, index)
            self.put(facts, slot, restored=not again, id=id, needs_id=not unique)
        gone = [entry for entry in before if entry.id not in self._entries]
        self._bury(self._without_twins(gone))

    def put(
        self,
        facts: RecordFacts,
        slot: Slot,
        *,
        restored: bool = False,
        id: str = "",
        needs_id: bool = True,
    ) -> None:
        """Apply a message record, of which these are the facts.

        `restored`: whether a list of messages has it, which may lack fields of an earlier record.
        `id`: the id it gets instead of its own. `needs_id`: whether it needs one to be resumed.
        """
        if needs_id and not facts.outline.id:
            facts = replace(facts, resumable=False)
        id = id or facts.outline.id or f"#{slot.offset}.{slot.place}"
        if facts.outline.id != id:
            facts = replace(facts, outline=replace(facts.outline, id=id))
        old = self._seen.get(id)
        entry = ReplayedMessage(id, slot, facts, len(self._seen) if old is None else old.birth)
        self.held += _weight(facts)
        if old is not None:
            self.held -= _weight(old.facts)
            self._dropped.pop(id, None)
            if restored or old.borrowed:
                entry = _enriched(entry, old, restored=restored)
        self._entries[id] = self._seen[id] = entry
        for call in facts.calls:
            if call.id:
                self.calls[call.id] = StoredCall(slot, call)
        for reply in facts.replies:
            if reply.id:
                self.replies[reply.id] = StoredCall(slot, reply)
        if facts.asked:
            self.parts.update(filter(None, facts.part_ids))

    def _rewind(self, target: str) -> None:
        """Apply `$rewindTo`: drop the message with the id `target` and all later ones.

        If there is no such message, all messages are dropped.
        """
        id = None
        while self._entries and id != target:
            id, entry = self._entries.popitem()
            self._drop(entry, Dropped.REWOUND)

    def _drop(self, entry: ReplayedMessage, why: Dropped) -> None:
        if entry.facts.kind is RecordKind.MESSAGE:
            self._dropped[entry.id] = (entry, why)

    def _bury(self, gone: Iterable[ReplayedMessage]) -> None:
        """Record messages as dropped, with the same reason for a prompt and its answers.

        If a prompt has no answer, the reason is that the prompt failed.
        """
        turn: list[ReplayedMessage] = []
        for entry in [*gone, None]:
            if turn and (entry is None or entry.facts.outline.prompt):
                why = _why(turn)
                for member in turn:
                    self._drop(member, why)
                turn = []
            if entry is not None:
                turn.append(entry)

    def _without_twins(self, gone: list[ReplayedMessage]) -> list[ReplayedMessage]:
        """Return those of the dropped messages that were not restored under a new id.

        When an interactive request is cancelled, the CLI rewrites the whole history with new ids,
        so a dropped message may have a twin: a message that has the same content and appeared
        later. The twin gets those of the dropped message's fields that it lacks.
        """
        if not gone:
            return []
        newer: dict[int, list[ReplayedMessage]] = {}
        for entry in reversed(self._entries.values()):
            newer.setdefault(entry.facts.digest, []).append(entry)
        lost = []
        for entry in gone:
            twins = newer.get(entry.facts.digest, [])
            if twins and twins[-1].birth > entry.birth:
                twin = _enriched(twins.pop(), entry, restored=True)
                twin = replace(twin, birth=entry.birth)
                self._entries[twin.id] = self._seen[twin.id] = twin
            else:
                lost.append(entry)
        return lost

    def branch(self, after: str) -> None:
        """Continue after the record with the id `after`, dropping what follows it.

        Nothing is dropped if there is no such record, or if no message follows it.
        """
        if after not in self._entries:
            return
        following = []
        for entry in reversed(self._entries.values()):
            if entry.id == after:
                break
            following.append(entry)
        if any(map(_is_said, following)):
            for entry in following:
                del self._entries[entry.id]
                self._drop(entry, Dropped.REWOUND)

    def extend(self, id: str, facts: RecordFacts, slot: Slot) -> bool:
        """Add a record to the message of which it is a part; return whether that is there."""
        entry = self._entries.get(id)
        if entry is None:
            return False
        self.held += _weight(facts)
        whole = replace(entry, facts=_extended(entry.facts, facts), more=(*entry.more, slot))
        self._entries[id] = self._seen[id] = whole
        self.parts.update(filter(None, facts.part_ids))
        return True

    def keep(self, entry: ReplayedMessage, old: ReplayedMessage) -> None:
        """Give a message the outline object of `old`, whose record must be equal.

        Views compare outlines by identity, so the message then counts as unchanged.
        """
        kept = _with_outline(entry, old.facts.outline)
        self._entries[entry.id] = self._seen[entry.id] = kept

    # --- current state -----------------------------------------------------------------------

    @property
    def entries(self) -> list[ReplayedMessage]:
        """All records after replay, in order, including session context and tool results."""
        return list(self._entries.values())

    def shown_calls(self) -> Iterator[CallFact]:
        """Yield the facts about each call that the transcript shows."""
        for entry in self._entries.values():
            if entry.facts.kind is RecordKind.MESSAGE:
                yield from entry.facts.calls
                yield from map(self._answered, entry.facts.asked)
            elif entry.facts.kind is RecordKind.REPLY:
                for reply in entry.facts.replies:
                    if reply.id not in self.calls and reply.id not in self.parts:
                        yield replace(reply, tool=reply.tool or UNKNOWN_TOOL)

    def _answered(self, asked: CallFact) -> CallFact:
        """Return the facts about a call that a message names only in a part."""
        stored = self.calls.get(asked.id)
        if stored is not None:
            return stored.fact
        reply = self.replies.get(asked.id)
        tool = asked.tool or ("" if reply is None else reply.fact.tool)
        return replace(
            asked, tool=tool or UNKNOWN_TOOL, failed=reply is not None and reply.fact.failed
        )

    def attached(self) -> Iterator[str]:
        """Yield the names of the files that were attached to the prompts."""
        for entry in self._entries.values():
            if entry.facts.kind is RecordKind.MESSAGE:
                yield from entry.facts.attached

    @property
    def resumable(self) -> bool:
        """Whether the CLI finds anything to resume here (assets/gemini-cli.md#clean-up)."""
        return any(entry.facts.resumable for entry in self._entries.values())

    @property
    def waits(self) -> bool:
        """Whether the last record may be waiting for its calls."""
        if not self._entries:
            return False
        last = next(reversed(self._entries.values()))
        if self.calls_are_late:
            return last.is_silent
        return any(id not in self.replies for id in last.facts.part_ids)

    @property
    def dropped(self) -> list[tuple[ReplayedMessage, Dropped]]:
        """The messages that a later line dropped and no line restored, in original order."""
        return sorted(self._dropped.values(), key=lambda item: item[0].birth)

    def outline(self, entry: ReplayedMessage) -> Outline:
        """Return a message's outline, including calls only named in `functionCall` parts.

        An outline holds the facts about a message that stay in memory without its body.
        """
        if not entry.facts.part_ids:
            return entry.facts.outline
        answered = tuple(id in self.calls or id in self.replies for id in entry.facts.part_ids)
        return self.intern(self._with_parts(entry), answered)

    def intern(self, outline: Outline, known: Hashable = ()) -> Outline:
        """Return the same object for equal outlines, because views compare by identity.

        `known`: other facts about the message that must also be equal, such as which of its calls
        have had a reply.
        """
        return self._derived.setdefault((outline, known), outline)

    def _with_parts(self, entry: ReplayedMessage) -> Outline:
        facts = [
            _joined(call, line.fact)
            for call in entry.facts.asked
            if (line := self.calls.get(call.id) or self.replies.get(call.id)) is not None
        ]
        outline = entry.facts.outline
        return replace(
            outline,
            calls=outline.calls + len(entry.facts.part_ids),
            failures=outline.failures + sum(fact.failed for fact in facts),
            errors=outline.errors + sum(fact.error for fact in facts),
            writes=outline.writes + tuple(fact.written for fact in facts if fact.written),
            tools=_distinct([*outline.tools, *tools_of(facts)]),
        )


def _joined(asked: CallFact, reply: CallFact) -> CallFact:
    """Return the facts about a call from its reply, which may name neither tool nor file."""
    tool = asked.tool if reply.tool == UNKNOWN_TOOL else reply.tool
    written = reply.written or (None if reply.failed else asked.written)
    return replace(reply, tool=tool, written=written)


def _extended(first: RecordFacts, second: RecordFacts) -> RecordFacts:
    """Return the facts about a message of two records, each of which may repeat its tokens."""
    outline, more = first.outline, second.outline
    outline = replace(
        outline,
        size=outline.size + more.size,
        usage=more.usage or outline.usage,
        model=outline.model or more.model,
        tools=_distinct([*outline.tools, *more.tools]),
    )
    return replace(
        first,
        outline=outline,
        has=_distinct([*first.has, *second.has]),
        content=first.content or second.content,
        digest=hash((first.digest, second.digest)),
        asked=(*first.asked, *second.asked),
        resumable=first.resumable or second.resumable,
    )


def _is_said(entry: ReplayedMessage) -> bool:
    """Return whether a record is a message of a person or the model."""
    is_message = entry.facts.kind is RecordKind.MESSAGE
    return is_message and entry.facts.outline.author is not Author.SYSTEM


_TYPES = frozenset({"user", "gemini", "info", "warning", "error"})


def is_message(record: Mapping[str, Any]) -> bool:
    """Return whether a record has the type of a message, even if it has no valid id."""
    kind = record.get("type")
    return isinstance(kind, str) and kind in _TYPES


def _is_header(line: Mapping[str, Any]) -> bool:
    """Return whether a line is a header, even if it lacks the project.

    Other programs' records name their session, too, but have a type.
    """
    return isinstance(line.get("sessionId"), str) and (
        isinstance(line.get("projectHash"), str) or "type" not in line
    )


def left_out_note(count: int) -> str | None:
    """Return a note on the number of invalid entries in a message list.

    Returns None if `count` is 0.
    """
    return f"left out {count:,} of its messages, which are not JSON objects" if count else None


def _weight(facts: RecordFacts) -> int:
    return 1 + len(facts.calls) + len(facts.asked) + len(facts.replies)


def _why(turn: list[ReplayedMessage]) -> Dropped:
    answered = any(
        entry.facts.has_content and entry.facts.outline.author is Author.MODEL for entry in turn
    )
    first = turn[0].facts
    asked = first.outline.prompt or (first.resumable and first.outline.author is Author.SYSTEM)
    return Dropped.FAILED_PROMPT if asked and not answered else Dropped.BURIED


def _enriched(entry: ReplayedMessage, old: ReplayedMessage, *, restored: bool) -> ReplayedMessage:
    """Return `entry` with its lost fields restored from the earlier record `old`.

    `restored`: whether a resume restored the message from `old`, so that all of its fields are
    wanted. If not, the entry's line replaces the earlier record, and the entry gets only the fields
    that were missing from that record, too, and were restored from a still earlier one.
    """
    if entry.facts.outline.author is not old.facts.outline.author:
        return entry
    sources = dict(old.borrowed)
    if restored:
        sources |= dict.fromkeys(old.facts.has, old.slot)
    sources = {name: slot for name, slot in sources.items() if name not in entry.facts.has}
    if not sources:
        return _same(entry, old) if restored else entry
    mine, theirs = entry.facts, old.facts
    calls = "toolCalls" in sources
    outline = replace(
        mine.outline,
        usage=theirs.outline.usage if "tokens" in sources else mine.outline.usage,
        model=theirs.outline.model if "model" in sources else mine.outline.model,
        calls=theirs.outline.calls if calls else mine.outline.calls,
        failures=theirs.outline.failures if calls else mine.outline.failures,
        errors=theirs.outline.errors if calls else mine.outline.errors,
        writes=theirs.outline.writes if calls else mine.outline.writes,
        tools=theirs.outline.tools if calls else mine.outline.tools,
    )
    ids = {call.id for call in theirs.calls}
    facts = replace(
        mine,
        outline=outline,
        calls=theirs.calls if calls else mine.calls,
        asked=_without(mine.asked, ids) if calls else mine.asked,
    )
    borrowed = tuple((name, sources[name]) for name in RICH_FIELDS if name in sources)
    return _same(replace(entry, facts=facts, borrowed=borrowed), old)


def _same(entry: ReplayedMessage, old: ReplayedMessage) -> ReplayedMessage:
    """Return `entry` with the outline object of `old` if the message is unchanged."""
    mine, theirs = entry.facts, old.facts
    if mine.digest != theirs.digest or entry.id != old.id:
        return entry
    if replace(mine.outline, size=theirs.outline.size) != theirs.outline:
        return entry
    return _with_outline(entry, theirs.outline)


def _with_outline(entry: ReplayedMessage, outline: Outline) -> ReplayedMessage:
    return replace(entry, facts=replace(entry.facts, outline=outline))
