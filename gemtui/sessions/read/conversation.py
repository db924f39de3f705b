"""Read a session log as a transcript, as stored records, or as unified messages."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace as message_with
from datetime import datetime
from itertools import accumulate
from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import replace

from gemtui.agents import Agent
from gemtui.jsonin import loads
from gemtui.sessions.read.dialect import agent_of_record, pieces, stored, stored_lines
from gemtui.sessions.read.foreign import translated
from gemtui.sessions.read.replay import (
    CallFact,
    RecordKind,
    Replay,
    ReplayedMessage,
    Slot,
    tools_of,
)
from gemtui.sessions.read.session_log import RecordSource, SessionLog, read_record
from gemtui.transcript.content import answer_text, is_feedback, text_of, thoughts_of, typed
from gemtui.transcript.media import numbered
from gemtui.transcript.model import (
    Attachment,
    Author,
    Block,
    Dropped,
    Image,
    Message,
    Notice,
    NoticeLevel,
    Outline,
    Text,
    Thought,
    ToolCall,
    Transcript,
)
from gemtui.transcript.parts import EARLIEST, image_of, instant, objects, parts_of, string, usage_of
from gemtui.transcript.tools import call_from_parts, raw_from_parts, tool_call, with_own_result
from gemtui.transcript.unified import UnifiedMessage, parse_message

IN_FLIGHT = (
    "A tool call was still running when this was last written; Gemini CLI stores a call "
    "when it ends."
)


NO_CONTENT = "This prompt has no content."


def transcript_of(log: SessionLog, *, dropped: bool = False, in_flight: bool = True) -> Transcript:
    """Return the log's current conversation; message bodies are read when needed.

    `dropped`: include rewound, replaced, and failed messages, each marked as such. `in_flight`: if
    the last answer is empty, treat it as waiting for its tools, and add a notice. The result is a
    snapshot: refreshing the log does not change it. A later snapshot uses the same outline objects
    for all messages that haven't changed.
    """
    items = _items(log.replay, dropped=dropped)
    if in_flight and log.complete and log.replay.calls_are_late:
        _mark_in_flight(items, log.replay)
    calls = _LogCalls(log.replay, log.source)

    def read(index: int) -> Message:
        return _message(items[index], calls)

    return Transcript(outlines=tuple(item.outline for item in items), read=read, revision=log.size)


def placed_messages(
    log: SessionLog, *, start: int = 0, stop: int | None = None
) -> Iterator[tuple[Message, Slot | None]]:
    """Yield a log's messages, including dropped ones, each with its place in the file.

    The messages are those of `transcript_of(log, dropped=True, in_flight=False)`, from index
    `start` to `stop`. The place (a Slot) is a line of the log from which `message_on_line` can
    build the same message. It is None if the message also needs other lines.
    """
    calls = _LogCalls(log.replay, log.source)
    for item in _items(log.replay, dropped=True)[start:stop]:
        alone = log.format == "jsonl" and _is_alone(item, log.replay)
        yield _message(item, calls), item.entry.slot if alone else None


def message_fingerprints(log: SessionLog) -> list[tuple[object, ...]]:
    """Return a fingerprint for each message that `placed_messages` yields.

    If a log has only grown, a message with an unchanged fingerprint has not changed.
    """
    calls, replies = log.replay.calls, log.replay.replies

    def others(entry: ReplayedMessage) -> list[tuple[object, ...]]:
        return [(calls.get(id), replies.get(id)) for id in entry.facts.part_ids]

    return [
        (item.entry, item.outline, item.calls, item.rest, item.hidden, others(item.entry))
        for item in _items(log.replay, dropped=True)
    ]


def _is_alone(item: _Item, replay: Replay) -> bool:
    entry = item.entry
    whole = item.calls is None and not item.hidden and entry.facts.kind is RecordKind.MESSAGE
    if not replay.calls_are_late and entry.facts.outline.author is Author.SYSTEM:
        return False  # the line does not tell which agent wrote it
    elsewhere = entry.borrowed or entry.more or entry.facts.part_ids
    return whole and entry.slot.place < 0 and not elsewhere


def records_of(log: SessionLog) -> Iterator[Mapping[str, Any]]:
    """Yield the stored records of the current conversation, in order.

    Fields that a message lost when a session was resumed are restored
    (assets/gemini-cli.md#ghosts).
    """
    for entry in log.replay.entries:
        record = read_record(log.source, entry)
        if record is not None:
            yield from stored_lines(record)


def whole_records(
    log: SessionLog, entries: Iterable[ReplayedMessage]
) -> Iterator[tuple[ReplayedMessage, Mapping[str, Any] | None]]:
    """Yield each entry with its record, to which missing tool calls are added.

    A call that a message names only in a `functionCall` part is added to that message's record as a
    `toolCalls` entry with its result, and removed from all other records
    (assets/gemini-cli.md#ghosts). A record is None if it can't be read any more.
    """
    lookup = _LogCalls(log.replay, log.source)
    named = {id for entry in log.replay.entries for id in entry.facts.part_ids}
    for entry in entries:
        record = read_record(log.source, entry)
        if record is not None and (entry.facts.calls or entry.facts.part_ids):
            own = [raw for raw in objects(record.get("toolCalls")) if _id(raw) not in named]
            calls = [*own, *_calls_in_parts(record, entry, lookup)]
            record = {**record, "toolCalls": [with_own_result(raw) for raw in calls]}
        yield entry, record


def dropped_counts(log: SessionLog) -> Counter[Dropped]:
    """Count the messages that are no longer in the conversation, by reason.

    These are the messages that `dropped=True` adds to `transcript_of`.
    """
    if not log.replay.dropped:
        return Counter()
    shown = [entry for entry in log.replay.entries if _is_shown(entry, log.replay)]
    whys = (item.outline.dropped for item in _dropped_items(log.replay, shown))
    return Counter(why for why in whys if why is not None)


def dropped_of(log: SessionLog) -> Iterator[tuple[Dropped, Mapping[str, Any]]]:
    """Yield the reason and the record of each message dropped from the conversation."""
    for entry, why in log.replay.dropped:
        record = read_record(log.source, entry)
        if record is not None:
            yield from ((why, line) for line in stored_lines(record))


def unified_of(log: SessionLog) -> Iterator[UnifiedMessage]:
    """Yield the conversation as Claude-compatible messages, for other programs.

    Session context is left out, as are the results of tool calls where the calls have them.
    """
    for _, message in records_and_unified(log):
        if message is not None:
            yield message


def records_and_unified(
    log: SessionLog,
) -> Iterator[tuple[Mapping[str, Any], UnifiedMessage | None]]:
    """Yield what `records_of` yields, each record with its message in `unified_of`, if any."""
    calls = _LogCalls(log.replay, log.source)
    for entry in log.replay.entries:
        record = read_record(log.source, entry)
        if record is None:
            continue
        message = None
        if _is_shown(entry, log.replay):
            message = parse_message(record, reply=calls.reply, call=calls.call)
            message = message_with(
                message,
                tool=agent_of_record(record).value,
                usage=message.usage if entry.facts.outline.usage else None,
                original=stored(record),
            )
            if entry.facts.replies:
                message = _without_results(
                    message, {reply.id for reply in entry.facts.replies}, log.replay
                )
        yield stored(record), message


def _without_results(message: UnifiedMessage, replies: set[str], replay: Replay) -> UnifiedMessage:
    """Return a message without the results that stand beside their calls."""
    answered = {id for id in replies if id in replay.calls or id in replay.parts}
    content = message.content
    if isinstance(content, str) or not answered:
        return message
    left = [
        block
        for block in content
        if block["type"] != "tool_result" or block["tool_use_id"] not in answered
    ]
    return message_with(message, content=tuple(left))


def calls_of(log: SessionLog) -> Iterator[Mapping[str, Any]]:
    """Yield every tool call of the conversation in the form of a `toolCalls[]` entry.

    Calls that exist only as `functionCall` parts are included, so that the number of calls equals
    the count in the session's summary.
    """
    lookup = _LogCalls(log.replay, log.source)
    for entry in log.replay.entries:
        if entry.facts.kind is RecordKind.MESSAGE and log.replay.outline(entry).calls:
            record = read_record(log.source, entry)
            if record is not None:
                yield from objects(record.get("toolCalls"))
                yield from _calls_in_parts(record, entry, lookup)


def _calls_in_parts(
    record: Mapping[str, Any], entry: ReplayedMessage, lookup: _LogCalls
) -> Iterator[Mapping[str, Any]]:
    wanted = Counter(entry.facts.part_ids)
    for part in parts_of(record.get("content")) if wanted else []:
        call = part.get("functionCall")
        if isinstance(call, dict) and wanted[id := _id(call)] > 0:
            wanted[id] -= 1
            yield lookup.call(id) or raw_from_parts(call, lookup.reply(id))


def _id(call: Mapping[str, Any]) -> str:
    id = call.get("id")
    return id if isinstance(id, str) else ""


# --- parts of a transcript ---------------------------------------------------------------------


class _Item(Struct, frozen=True, kw_only=True):
    """A message to build from a replayed record, or from some of the record's calls.

    `calls`: the indexes of the calls to include; None means the whole record. `rest`: include
    everything but calls. `hidden`: ids of calls to leave out. `in_flight`: whether the message is
    waiting for its tools.
    """

    entry: ReplayedMessage
    outline: Outline
    calls: frozenset[int] | None = None
    rest: bool = True
    hidden: frozenset[str] = frozenset()
    in_flight: bool = False


def _items(replay: Replay, *, dropped: bool) -> list[_Item]:
    """Return the conversation's messages, with dropped ones in their original places."""
    shown = [entry for entry in replay.entries if _is_shown(entry, replay)]
    late = _late_calls(shown)
    waiting = deque(_dropped_items(replay, shown) if dropped else ())
    items: list[_Item] = []
    for index, entry in enumerate(shown):
        while waiting and waiting[0].entry.birth < entry.birth:
            items.append(waiting.popleft())
        items.append(_item(entry, replay, moved=late.moved.get(index)))
        for origin, ids in late.after.get(index, ()):
            items.append(_continuation(origin, ids, replay))
    return [*items, *waiting]


def _mark_in_flight(items: list[_Item], replay: Replay) -> None:
    """Mark the last answer as waiting for its tool calls if it is empty.

    See assets/gemini-cli.md#tool-calls. The answer gets its own outline, so that views redraw it
    when its calls arrive.
    """
    kept = (at for at in range(len(items) - 1, -1, -1) if items[at].outline.dropped is None)
    at = next(kept, None)
    if at is not None and items[at].entry.is_silent:
        outline = replay.intern(replace(items[at].outline), "in flight")
        items[at] = replace(items[at], outline=outline, in_flight=True)


def _dropped_items(replay: Replay, shown: Iterable[ReplayedMessage]) -> Iterator[_Item]:
    """Yield the messages to build for dropped records, showing each call only once.

    The same call may be in several records, because a message restored under a new id contains the
    calls of the old one, and because in sessions over ACP (the protocol between the CLI and
    editors), one record collects the calls of other messages. A call that the current conversation
    already shows is left out. Any other call is shown only with the answer that names it. Messages
    that have nothing left to show are skipped.
    """
    dropped = replay.dropped
    home = {id: "" for entry in shown for id in _call_ids(entry)} if dropped else {}
    for entry, _ in dropped:
        for id in entry.facts.part_ids:
            home.setdefault(id, entry.id)
    for entry, why in dropped:
        ids = _call_ids(entry)
        hidden = frozenset(id for id in ids if home.setdefault(id, entry.id) != entry.id)
        left = _without(entry, hidden) if hidden else entry
        if left.facts.has_content or not hidden:
            outline = replace(replay.outline(left), dropped=why)
            yield _Item(entry=left, outline=replay.intern(outline, hidden), hidden=hidden)


def _call_ids(entry: ReplayedMessage) -> list[str]:
    calls = (call.id for call in entry.facts.calls)
    return [id for id in (*calls, *entry.facts.part_ids) if id]


def _without(entry: ReplayedMessage, hidden: frozenset[str]) -> ReplayedMessage:
    calls = tuple(call for call in entry.facts.calls if call.id not in hidden)
    facts = replace(
        entry.facts,
        outline=_of_calls(entry.facts.outline, calls),
        calls=calls,
        asked=tuple(call for call in entry.facts.asked if call.id not in hidden),
    )
    return replace(entry, facts=facts)


def _is_shown(entry: ReplayedMessage, replay: Replay) -> bool:
    """Return whether a replayed record is shown in the transcript.

    Messages are shown. A record with only tool replies is shown if one of the replies belongs to no
    recorded call, which happens when a call was denied over ACP, the protocol for editors.
    """
    kind = entry.facts.kind
    return kind is RecordKind.MESSAGE or (
        kind is RecordKind.REPLY and bool(_orphans(entry, replay))
    )


def _orphans(entry: ReplayedMessage, replay: Replay) -> list[int]:
    """Return the indexes of the record's replies whose call is nowhere in the log."""
    return [
        position
        for position, reply in enumerate(entry.facts.replies)
        if reply.id not in replay.calls and reply.id not in replay.parts
    ]


def _item(entry: ReplayedMessage, replay: Replay, *, moved: frozenset[int] | None) -> _Item:
    outline = replay.outline(entry)
    calls = None
    if entry.facts.kind is RecordKind.REPLY:
        calls_of_others = [entry.facts.replies[position] for position in _orphans(entry, replay)]
        outline = replace(_of_calls(outline, calls_of_others), author=Author.MODEL)
    elif moved:
        calls = frozenset(range(len(entry.facts.calls))) - moved
        outline = _of_calls(outline, _at(entry, calls))
    if outline is not entry.facts.outline:
        answered = tuple(id in replay.replies for id in entry.facts.part_ids)
        outline = replay.intern(outline, answered)
    return _Item(entry=entry, outline=outline, calls=calls)


def _continuation(entry: ReplayedMessage, places: frozenset[int], replay: Replay) -> _Item:
    times = [time for position in places if (time := entry.facts.calls[position].time)]
    outline = replace(
        entry.facts.outline, id=f"{entry.id}+{min(places)}", time=min(times), usage=None, excerpt=""
    )
    outline = replay.intern(_of_calls(outline, _at(entry, places)))
    return _Item(entry=entry, outline=outline, calls=places, rest=False)


def _at(entry: ReplayedMessage, places: frozenset[int]) -> Sequence[CallFact]:
    return [entry.facts.calls[position] for position in sorted(places)]


def _of_calls(outline: Outline, calls: Sequence[CallFact]) -> Outline:
    return replace(
        outline,
        calls=len(calls),
        failures=sum(call.failed for call in calls),
        errors=sum(call.error for call in calls),
        writes=tuple(call.written for call in calls if call.written),
        tools=tools_of(calls),
    )


class _Late(Struct, frozen=True, kw_only=True):
    """The calls that are shown later than the record that contains them.

    `moved` maps a record's index to the indexes of its calls that are shown elsewhere. `after` maps
    a message's index to the calls to show after it: pairs of a record and the indexes of its calls.
    """

    moved: dict[int, frozenset[int]]
    after: dict[int, list[tuple[ReplayedMessage, frozenset[int]]]]


def _late_calls(entries: Sequence[ReplayedMessage]) -> _Late:
    """Find the calls that ended only after later messages had been written.

    The CLI stores a call in the record of the answer that made it, but the transcript shows the
    call after the last message before its end.
    """
    late = _Late(moved={}, after={})
    latest = list(accumulate([entry.facts.outline.time or EARLIEST for entry in entries], max))
    for index, entry in enumerate(entries):
        if not entry.facts.calls:
            continue
        followers: dict[int, set[int]] = {}
        for position, call in enumerate(entry.facts.calls):
            if call.time is not None and (at := _follows(latest, index, call.time)) != index:
                followers.setdefault(at, set()).add(position)
        for at, places in followers.items():
            late.after.setdefault(at, []).append((entry, frozenset(places)))
        if followers:
            late.moved[index] = frozenset().union(*followers.values())
    return late


def _follows(latest: list[datetime], index: int, time: datetime) -> int:
    """Return the index of the last message before `time`; never less than `index`.

    Messages after `index` are searched in order, up to the first one that isn't before `time`.
    `latest`: for each message, the latest time among it and all earlier messages, so that a message
    without a time has the time of the previous one.
    """
    if index + 1 == len(latest) or latest[index + 1] >= time:
        return index
    return bisect_left(latest, time, lo=index + 2) - 1


# --- bodies ------------------------------------------------------------------------------------


class _LogCalls:
    """Looks up tool calls and replies in other records of the log."""

    def __init__(self, replay: Replay, source: RecordSource | None) -> None:
        self.replay = replay
        self.source = source
        self._split: tuple[ReplayedMessage, Mapping[str, Any] | None] | None = None
        self._found: tuple[Slot, dict[str, Mapping[str, Any]]] | None = None
        self._replied: tuple[Slot, dict[str, Mapping[str, Any]]] | None = None

    def record(self, item: _Item) -> Mapping[str, Any] | None:
        """Return the item's record.

        If several messages are built from one record, it is parsed only once.
        """
        if item.calls is None:
            return read_record(self.source, item.entry)
        if self._split is None or self._split[0] is not item.entry:
            self._split = (item.entry, read_record(self.source, item.entry))
        return self._split[1]

    def call(self, id: str) -> Mapping[str, Any] | None:
        """Return the stored `toolCalls` entry with this id from its latest record."""
        line = self.replay.calls.get(id)
        if line is None or self.source is None:
            return None
        if self._found is None or self._found[0] != line.slot:
            self._found = line.slot, _calls_by_id(self.source.at(line.slot) or {})
        return self._found[1].get(id)

    def reply(self, id: str) -> Mapping[str, Any] | None:
        """Return the functionResponse with this id."""
        line = self.replay.replies.get(id)
        if line is None or self.source is None:
            return None
        if self._replied is None or self._replied[0] != line.slot:
            self._replied = line.slot, _replies_by_id(self.source.at(line.slot) or {})
        return self._replied[1].get(id)


def _calls_by_id(record: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return a record's calls by id; of several with the same id, the first.

    Calls whose id isn't a string count as having the id "".
    """
    return {_id(raw): raw for raw in reversed(objects(record.get("toolCalls")))}


def _replies_by_id(record: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    replies = (part.get("functionResponse") for part in reversed(objects(record.get("content"))))
    return {_id(reply): reply for reply in replies if isinstance(reply, Mapping)}


def _message(item: _Item, calls: _LogCalls) -> Message:
    outline = item.outline
    record = calls.record(item)
    if record is None:
        return _lost(outline)
    if item.entry.facts.kind is RecordKind.REPLY:
        return _orphan_message(record, item, calls)
    message = _message_of(
        record, id=outline.id, calls=calls, only=item.calls, rest=item.rest, hidden=item.hidden
    )
    if not item.rest:
        message = message_with(message, time=outline.time)
    if outline.usage is None and message.usage is not None:
        message = message_with(message, usage=None)
    if item.in_flight:
        notice = Notice(level=NoticeLevel.INFO, text=IN_FLIGHT)
        message = message_with(message, blocks=(*message.blocks, notice))
    return message if outline.dropped is None else message_with(message, dropped=outline.dropped)


def _lost(outline: Outline) -> Message:
    text = "This message can't be read any more because its file was changed or closed."
    return Message(
        id=outline.id,
        author=outline.author,
        blocks=(Notice(level=NoticeLevel.WARNING, text=text),),
        time=outline.time,
        dropped=outline.dropped,
    )


def _orphan_message(record: Mapping[str, Any], item: _Item, calls: _LogCalls) -> Message:
    replies = typed(record).replies
    return Message(
        id=item.outline.id,
        author=Author.MODEL,
        blocks=tuple(
            call_from_parts({}, replies[position])
            for position in _orphans(item.entry, calls.replay)
        ),
        time=item.outline.time,
        dropped=item.outline.dropped,
        original=stored(record),
        agent=agent_of_record(record),
    )


# --- one record ----------------------------------------------------------------------------------


def _message_of(
    record: Mapping[str, Any],
    *,
    id: str,
    calls: _LogCalls,
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
    if kind == "gemini":
        blocks: list[Block] = []
        for piece in pieces(record):
            found = _calls(piece, calls, only, named=rest)
            shown = [call for call in found if call.id not in hidden]
            blocks += _in_order(piece, shown) if rest else _by_time(shown)
        return _model(record, id, tuple(blocks))
    if kind == "user" and not is_feedback(record):
        return _user(record, id)
    return Message(
        id=id,
        author=Author.SYSTEM,
        blocks=(Notice(level=_level(kind), text=text_of(record.get("content"))),),
        time=instant(record.get("timestamp")),
        original=stored(record),
        agent=agent_of_record(record),
    )


def _level(kind: object) -> NoticeLevel:
    return NoticeLevel(kind) if kind in ("info", "warning", "error") else NoticeLevel.INFO


def message_on_line(line: bytes, id: str, agent: Agent = Agent.GEMINI) -> Message | None:
    """Build a message from one line of a log, as `placed_messages` yields it.

    `id`: the id the message must have. `agent`: the agent that wrote the log. Returns None if the
    line contains a different message, because the file may have been rewritten.
    """
    try:
        record = loads(line)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(record, dict):
        return None
    record = record if agent is Agent.GEMINI else translated(record, agent)
    if record is None or record.get("id", id) != id:
        return None
    return _message_of(record, id=id, calls=_LogCalls(Replay(), None))


def _user(record: Mapping[str, Any], id: str) -> Message:
    prompt = typed(record)
    blocks: list[Block] = [Text(text=prompt.text.rstrip("\n"))] if prompt.text.strip() else []
    media = [(name, image) for name, part in prompt.media if (image := image_of(part)) is not None]
    blocks += numbered(
        [
            attachment if attachment.name else replace(attachment, name=name)
            for name, attachment in media
        ]
    )
    blocks += [Attachment(name=name, text=text) for name, text in prompt.files]
    if not blocks:
        blocks = [Notice(level=NoticeLevel.INFO, text=NO_CONTENT)]
    return Message(
        id=id,
        author=Author.USER,
        blocks=tuple(blocks),
        time=instant(record.get("timestamp")),
        prompt=prompt.prompt,
        original=stored(record),
        agent=agent_of_record(record),
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
        original=stored(record),
        agent=agent_of_record(record),
    )


def _calls(
    record: Mapping[str, Any], calls: _LogCalls, only: frozenset[int] | None, *, named: bool
) -> list[ToolCall]:
    """Return the record's tool calls.

    `calls`, `only`: as in `_message_of`. `named`: also return the calls that exist only as
    `functionCall` parts.
    """
    asked = instant(record.get("timestamp"))
    stored = objects(record.get("toolCalls"))
    made = [
        tool_call(raw, asked=asked)
        for position, raw in enumerate(stored)
        if only is None or position in only
    ]
    return [*made, *_named_calls(record, stored, calls)] if named else made


def _named_calls(
    record: Mapping[str, Any], stored: list[Mapping[str, Any]], calls: _LogCalls
) -> Iterable[ToolCall]:
    ids = {string(raw.get("id")) for raw in stored} - {""}
    for part in parts_of(record.get("content")):
        call = part.get("functionCall")
        if isinstance(call, dict) and (id := string(call.get("id"))) not in ids:
            raw = calls.call(id)
            yield call_from_parts(call, calls.reply(id)) if raw is None else tool_call(raw)


def _by_time(calls: list[ToolCall]) -> list[ToolCall]:
    """Return calls in the order in which they ended.

    A call without a time stays after the call before it.
    """
    keys, last = [], 0.0
    for position, call in enumerate(calls):
        last = call.time.timestamp() if call.time else last
        keys.append((last, position))
    return [calls[position] for _, position in sorted(keys)]


def _in_order(record: Mapping[str, Any], calls: list[ToolCall]) -> Iterable[Block]:
    """Yield a record's thoughts, text, media, and calls.

    Thoughts that are later than the first call are placed between the calls by time.
    """
    first = min((call.time for call in calls if call.time), default=None)
    early: deque[Thought] = deque()
    late: deque[Thought] = deque()
    for thought in thoughts_of(record):
        later = first is not None and thought.time is not None and thought.time > first
        (late if later else early).append(thought)
    yield from early
    text = answer_text(record.get("content"))
    if text.strip():
        yield Text(text=text.strip("\n"))
    yield from _media(record.get("content"))
    for call in _by_time(calls):
        while late and call.time and late[0].time and late[0].time <= call.time:
            yield late.popleft()
        yield call
    yield from late


def _media(content: object) -> tuple[Image, ...]:
    images = (image_of(part) for part in parts_of(content))
    return numbered([image for image in images if image is not None])
