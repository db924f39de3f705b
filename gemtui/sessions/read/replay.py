"""Replay a session log: turn its records into the current conversation.

This module only holds state and reads no files: `SessionLog` passes it one parsed line after
another, with each line's position in the file. For the meaning of each line, see
assets/gemini-cli.md#session-files. Messages that a later line drops are remembered with the reason,
so that failed prompts and rewound messages can still be found.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gemtui.sessions.read.record_facts import RICH_FIELDS, CallFact, RecordFacts, RecordKind, facts_of, tools_of
from gemtui.transcript.model import Author, Dropped, Outline
from gemtui.transcript.parts import instant, objects


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
    appearance in the log.
    """

    id: str
    slot: Slot
    facts: RecordFacts
    birth: int
    borrowed: tuple[tuple[str, Slot], ...] = ()

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
        self.held = 0
        """How many messages, calls, and replies are in memory, for limiting memory use."""
        self._entries: dict[str, ReplayedMessage] = {}
        self._dropped: dict[str, tuple[ReplayedMessage, Dropped]] = {}
        self._seen: dict[str, ReplayedMessage] = {}
        self._derived: dict[tuple[Outline, Hashable], Outline] = {}

    def feed(self, line: Mapping[str, Any], offset: int, length: int) -> str | None:
        """Apply one line the way the CLI does.

        Returns a note on anything left out, or None. Unlike the CLI, this also applies messages
        without an id.
        """
        if isinstance(target := line.get("$rewindTo"), str):
            self._rewind(target)
        elif isinstance(line.get("id"), str) or _is_message(line):
            self._put(line, Slot(offset, length), length, restored=False)
        elif isinstance(change := line.get("$set"), dict):
            return self._merge(change, offset, length)
        elif isinstance(line.get("sessionId"), str):
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
        self.rebuild(records, offset, length)
        return left_out_note(len(messages) - len(records))

    def rebuild(self, records: Sequence[Mapping[str, Any]], offset: int, length: int, *, unique: bool = False) -> None:
        """Apply `$set.messages`: replace all messages, dropping those not in the list.

        `unique`: whether a repeated id in the list denotes a different message (as in legacy
        files), rather than a newer version of the same message.
        """
        before = list(self._entries.values())
        self._entries = {}
        size = length // max(1, len(records))
        for index, record in enumerate(records):
            named = record.get("id")
            again = unique and isinstance(named, str) and named in self._entries
            id = f"{named}~{index}" if again else ""
            self._put(record, Slot(offset, length, index), size, restored=True, id=id)
        gone = [entry for entry in before if entry.id not in self._entries]
        self._bury(self._without_twins(gone))

    def _put(self, record: Mapping[str, Any], slot: Slot, size: int, *, restored: bool, id: str = "") -> None:
        facts = facts_of(record, size)
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
        known = tuple(id in self.calls or id in self.replies for id in entry.facts.part_ids)
        return self.intern(self._with_parts(entry), known)

    def intern(self, outline: Outline, known: Hashable = ()) -> Outline:
        """Return the same object for equal outlines, because views compare by identity.

        `known`: other facts about the message that must also be equal, such as which of its calls
        have had a reply.
        """
        return self._derived.setdefault((outline, known), outline)

    def _with_parts(self, entry: ReplayedMessage) -> Outline:
        known = [self.calls.get(id) or self.replies.get(id) for id in entry.facts.part_ids]
        facts = [each.fact for each in known if each is not None]
        outline = entry.facts.outline
        return replace(
            outline,
            calls=outline.calls + len(entry.facts.part_ids),
            failures=outline.failures + sum(fact.failed for fact in facts),
            errors=outline.errors + sum(fact.error for fact in facts),
            writes=outline.writes + tuple(fact.written for fact in facts if fact.written),
            tools=outline.tools + tools_of(facts),
        )


_TYPES = frozenset({"user", "gemini", "info", "warning", "error"})


def _is_message(line: Mapping[str, Any]) -> bool:
    """Return whether a line is a message, even if it has no valid id."""
    kind = line.get("type")
    return isinstance(kind, str) and kind in _TYPES and "content" in line


def left_out_note(count: int) -> str | None:
    """Return a note on the number of invalid entries in a message list.

    Returns None if `count` is 0.
    """
    return f"left out {count:,} of its messages, which are not JSON objects" if count else None


def _weight(facts: RecordFacts) -> int:
    return 1 + len(facts.calls) + len(facts.part_ids) + len(facts.replies)


def _why(turn: list[ReplayedMessage]) -> Dropped:
    answered = any(entry.facts.has_content and entry.facts.outline.author is Author.MODEL for entry in turn)
    asked = turn[0].facts.outline.prompt
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
        part_ids=tuple(id for id in mine.part_ids if not calls or id not in ids),
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
