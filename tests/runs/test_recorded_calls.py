"""Calls of a run at work, completed from the session that grows beside it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson

from gemtui.runs.recorded_calls import DroppedCall, RecordedCalls
from gemtui.transcript.model import Text, ToolCall, Transcript
from tests.runs.test_enrich import ID, NOW, SECOND, answer, asked, called, prompt, said, store


def test_a_call_is_completed_as_soon_as_the_session_has_it(tmp_path: Path) -> None:
    recorded = RecordedCalls(tmp_path)
    assert recorded.read(ID, ["t1"]) == ()
    store(tmp_path, asked("go"))
    assert recorded.read(ID, ["t1"]) == ()
    (path,) = tmp_path.rglob("*.jsonl")
    with path.open("ab") as file:
        file.write(orjson.dumps(said("a", "Look.", "t1", "t2")) + b"\n")
    (found,) = recorded.read(ID, ["t1", "unknown"])
    assert (found.id, found.exit_code) == ("t1", 3)
    assert recorded.read(ID, ["t2"]) != ()
    streamed = Transcript.of(
        (prompt("go"), answer(1, Text(text="Look."), called("t1")), answer(2, called("t3")))
    )
    completed = recorded.complete(streamed)
    _, call = completed.read(1).blocks
    assert isinstance(call, ToolCall)
    assert call.failed
    assert call.duration == SECOND
    assert [completed.outlines[at] is streamed.outlines[at] for at in (0, 2)] == [True, True]
    assert recorded.complete(streamed).outlines[1] is completed.outlines[1]
    recorded.close()


LOOP = (
    "System: Potential loop detected. Details: {}. Please take a step back and confirm you're "
    "making forward progress. If not, take a step back, analyze your previous actions and rethink."
)
REPEATED = LOOP.format('Repeated tool call: run_shell_command with arguments {"command":"true"}')


def loop(id: str, text: str = REPEATED) -> dict[str, Any]:
    """What the CLI tells the model, at the time `NOW`."""
    return asked(text, id) | {"timestamp": NOW.isoformat()}


def test_calls_that_were_dropped_as_repetitions_are_told_with_their_prompts(tmp_path: Path) -> None:
    other = LOOP.format('Repeating content detected: "again..."')
    records = [asked("first\nline", "p1"), said("a", "", "t1"), loop("s1"), said("b", "Oh.")]
    store(
        tmp_path,
        *records,
        asked("second", "p2"),
        said("c", "", "t2"),
        loop("s2"),
        loop("s3", other),
    )
    recorded, call = RecordedCalls(tmp_path), 'run_shell_command with arguments {"command":"true"}'
    assert recorded.dropped(ID, NOW) == (DroppedCall("first", call), DroppedCall("second", call))
    assert recorded.dropped(ID, NOW + timedelta(seconds=1)) == (), "an earlier run's"
    assert [found.id for found in recorded.read(ID, ["t2"])] == ["t2"]
    recorded.close()


def test_a_dropped_call_is_told_although_the_list_that_the_cli_writes_at_the_end_lacks_it(
    tmp_path: Path,
) -> None:
    rest = [asked("go", "p"), said("a", "", "t1")]
    store(tmp_path, *rest, loop("s"), {"$set": {"messages": rest}})
    assert [call.prompt for call in RecordedCalls(tmp_path).dropped(ID, NOW)] == ["go"]


def test_of_a_session_that_is_missing_nothing_is_told(tmp_path: Path) -> None:
    assert RecordedCalls(tmp_path).dropped(ID, NOW) == ()
