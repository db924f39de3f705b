"""Calls of a run at work, completed from the session that grows beside it."""

from __future__ import annotations

from pathlib import Path

import orjson

from gemtui.runs.recorded_calls import RecordedCalls
from gemtui.transcript.model import Text, ToolCall, Transcript
from tests.runs.test_enrich import ID, SECOND, answer, asked, called, prompt, said, store


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
    streamed = Transcript.of((prompt("go"), answer(1, Text(text="Look."), called("t1")), answer(2, called("t3"))))
    completed = recorded.complete(streamed)
    _, call = completed.read(1).blocks
    assert isinstance(call, ToolCall)
    assert call.failed
    assert call.duration == SECOND
    assert [completed.outlines[at] is streamed.outlines[at] for at in (0, 2)] == [True, True]
    assert recorded.complete(streamed).outlines[1] is completed.outlines[1]
    recorded.close()
