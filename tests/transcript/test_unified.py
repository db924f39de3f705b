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
from tests.transcript.raw_calls import json_values, raw_call, record, reply

TABLES = table("transcript/unified.json")

PNG = {"inlineData": {"mimeType": "image/png", "data": "QUJD"}}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}


def blocks(record: dict[str, Any]) -> list[Any]:
    content = parse_message(record).content
    assert not isinstance(content, str)
    return list(content)


def types(record: dict[str, Any]) -> list[str]:
    return [block["type"] for block in blocks(record)]


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


@each_row("name, args, unified, wanted", TABLES["tool_names_and_inputs"])
def test_tool_names_and_inputs(name: str, args: dict[str, Any], unified: str, wanted: dict[str, Any]) -> None:
    use = blocks(record(toolCalls=[raw_call(name, args=args)]))[0]
    assert use == {"type": "tool_use", "id": "c1", "name": unified, "input": wanted}


def test_of_several_paths_all_readers_take_the_same() -> None:
    args = {"path": "c", "absolute_path": "b", "file_path": "a", "offset": 0}
    use = blocks(record(toolCalls=[raw_call("read_file", args=args)]))[0]
    assert use["type"] == "tool_use"
    assert use["input"]["file_path"] == asked_path(args) == short(Call("read_file", args)) == "a"


def test_order_is_thinking_then_each_call_with_its_result_then_text() -> None:
    message = record(
        content="Done.",
        thoughts=[{"subject": "Plan", "description": "do it"}],
        toolCalls=[raw_call(id="a"), raw_call(id="b", result=None), raw_call(id="c")],
    )
    assert types(message) == ["thinking", "tool_use", "tool_result", "tool_use", "tool_use", "tool_result", "text"]
    assert blocks(message)[0] == {"type": "thinking", "thinking": "Plan: do it"}


@each_row(
    "thought, words",
    [
        ({"subject": "Plan", "description": "do it"}, "Plan: do it"),
        ({"subject": "", "description": "do it"}, "do it"),
        ({"subject": "Plan"}, "Plan"),
    ],
)
def test_thinking(thought: dict[str, str], words: str) -> None:
    assert blocks(record(thoughts=[thought])) == [{"type": "thinking", "thinking": words}]


@each_row("fields, content, is_error", TABLES["tool_results"])  # fmt: skip
def test_tool_results(fields: dict[str, Any], content: str, is_error: bool) -> None:
    result = blocks(record(toolCalls=[raw_call(**fields)]))[1]
    assert result == {"type": "tool_result", "tool_use_id": "c1", "content": content, "is_error": is_error}


def test_a_call_without_an_id_gets_one_that_its_result_shares() -> None:
    call = {"name": "glob", "result": [{"text": "x"}], "status": "success"}
    use, result = blocks(record(toolCalls=[call]))
    assert use["id"] == result["tool_use_id"] == "m1:0"


def test_a_prompt_is_one_text_block() -> None:
    text = {"type": "text", "text": "hello\n\n"}
    assert blocks(record("user", content="hello\n\n")) == [text]
    assert blocks(record("user", content=[{"text": "hel"}, "lo\n\n"])) == [text]


@each_row("type", ["user", "gemini", "info"])
@each_row("content, kept", TABLES["content_without_any_block"])
def test_without_any_block_content_is_the_stored_string(type: str, content: Any, kept: str) -> None:
    assert parse_message(record(type, content=content)).content == kept


@each_row("type", ["info", "warning", "error", "something new", None])
def test_words_of_the_cli_are_system_messages(type: Any) -> None:
    message = parse_message(record(type, content="Request cancelled."))
    assert message.role == "system"
    assert message.content == ({"type": "text", "text": "Request cancelled."},)


def test_thought_parts_are_thinking_unless_the_record_stores_its_thoughts() -> None:
    thinking = {"text": "Let me see. **A plan** First, read.", "thought": True}
    content = [thinking, {"text": " ", "thought": True}, {"text": "Answer"}]
    text = {"type": "text", "text": "Answer"}
    assert blocks(record(content=content)) == [
        {"type": "thinking", "thinking": "A plan: Let me see.  First, read."},
        text,
    ]
    stored = [{"subject": "Stored", "description": "once"}]
    assert blocks(record(content=content, thoughts=stored)) == [{"type": "thinking", "thinking": "Stored: once"}, text]


def test_code_that_the_model_ran_is_text_with_its_output() -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "print(6 * 7)"}}
    result = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42"}}
    (block,) = blocks(record(content=[{"text": "I count."}, code, result]))
    assert block["text"].split() == ["I", "count.", "```python", "print(6", "*", "7)", "```", "```", "42", "```"]


def test_images() -> None:
    url = {"fileData": {"mimeType": "image/png", "fileUri": "https://x/y.png"}}
    assert blocks(record("user", content=[PNG, {"text": "look"}, url])) == [
        {"type": "text", "text": "look"},
        IMAGE,
        {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
    ]


def test_an_enriched_prompt_is_what_was_typed_and_its_images() -> None:
    content = [{"text": "see @a.py"}, {"text": "\n--- Content from referenced files ---"}, PNG]
    message = record("user", content=content, displayContent=[{"text": "see @a.py"}])
    assert blocks(message) == [{"type": "text", "text": "see @a.py"}, IMAGE]
    assert parse_message(message).original["content"] == content


def test_restored_records_name_their_calls_in_parts() -> None:
    named = {"functionCall": {"id": "c2", "name": "glob", "args": {"pattern": "*"}}}
    stored = {"functionCall": {"id": "c1", "name": "read_file", "args": {}}}
    message = record(content=[{"text": "Let me see."}, stored, named], toolCalls=[raw_call()])
    assert [block.get("id") for block in blocks(message)] == ["c1", None, "c2", None]
    assert types(message) == ["tool_use", "tool_result", "tool_use", "text"]


def test_replies_to_tools_are_results() -> None:
    replies = [*reply(output="x"), *reply(error="no")]
    assert blocks(record("user", content=replies)) == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "x", "is_error": False},
        {"type": "tool_result", "tool_use_id": "c1", "content": "no", "is_error": True},
    ]


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
        "usage": {"input_tokens": 10, "output_tokens": 2, "total_tokens": 13, "cache_read_input_tokens": 4},
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


def single(fixtures: Path, name: str) -> tuple[dict[str, Any], UnifiedMessage]:
    stored = json.loads((fixtures / "individual" / f"{name}.json").read_text())
    message = parse_message(stored)
    assert message.original == stored
    assert message.role == "assistant"
    return stored, message


def only(message: UnifiedMessage, type: str) -> Any:
    (block,) = (block for block in message.content if isinstance(block, dict) and block["type"] == type)
    return block


def sessions(fixtures: Path) -> Iterator[dict[str, Any]]:
    for path in sorted((fixtures / "full").glob("*.json")):
        yield json.loads(path.read_text())


def test_fixture_read_file(fixtures: Path) -> None:
    _, message = single(fixtures, "tool-read_file")
    assert only(message, "tool_use")["name"] == "Read"
    assert only(message, "tool_use")["input"]["file_path"].endswith("main.py")
    assert "def main()" in only(message, "tool_result")["content"]
    assert message.model == "gemini-2.5-pro"
    assert message.usage == {
        "input_tokens": 5870,
        "output_tokens": 41,
        "total_tokens": 5939,
        "cache_read_input_tokens": 5420,
    }


def test_fixture_write_file(fixtures: Path) -> None:
    _, message = single(fixtures, "tool-write-file")
    assert only(message, "thinking")["thinking"].startswith("Starting the project: ")
    assert only(message, "tool_use")["name"] == "Write"
    assert "Successfully created" in only(message, "tool_result")["content"]


def test_fixture_replace(fixtures: Path) -> None:
    stored, message = single(fixtures, "tool-replace")
    assert "instruction" in stored["toolCalls"][0]["args"]
    assert only(message, "tool_use")["name"] == "Edit"
    assert set(only(message, "tool_use")["input"]) == {"file_path", "old_string", "new_string"}


@pytest.mark.parametrize("name", ["tool-run_shell_command", "tool-result-cancelled"])
def test_fixture_cancelled_shell(fixtures: Path, name: str) -> None:
    _, message = single(fixtures, name)
    assert only(message, "tool_use")["name"] == "Bash"
    assert only(message, "tool_result")["is_error"] is True


def test_fixture_search(fixtures: Path) -> None:
    _, message = single(fixtures, "tool-google_web_search")
    assert only(message, "tool_use")["name"] == "WebSearch"
    assert only(message, "tool_use")["input"] == {"query": "restrictedpy"}


@pytest.mark.parametrize("name", ["tool-list_directory", "tool-result-success", "gemini-with-thoughts"])
def test_fixture_list_directory(fixtures: Path, name: str) -> None:
    stored, message = single(fixtures, name)
    use = only(message, "tool_use")
    assert use["name"] == "Glob"
    assert use["input"] == {"pattern": "*", "path": stored["toolCalls"][0]["args"]["path"]}
    assert only(message, "tool_result")["is_error"] is False


def test_fixture_error(fixtures: Path) -> None:
    _, message = single(fixtures, "tool-result-error")
    assert only(message, "tool_result")["is_error"] is True
    assert [block["type"] for block in message.content if isinstance(block, dict)] == [
        "thinking",
        "tool_use",
        "tool_result",
        "text",
    ]


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
