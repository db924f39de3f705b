"""The stream of Claude Code -> events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemtui.agent import wire
from gemtui.agent.claude_stream import ClaudeStream, calls_of
from gemtui.agent.events import (
    AgentEvent,
    Done,
    DoneStatus,
    ErrorSaid,
    Init,
    ResultStatus,
    TextDelta,
    ToolResult,
    TurnDone,
)
from gemtui.agent.fold import Fold
from gemtui.agent.output import Parsed
from gemtui.agent.stream import Ending
from gemtui.transcript.model import AgentDisplay, DiffDisplay, ToolCall

Object = Mapping[str, Any]
P = TypeVar("P")
INIT = {"type": "system", "subtype": "init", "session_id": "s1", "model": "m", "tools": ["Read"]}
EXITED = Ending(code=0)
SUB = {"parent_tool_use_id": "t1"}


def said(*blocks: Object, **more: object) -> Object:
    return {"type": "assistant", "session_id": "s1", "message": {"content": [*blocks]}, **more}


def text(content: str) -> Object:
    return {"type": "text", "text": content}


def use(id: str, name: str, **arguments: object) -> Object:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def result(id: str, content: object = "ok", **more: Any) -> Object:
    error = {"is_error": True} if more.pop("fails", False) else {}
    block = {"type": "tool_result", "tool_use_id": id, "content": content, **error}
    return {"type": "user", "message": {"content": [block]}, **more}


def prompt(content: str) -> Object:
    return {"type": "user", "message": {"content": content}, "isReplay": True}


def ended(**more: object) -> Object:
    return {"type": "result", "subtype": "success", "is_error": False, "result": "A", **more}


def rejected(id: str) -> Object:
    return {"tool_result_meta": [{"id": id, "permission_decision": {"decision": "reject"}}]}


def piece(content: str) -> Object:
    delta = {"type": "text_delta", "text": content}
    return {"type": "stream_event", "event": {"type": "content_block_delta", "delta": delta}}


def events(
    *objects: object, ending: Ending = EXITED, resumed: str | None = None
) -> list[AgentEvent]:
    stream = ClaudeStream(cwd="/project", resumed=resumed)
    events = [event for data in objects for event in stream.feed(Parsed(data=data))]
    return [*events, *stream.finish(ending)]


def types(events: Iterable[AgentEvent]) -> list[str]:
    return [event.type for event in events]


def payload_of(events: Iterable[AgentEvent], kind: type[P]) -> P:
    return next(event.payload for event in reversed([*events]) if isinstance(event.payload, kind))


def card(events: Iterable[AgentEvent], id: str) -> ToolCall:
    fold = Fold("Do", began=datetime.now(UTC))
    for event in events:
        fold.add(event)
    transcript = fold.transcript()
    messages = [transcript.read(index) for index in range(len(transcript.outlines))]
    (call,) = [b for m in messages for b in m.blocks if isinstance(b, ToolCall) and b.id == id]
    return call


def test_an_answer_is_said_once_with_its_pieces_thoughts_and_calls() -> None:
    thought = {"type": "thinking", "thinking": "Hm"}
    made = events(
        {"type": "control_response", "response": {}},
        INIT,
        prompt("Do"),
        said(thought),
        piece("Hel"),
        piece("lo"),
        said(text("Hello")),
        said(use("t1", "Read", file_path="/a")),
        result("t1"),
        said(text("Bye")),
        ended(total_cost_usd=0.5, usage={"input_tokens": 3, "cache_read_input_tokens": 4}),
    )
    assert types(made) == [
        "init",
        "thinking",
        "text_delta",
        "text_delta",
        "text",
        "tool_use",
        "tool_result",
        "text",
        "turn_done",
        "done",
    ]
    init, turn, done = payload_of(made, Init), payload_of(made, TurnDone), payload_of(made, Done)
    assert (init.model, init.tools, made[0].agent) == ("m", ("Read",), "claude")
    assert (turn.cost, turn.tokens and turn.tokens.input) == (0.5, 7)
    assert (done.status, done.result, done.resume_token) == (DoneStatus.SUCCESS, "A", "s1")


def test_later_prompts_are_told_and_all_models_are_counted() -> None:
    models = {"m": {"inputTokens": 1, "outputTokens": 2}, "n": {"inputTokens": 3}}
    made = events(
        INIT, prompt("One"), ended(), INIT, prompt("Two"), ended(modelUsage=models, result="B")
    )
    assert types(made) == ["init", "turn_done", "prompt", "turn_done", "done"]
    done = payload_of(made, Done)
    assert (done.result, done.models) == ("B", ("m", "n"))
    assert done.tokens is not None
    assert (done.tokens.input, done.tokens.total) == (4, 6)


@pytest.mark.parametrize(("spawned", "tokens"), [(0, 7), (1, None)])
def test_a_continued_session_does_not_count_what_came_before(
    spawned: int, tokens: int | None
) -> None:
    usage = {"input_tokens": 3, "output_tokens": 4}
    more = {"modelUsage": {"m": {"inputTokens": 1000}}, "subagent_stats": {"spawned": spawned}}
    done = payload_of(events(INIT, ended(usage=usage, **more), resumed="s1"), Done)
    assert (done.tokens and done.tokens.total) == tokens


def test_a_prompt_without_a_result_is_no_success() -> None:
    made = events(INIT, prompt("One"), ended(), prompt("Two"), said(text("Half")))
    assert "without a result" in payload_of(made, ErrorSaid).message
    assert payload_of(made, Done).status is DoneStatus.ERROR
    assert not dict(made[-1].metadata or {})["complete"]


@pytest.mark.parametrize(
    ("end", "status", "says"),
    [
        ({"is_error": True, "result": "API Error"}, DoneStatus.ERROR, "API Error"),
        (
            {"subtype": "error_during_execution", "errors": ["No conversation"], "result": None},
            DoneStatus.ERROR,
            "No conversation",
        ),
        ({"subtype": "error_max_turns", "is_error": True}, DoneStatus.MAX_TURNS, None),
        ({"terminal_reason": "aborted_tools", "is_error": True}, DoneStatus.INTERRUPTED, None),
    ],
)
def test_the_last_result_decides_about_the_run(
    end: Object, status: DoneStatus, says: str | None
) -> None:
    made = events(INIT, prompt("One"), ended(), prompt("Two"), ended(**end))
    done = payload_of(made, Done)
    assert done.status is status
    if says is not None:
        assert done.result == says


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (result("t1"), ResultStatus.SUCCESS),
        (result("t1", fails=True), ResultStatus.ERROR),
        (result("t1", fails=True, **rejected("t1")), ResultStatus.DENIED),
        (result("t1", fails=True, **rejected("t2")), ResultStatus.ERROR),
        (
            result("t1", fails=True, tool_result_meta=[{"id": "t1", "non_execution_kind": "x"}]),
            ResultStatus.DENIED,
        ),
    ],
)
def test_a_refused_call_is_told_apart_from_a_failed_one(line: Object, status: str) -> None:
    made = events(INIT, said(use("t1", "Bash", command="ls")), line)
    done = payload_of(made, ToolResult)
    assert (done.status, done.tool_name) == (status, "Bash")


def test_a_written_file_shows_its_change() -> None:
    hunk = {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-a", "+b"]}
    detail = {"filePath": "/f", "structuredPatch": [hunk], "originalFile": "a\n", "content": "b\n"}
    made = events(INIT, said(use("t1", "Write")), result("t1", tool_use_result=detail))
    display = card(made, "t1").display
    assert isinstance(display, DiffDisplay)
    assert (display.original, display.new) == ("a\n", "b\n")


def test_calls_of_a_subagent_stand_on_the_card_of_its_call() -> None:
    made = events(
        INIT,
        said(use("t1", "Task", subagent_type="general")),
        said(text("I read"), **SUB),
        said(use("t2", "Read", file_path="/a"), **SUB),
        said(use("t3", "Bash", command="ls"), **SUB),
        result("t2", **SUB),
        result("t1", "It did"),
        said(text("Done")),
        result("t3", fails=True, **SUB),
    )
    assert payload_of(made, Done).tool_uses == 1
    display = card(made, "t1").display
    assert isinstance(display, AgentDisplay)
    assert (display.agent, display.result) == ("general", "It did")
    assert [(step.text, step.status) for step in display.activities] == [
        ("Read /a", "success"),
        ("Bash ls", "error"),
    ]


def test_an_error_of_the_api_is_told_once() -> None:
    failed = ended(is_error=True, result="API Error: 500")
    made = events(INIT, said(text("API Error: 500"), error="server_error"), failed)
    assert types(made) == ["init", "error", "turn_done", "done"]
    assert payload_of(made, Done).result == "API Error: 500"


def test_pieces_of_an_answer_that_was_cut_off_are_kept() -> None:
    made = events(INIT, piece("Hal"), ending=Ending(code=None, aborted=True))
    assert payload_of(made, TextDelta).delta == "Hal"
    assert payload_of(made, Done).status is DoneStatus.INTERRUPTED


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "content", "message", "id"]), inner, max_size=3)
    ),
    max_leaves=6,
)
ODD = st.dictionaries(
    st.sampled_from([*INIT, *ended(), "message", "event", "isReplay", "errors", "modelUsage"]),
    JSON,
).flatmap(
    lambda odd: st.sampled_from(["system", "assistant", "user", "result", "stream_event"]).map(
        lambda kind: {**odd, "type": kind}
    )
)


@given(st.lists(ODD, max_size=5))
def test_no_object_raises_an_error(objects: list[Object]) -> None:
    made = events(*objects)
    assert made[-1].type == "done"
    orjson.dumps([event.to_dict() for event in made])


def test_calls_of_the_stream_are_told_as_gemini_cli_tells_them() -> None:
    lines = [
        INIT,
        said(text("a"), use("t1", "Write", file_path="/a"), **SUB),
        result("t1"),
        ended(),
    ]
    told = [(call["type"], wire.tool_use(call).id) for line in lines for call in calls_of(line)]
    assert told == [("init", ""), ("tool_use", "t1"), ("tool_result", "t1")]
