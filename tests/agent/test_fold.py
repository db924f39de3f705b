"""Events -> transcript: the shape of a stored session, growing at a steady cost."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from gemtui.agent.events import AgentEvent
from gemtui.agent.fold import Fold
from gemtui.agent.output import NdjsonReader, Parsed
from gemtui.agent.stream import Ending, Stream
from gemtui.transcript.model import Author, DiffDisplay, Message, Notice, Text, ToolCall, ToolStatus
from gemtui.transcript.writes import FileWrite, WriteStatus, write_of, writing_calls
from tests.agent.test_stream import INIT, OK, STREAMS, delta, result, use

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
        case ToolCall(name=name, status=status):
            return f"{name} {status}"
    return type(block).__name__


def test_answers_and_tools_become_one_message_an_answer() -> None:
    events = said(INIT, delta("I'll "), delta("look."), use(), result(), delta("Done."), OK)
    assert shape(folded([*events, *said(INIT, ending=Ending(code=0))]).transcript())[:3] == [
        ["user", "do it"],
        ["model", "I'll look.", "write_file success"],
        ["model", "Done."],
    ]


def test_a_tool_runs_until_its_result() -> None:
    fold = folded(said(INIT, use("a"), use("b"), result("a")))
    assert shape(fold.transcript())[1:] == [["model", "write_file success", "write_file running"]]


def test_a_run_that_ends_leaves_unconfirmed_what_nobody_confirmed() -> None:
    events = said(INIT, use(), ending=Ending(code=0, aborted=True))
    assert shape(folded(events).transcript())[1:] == [["model", "write_file unconfirmed"]]


def test_a_whole_text_without_deltas_and_one_behind_them() -> None:
    whole = {"type": "message", "role": "assistant", "content": "at once"}
    assert shape(folded(said(INIT, whole, OK)).transcript())[1:] == [["model", "at once"]]
    assert shape(folded(said(INIT, delta("x"), use())).transcript())[1][1] == "x"


def test_errors_stand_where_they_came() -> None:
    warning = {"type": "error", "severity": "warning", "message": "slow"}
    transcript = folded(said(INIT, delta("a"), warning, delta("b"))).transcript()
    assert shape(transcript)[1:] == [["model", "a"], ["system", "slow"], ["model", "b"]]


def test_a_result_whose_use_never_came_shows() -> None:
    transcript = folded(said(INIT, result("ghost", "error", output="no"))).transcript()
    call = transcript.read(1).blocks[0]
    assert isinstance(call, ToolCall)
    assert (call.status, call.error) == (ToolStatus.ERROR, "no")


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


def rows(*objects: dict[str, Any]) -> tuple[FileWrite, ...]:
    calls = [
        block
        for message in folded([*said(*objects), *said(ending=Ending(code=0))[-1:]]).transcript()
        for block in message.blocks
        if isinstance(block, ToolCall)
    ]
    found = writing_calls(calls, PurePosixPath("/project"))
    return tuple(write_of(*each) for each in found.items())


def written(*objects: dict[str, Any]) -> dict[str, WriteStatus]:
    return {str(each.path): each.written for each in rows(*objects)}


def test_a_file_counts_once_its_call_succeeded() -> None:
    write = use("t1", file_path="a%2epy", content="x\n")
    edit = use("t2", "replace", file_path="/b.py", old_string="x", new_string="y")
    assert written(write, edit, result("t1"), delta("then"), result("t2")) == {
        "/project/a.py": WriteStatus.YES,
        "/b.py": WriteStatus.YES,
    }


def test_where_the_state_before_is_not_known_the_sum_stays() -> None:
    calls = (
        use("t1", "replace", file_path="a.py", old_string="1", new_string="2"),
        result("t1"),
        use("t2", "replace", file_path="a.py", old_string="2", new_string="1"),
        result("t2"),
    )
    (write,) = rows(*calls)
    assert (write.added, write.removed, write.words) == (2, 2, "summed")


def test_of_a_file_written_by_a_stream_without_results_it_is_not_known_whether_it_is_new() -> None:
    (write,) = rows(use("t1", file_path="a.py", content="x\n"), result("t1"))
    assert (write.letter, write.added, write.removed) == ("?", 1, None)


def test_a_failed_write_is_told_apart_and_a_second_try_counts() -> None:
    first, second = use("t1", file_path="a.py"), use("t2", file_path="a.py", content="")
    calls = (first, result("t1", "error"), second, result("t2"))
    assert list(written(*calls).values()) == [WriteStatus.YES]
    assert written(first, result("t1", "error")) == {"/project/a.py": WriteStatus.FAILED}


def test_a_write_that_nobody_confirmed_is_unconfirmed() -> None:
    assert written(use(file_path="a.py", content="x")) == {"/project/a.py": WriteStatus.UNCONFIRMED}


def test_reads_and_writes_without_a_path_are_no_writes() -> None:
    read = use("t1", "read_file", file_path="a.py")
    assert written(read, result("t1"), use("t2"), result("t2"), result("t9")) == {}


def test_several_writes_are_one_row_with_the_lines_of_the_last_state() -> None:
    (write,) = rows(
        use("t1", file_path="a.py", content="1\n2\n"),
        result("t1", output="Successfully created and wrote to new file"),
        use("t2", "replace", file_path="a.py", old_string="1", new_string="3"),
        result("t2"),
    )
    assert (write.added, write.removed, write.letter, write.calls) == (2, 0, "A", ("t1", "t2"))
