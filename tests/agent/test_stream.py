"""Streams -> events, and every recorded stream with its exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from gemtui.agent.events import (
    AgentEvent,
    Done,
    DoneStatus,
    ErrorSaid,
    ResultStatus,
    ToolResult,
    ToolUse,
)
from gemtui.agent.output import NdjsonReader, Parsed
from gemtui.agent.run_folder import Limit
from gemtui.agent.stream import Ending, Stream
from gemtui.agent.wire import WireDelta, parse_line
from tests.rows import each_row, table

STREAMS = Path(__file__).parent.parent / "data/streams"
Object = dict[str, Any]


def events(objects: Iterable[object], ending: Ending, **options: Any) -> list[AgentEvent]:
    stream = Stream(cwd="/project", **options)
    said = [event for data in objects for event in stream.feed(Parsed(data=data))]
    return [*said, *stream.finish(ending)]


def types(said: Iterable[AgentEvent]) -> list[str]:
    return [event.type for event in said]


def done(said: list[AgentEvent]) -> Done:
    payload = said[-1].payload
    assert isinstance(payload, Done)
    return payload


def first_error(said: list[AgentEvent]) -> ErrorSaid:
    return next(event.payload for event in said if isinstance(event.payload, ErrorSaid))


EXITED = Ending(code=0)
INIT: Object = {"type": "init", "session_id": "s1", "model": "auto"}
OK: Object = {"type": "result", "status": "success"}


def delta(text: str) -> Object:
    return {"type": "message", "role": "assistant", "content": text, "delta": True}


def use(id: str = "t1", name: str = "write_file", **args: Any) -> Object:
    return {"type": "tool_use", "tool_name": name, "tool_id": id, "parameters": args}


def result(id: str = "t1", status: str = "success", **more: Any) -> Object:
    return {"type": "tool_result", "tool_id": id, "status": status} | more


BUILDERS: dict[str, Callable[[Any], Object]] = {
    "INIT": lambda more: INIT | more,
    "OK": lambda more: OK | more,
    "DELTA": delta,
    "USE": lambda more: use(**more),
    "RESULT": lambda more: result(**more),
}


def built(row: Object) -> Object:
    """What a table tells as `{"USE": {"tool_name": "glob"}}`."""
    name = next(iter(row), "")
    return BUILDERS[name](row[name]) if name in BUILDERS else row


TABLES = table("agent/stream.json", built)


@each_row("promise, objects, options, expected, payloads", TABLES["streams"])
def test_a_stream_becomes_the_events_that_are_promised(
    promise: str,
    objects: list[object],
    options: Object,
    expected: list[str],
    payloads: dict[str, Object],
) -> None:
    options = dict(options)
    said = events(objects, ending_of(options.pop("ending")), **options)
    assert types(said) == expected, promise
    for index, fields in payloads.items():
        event = said[int(index)].to_dict()
        fact_of = event["payload"] | {"sessionId": event["sessionId"]}
        assert {name: fact_of.get(name) for name in fields} == fields, promise


def ending_of(data: Object) -> Ending:
    """How the process of a row ended."""
    return Ending(**{**data, "limit": Limit(data["limit"])}) if "limit" in data else Ending(**data)


@each_row("event", TABLES["a tool use in all its forms"])
def test_a_tool_use_in_all_its_forms(event: Object) -> None:
    said = events([INIT, {"type": "tool_use"} | event, OK], EXITED)
    assert said[1].payload == ToolUse(tool_name="t", tool_use_id="i", input={"a": 1})


@each_row("given, read", TABLES["an input that is no object"])
def test_an_input_that_is_no_object(given: object, read: Object) -> None:
    said = events([INIT, {"type": "tool_use", "input": given}, OK], EXITED)
    assert said[1].payload == ToolUse(tool_name="unknown_tool", tool_use_id="tool-1", input=read)


@each_row("more, status", TABLES["how a tool ended"])
def test_how_a_tool_ended(more: Object, status: ResultStatus) -> None:
    said = events([INIT, use(), {"type": "tool_result", "tool_id": "t1"} | more, OK], EXITED)
    payload = said[2].payload
    assert isinstance(payload, ToolResult)
    assert (payload.status, payload.tool_name) == (status, "write_file")


@each_row("ending, status, code", table("agent/endings.json", ending_of))
def test_ends_without_a_result(ending: Ending, status: str, code: str | None) -> None:
    said = events([], ending)
    assert types(said) == ["init", *(["error"] if code else []), "done"]
    assert done(said).status == status
    assert said[-1].metadata == {"complete": False, "exitCode": ending.code}
    if code:
        assert first_error(said).code == code


def test_json_has_camel_case_names() -> None:
    said = events([INIT | {"timestamp": "1970-01-01T00:00:01Z"}, use(), result(), OK], EXITED)
    assert said[0].to_dict() == {
        "type": "init",
        "agent": "gemini",
        "timestamp": 1000,
        "sessionId": "s1",
        "payload": {"model": "auto", "cwd": "/project", "tools": None, "capabilities": None},
    }
    assert said[1].to_dict()["payload"] == {
        "toolName": "write_file",
        "toolUseId": "t1",
        "input": {},
    }
    assert said[2].to_dict()["payload"]["output"] is None
    assert said[3].to_dict()["payload"]["usage"] == {"toolUses": 1}
    assert orjson.loads(orjson.dumps(said[3].to_dict()))["metadata"]["complete"] is True


# --- recordings ----------------------------------------------------------------------------------

ERROR, LIMITED = (DoneStatus.ERROR, True), (DoneStatus.MAX_TURNS, True)
START, CUT = (DoneStatus.ERROR, False), (DoneStatus.SUCCESS, False)
STOPPED = (DoneStatus.INTERRUPTED, True)
ENDS = {
    ERROR: """blocked_prompt disk-full dropmid empty err400 err400key err401 err403 err404
        err429quota err500mid err503always errevent_mid malformed_fc malformed_json nofinish
        recitation thoughtonly two_p 0.16.0-err403 0.20.2-err403 0.30.1-err403 0.38.2-err403
        0.45.2-err403 0.45.2-empty 0.55.1-err403 0.55.1-empty""",
    START: """badflag badmode badsettings dash_pos dash_prompt dash_prompt2 empty_prompt json_err
        maxturns_flag noauth noauth2 noprompt notrust_default pos_and_p sandbox-bogus
        sandbox-docker sandbox-none sigkill-mid-text text_err untrusted yolo_and_mode yolo_disabled
        0.10.0-edit-session 0.10.0-empty 0.10.0-err403 0.10.0-unknown_tool 0.8.2-err403""",
    CUT: "bigout json_fmt sigterm-in-tool sigterm-mid-text text_fmt",
    LIMITED: "maxturns maxturns0",
    STOPPED: "ctrl-c-tty ctrl-c-tty-in-tool",
}
ENDED = {name: end for end, names in ENDS.items() for name in names.split()}
RECORDED = sorted(STREAMS.rglob("*.exit"))


def test_the_recordings_are_there() -> None:
    assert len(RECORDED) > 90
    assert {path.stem for path in RECORDED} >= ENDED.keys()


@each_row("path", RECORDED)
def test_a_recorded_stream(path: Path) -> None:
    stream, reader = Stream(cwd="/home/dev"), NdjsonReader()
    data = path.with_suffix(".jsonl").read_bytes()
    lines = [*reader.feed(data), *reader.close()]
    said = [event for line in lines for event in stream.feed(line)]
    said += stream.finish(Ending(code=int(path.read_text())))
    assert types(said).count("init") == types(said).count("done") == 1
    assert (said[0].type, said[-1].type) == ("init", "done")
    complete = said[-1].metadata is not None and said[-1].metadata["complete"]
    assert (done(said).status, complete) == ENDED.get(path.stem, (DoneStatus.SUCCESS, True))
    if done(said).status is DoneStatus.ERROR:
        assert "error" in types(said)


def read(lines: bytes, **options: Any) -> list[AgentEvent]:
    """The events of a run's output, with a clock that stands still."""
    stream, reader = Stream(cwd="/p", clock=lambda: 0), NdjsonReader(**options)
    said = [event for line in (*reader.feed(lines), *reader.close()) for event in stream.feed(line)]
    return [*said, *stream.finish(EXITED)]


FRAGMENT = {"type": "message", "timestamp": "2026-11-20T12:00:00.123Z"} | delta("a 👍 b")
FRAGMENTS = [
    *(FRAGMENT | difference for difference in TABLES["almost fragments"]),
    delta("no time"),
]


@each_row("line", map(orjson.dumps, FRAGMENTS))
@each_row(
    "harm", [(b"a", b"a"), (b"a ", b"\\ud83d"), (b"a ", b"\xff"), (b"a ", b"\x01"), (b"}", b"")]
)
def test_fragments_are_parsed_separately_without_a_difference(
    line: bytes, harm: tuple[bytes, bytes]
) -> None:
    lines = (
        orjson.dumps(INIT) + b"\n" + line.replace(*harm) + b"\n" + line + b"\n" + orjson.dumps(OK)
    )
    for output in (lines, line):
        assert read(output, parse=parse_line) == read(output)


def test_recorded_fragments_are_parsed_separately_without_a_difference() -> None:
    fragments = 0
    for path in RECORDED:
        data = path.with_suffix(".jsonl").read_bytes()
        assert read(data, parse=parse_line) == read(data)
        fragments += sum(
            isinstance(parse_line(line), WireDelta)
            for line in data.splitlines()
            if b"delta" in line
        )
    assert fragments > 90


# --- any objects ---------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**50), 2**50) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["status", "id", "error", "content", "functionCall", "value", "type"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)
TYPES = ["init", "message", "tool_use", "tool_result", "error", "result", "other"]
FIELDS = ["session_id", "content", "delta", "role", "tool_id", "error", "stats", "status", "value"]
OBJECT = st.fixed_dictionaries(
    {"type": st.sampled_from(TYPES) | JSON}, optional=dict.fromkeys(FIELDS, JSON)
)


@given(
    objects=st.lists(OBJECT | JSON, max_size=8),
    code=st.none() | st.integers(-15, 255),
    aborted=st.booleans(),
)
def test_any_objects_give_one_init_and_one_done(
    objects: list[object], code: int | None, aborted: bool
) -> None:
    ending = Ending(code=code, aborted=aborted, problem="gone" if code is None else None)
    said = events(objects, ending)
    assert types(said).count("init") == types(said).count("done") == 1
    assert (said[0].type, said[-1].type) == ("init", "done")
    assert all(orjson.dumps(event.to_dict()) for event in said)
