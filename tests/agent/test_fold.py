"""Events -> transcript: the shape of a stored session, growing at a steady cost."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

import orjson

from gemtui.agent.events import AgentEvent
from gemtui.agent.fold import Fold
from gemtui.agent.output import NdjsonReader, Parsed
from gemtui.agent.stream import Ending, Stream
from gemtui.transcript.model import Author, DiffDisplay, Message, Notice, Text, ToolCall, ToolStatus
from gemtui.transcript.writes import write_of, writing_calls
from tests.agent.test_stream import INIT, STREAMS, built, delta, result, use
from tests.rows import each_row, table

TABLES = table("agent/fold.json", built)

BEGAN = datetime(2026, 11, 20, tzinfo=UTC)


def said(*objects: dict[str, Any], ending: Ending | None = None) -> list[AgentEvent]:
    stream = Stream(cwd="/project")
    events = [event for data in objects for event in stream.feed(Parsed(data=data))]
    return events + ([] if ending is None else list(stream.finish(ending)))


def folded(events: Iterable[AgentEvent]) -> Fold:
    fold = Fold("do it", began=BEGAN, model="m")
    for event in events:
        fold.add(event)
    return fold


def shape(messages: Iterable[Message]) -> list[list[str]]:
    return [[str(message.author), *map(_block, message.blocks)] for message in messages]


def _block(block: object) -> str:
    match block:
        case Text(text=text) | Notice(text=text):
            return text
        case ToolCall(name=name, status=status, error=error):
            return f"{name} {status}" + (f": {error}" if error else "")
    return type(block).__name__


@each_row("promise, objects, ending, expected", TABLES["messages"])
def test_events_become_the_messages_that_are_promised(
    promise: str, objects: list[Any], ending: dict[str, Any] | None, expected: list[list[str]]
) -> None:
    events = said(*objects, ending=None if ending is None else Ending(**ending))
    assert shape(folded(events).transcript()) == [["user", "do it"], *expected], promise


def test_an_edit_shows_the_change_that_was_asked_for() -> None:
    edit = use(name="replace", file_path="a.py", old_string="x = 1", new_string="x = 2")
    call = folded(said(INIT, edit, result())).transcript().read(1).blocks[0]
    assert isinstance(call, ToolCall)
    assert isinstance(call.display, DiffDisplay)
    assert (call.display.added, call.display.removed) == (1, 1)


def test_what_does_not_change_keeps_its_outline() -> None:
    fold = folded(said(INIT, delta("a"), use(), result(), delta("b")))
    before = fold.transcript()
    fold.add(said(INIT, delta("c"))[-1])
    after = fold.transcript()
    assert len(before) == len(after) == 3
    assert [x is y for x, y in zip(before.outlines, after.outlines, strict=True)] == [
        True,
        True,
        False,
    ]
    assert before.read(2).blocks == (Text(text="b"),)
    assert after.outlines[0].author is Author.USER


def test_every_recorded_stream_folds() -> None:
    for path in sorted(STREAMS.rglob("*.jsonl")):
        stream, reader = Stream(cwd="/home/dev"), NdjsonReader()
        lines = [*reader.feed(path.read_bytes()), *reader.close()]
        events = [event for line in lines for event in stream.feed(line)]
        events += stream.finish(Ending(code=0))
        blocks = [block for message in folded(events).transcript() for block in message.blocks]
        calls = [block for block in blocks if isinstance(block, ToolCall)]
        used = {event.payload.tool_use_id for event in events if event.type == "tool_use"}
        assert {call.id for call in calls} >= used, path
        assert not any(call.status is ToolStatus.RUNNING for call in calls), path


# --- file writes -------------------------------------------------------------------------------


@each_row("promise, objects, expected", TABLES["writes"])
def test_file_writes_are_told_as_promised(
    promise: str, objects: list[Any], expected: dict[str, list[Any]]
) -> None:
    calls = [
        block
        for message in folded([*said(*objects), *said(ending=Ending(code=0))[-1:]]).transcript()
        for block in message.blocks
        if isinstance(block, ToolCall)
    ]
    writes = writing_calls(calls, PurePosixPath("/project"))
    rows = [write_of(*write) for write in writes.items()]
    for name, values in expected.items():
        found = [getattr(row, name) for row in rows]
        assert orjson.loads(orjson.dumps(found, default=str)) == values, promise
