from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemtui.calls.paths import asked_path
from gemtui.policy.model.rules import Call, short
from gemtui.transcript.parts import usage_of
from gemtui.transcript.unified import UnifiedMessage, parse_message
from tests.rows import each_row, table
from tests.transcript.raw_calls import json_values, raw_call, record

TABLES = table("transcript/unified.json")


def blocks(record: dict[str, Any]) -> list[Any]:
    content = parse_message(record).content
    assert not isinstance(content, str)
    return list(content)


@given(
    st.dictionaries(
        st.sampled_from(["id", "type", "content", "thoughts", "toolCalls", "tokens", "timestamp"])
        | st.sampled_from(["displayContent", "model"]),
        json_values | st.sampled_from(["user", "gemini", "info"]) | st.lists(json_values),
    )
)
def test_no_shape_makes_it_raise(record: dict[str, Any]) -> None:
    shape = parse_message(record).to_dict()
    assert shape["_original"] is record
    assert shape["role"] in ("user", "assistant", "system")


# --- stored sessions -------------------------------------------------------------------------


@each_row("promise, cases", table("transcript/unified_blocks.json").items())
def test_a_record_becomes_its_blocks(promise: str, cases: list[Any]) -> None:
    for fields, expected in cases:
        assert blocks(record(**fields)) == expected, promise


@each_row("name, args, unified, wanted", TABLES["tool_names_and_inputs"])
def test_tool_names_and_inputs(
    name: str, args: dict[str, Any], unified: str, wanted: dict[str, Any]
) -> None:
    use = blocks(record(toolCalls=[raw_call(name, args=args)]))[0]
    assert use == {"type": "tool_use", "id": "c1", "name": unified, "input": wanted}


def test_of_several_paths_all_readers_take_the_same() -> None:
    args = {"path": "c", "absolute_path": "b", "file_path": "a", "offset": 0}
    use = blocks(record(toolCalls=[raw_call("read_file", args=args)]))[0]
    assert use["type"] == "tool_use"
    assert use["input"]["file_path"] == asked_path(args) == short(Call("read_file", args)) == "a"


@each_row("fields, content, is_error", TABLES["tool_results"])
def test_tool_results(fields: dict[str, Any], content: str, is_error: bool) -> None:
    result = blocks(record(toolCalls=[raw_call(**fields)]))[1]
    assert result == {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": content,
        "is_error": is_error,
    }


def test_a_call_without_an_id_gets_one_that_its_result_shares() -> None:
    call = {"name": "glob", "result": [{"text": "x"}], "status": "success"}
    use, result = blocks(record(toolCalls=[call]))
    assert use["id"] == result["tool_use_id"] == "m1:0"


@each_row("type", ["user", "gemini", "info"])
@each_row("content, kept", TABLES["content_without_any_block"])
def test_without_any_block_content_is_the_stored_string(type: str, content: Any, kept: str) -> None:
    assert parse_message(record(type, content=content)).content == kept


@each_row("type", ["info", "warning", "error", "something new", None])
def test_words_of_the_cli_are_system_messages(type: Any) -> None:
    message = parse_message(record(type, content="Request cancelled."))
    assert message.role == "system"
    assert message.content == ({"type": "text", "text": "Request cancelled."},)


def test_json_shape() -> None:
    tokens = {"input": 10, "output": 2, "cached": 4, "thoughts": 1, "tool": 0, "total": 13}
    stored = record(content="\x1b[31mred", model="gemini-2.5-pro", tokens=tokens, extra="kept")
    shape = parse_message(stored).to_dict()
    assert json.loads(json.dumps(shape)) == {
        "id": "m1",
        "role": "assistant",
        "content": [{"type": "text", "text": "\x1b[31mred"}],
        "timestamp": 1767323045250,
        "tool": "gemini",
        "model": "gemini-2.5-pro",
        "usage": {
            "input_tokens": 10,
            "output_tokens": 2,
            "total_tokens": 13,
            "cache_read_input_tokens": 4,
        },
        "_original": stored,
    }


@each_row("tokens", TABLES["unknown_counters_are_left_out"])
def test_unknown_counters_are_left_out(tokens: Any) -> None:
    shape = parse_message(record(tokens=tokens)).to_dict()
    assert "usage" not in shape
    assert "model" not in shape


def test_a_measured_zero_is_kept() -> None:
    assert parse_message(record(tokens={"input": 0})).usage == {"input_tokens": 0}


@each_row("timestamp", [None, 5, "yesterday", ["x"]])
def test_an_unknown_time_is_null(timestamp: Any) -> None:
    assert parse_message(record(timestamp=timestamp)).to_dict()["timestamp"] is None


# --- tokens ----------------------------------------------------------------------------------


def test_counters_are_read_as_they_are() -> None:
    usage = usage_of({"input": 5, "output": 1, "cached": 3, "total": 100, "thoughts": None})
    assert usage is not None
    assert (usage.input, usage.cached, usage.total) == (5, 3, 100)
    assert usage_of({"input": 5, "output": 1, "cached": 9}) is None
    assert usage.thoughts is None
    assert usage.adds_up  # an unknown part: nothing can be said against the total
    sums = {"input": 5, "output": 1, "cached": 4, "thoughts": 1, "tool": 1}
    right, wrong = usage_of({**sums, "total": 8}), usage_of({**sums, "total": 12})
    assert right is not None
    assert right.adds_up  # cached is a part of input
    assert wrong is not None
    assert not wrong.adds_up


# --- the chats of another project, where they are at hand -------------------------------------


@pytest.fixture(scope="module")
def fixtures() -> Path:
    place = os.environ.get("GEMTUI_SDK_FIXTURES")
    if not place:
        pytest.skip("GEMTUI_SDK_FIXTURES names no folder with the chats of agent-cli-sdk")
    return Path(place)


def only(message: UnifiedMessage, type: str) -> Any:
    (block,) = (
        block for block in message.content if isinstance(block, dict) and block["type"] == type
    )
    return block


def sessions(fixtures: Path) -> Iterator[dict[str, Any]]:
    for path in sorted((fixtures / "full").glob("*.json")):
        yield json.loads(path.read_text())


@each_row("name, tool, inputs, is_error, types, texts", TABLES["chats_of_another_project"])
def test_a_message_of_another_project_is_read(
    fixtures: Path,
    name: str,
    tool: str,
    inputs: list[str],
    is_error: bool,
    types: list[str],
    texts: list[str],
) -> None:
    stored = json.loads((fixtures / "individual" / f"{name}.json").read_text())
    message = parse_message(stored)
    shape = message.to_dict()
    assert shape.pop("_original") == stored
    assert (message.role, [block["type"] for block in shape["content"]]) == ("assistant", types)
    use = only(message, "tool_use")
    assert (use["name"], list(use["input"])) == (tool, inputs)
    assert set(map(str, use["input"].values())) <= {
        "*",
        *map(str, stored["toolCalls"][0]["args"].values()),
    }
    assert only(message, "tool_result")["is_error"] is is_error
    assert [text for text in texts if text not in json.dumps(shape)] == []


def test_fixture_session(fixtures: Path) -> None:
    (session,) = (each for each in sessions(fixtures) if each["sessionId"].startswith("9c9a14e1"))
    user, call, text = map(parse_message, session["messages"])
    assert (user.role, call.role, text.role) == ("user", "assistant", "assistant")
    assert only(user, "text")["text"] == session["messages"][0]["content"]
    assert only(call, "tool_use")["name"] == "Read"
    assert only(text, "text")["text"]
    assert [message.id for message in (user, call, text)] == [m["id"] for m in session["messages"]]


def test_fixture_sessions_have_34_messages_whose_tokens_add_up(fixtures: Path) -> None:
    records = [record for session in sessions(fixtures) for record in session["messages"]]
    assert len([parse_message(record) for record in records]) == 34
    usages = [usage_of(record["tokens"]) for record in records if record["type"] == "gemini"]
    known = [usage for usage in usages if usage is not None]
    assert len(known) == 26
    assert all(usage.adds_up for usage in known)
    assert all((usage.cached or 0) <= (usage.input or 0) for usage in known)
