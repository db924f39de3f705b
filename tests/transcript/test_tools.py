from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import hypothesis.strategies as st
from hypothesis import given
from msgspec import to_builtins

from gemtui.transcript.model import DiffDisplay, Image, TableDisplay, ToolStatus
from gemtui.transcript.tools import (
    ToolKind,
    call_from_parts,
    call_status,
    kind_of,
    target,
    tool_call,
    written_path,
)
from tests.rows import each_row, table
from tests.transcript.raw_calls import json_values, raw_call, reply

TABLES = table("transcript/tools.json")

ASKED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

KEYS = ["id", "name", "args", "result", "status", "timestamp", "resultDisplay", "description"]
KEYS += ["displayName", "agentId", "renderOutputAsMarkdown"]
keys = st.sampled_from(KEYS)
names = st.sampled_from(["write_file", "replace", "run_shell_command", "mcp_a_b", "grep_search"])
response_keys = st.sampled_from(["output", "error", "functionResponse", "response", "inlineData"])
shaped = st.dictionaries(
    keys,
    json_values
    | names
    | st.just("success")
    | st.lists(st.fixed_dictionaries({"functionResponse": json_values}), max_size=2)
    | st.dictionaries(response_keys, st.dictionaries(response_keys, json_values)),
)


@given(shaped)
def test_no_shape_makes_reading_a_call_raise(raw: dict[str, Any]) -> None:
    call = tool_call(raw, asked=ASKED)
    assert call.name
    assert call.status in ToolStatus
    assert isinstance(target(call), str)
    assert written_path(raw, call_status(raw)) is None or call.status is ToolStatus.SUCCESS
    assert len(call.description or "") <= 200


@given(st.dictionaries(keys, json_values), st.none() | st.dictionaries(response_keys, json_values))
def test_no_shape_makes_reading_parts_raise(
    call: dict[str, Any], response: dict[str, Any] | None
) -> None:
    assert call_from_parts(call, response).name


def test_deep_nesting_is_named_instead() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    assert tool_call(raw_call(result=reply(output=deep))).output == (
        "(nested too deeply to be shown)"
    )


@each_row("name, kind", TABLES["kinds_of_new_old_and_foreign_names"])
def test_kinds_of_new_old_and_foreign_names(name: str, kind: ToolKind) -> None:
    assert kind_of(name) == kind


@each_row("fields, status", TABLES["how_a_call_ended"])
def test_how_a_call_ended(fields: dict[str, Any], status: ToolStatus) -> None:
    assert call_status(raw_call(**fields)) == status
    assert tool_call(raw_call(**fields)).status == status


@each_row("promise, raw, expected", TABLES["what_is_read_of_a_call"])
def test_what_is_read_of_a_call(
    promise: str, raw: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert to_builtins(tool_call(raw)).items() >= expected.items(), promise


@each_row("call, response, expected", TABLES["calls_of_which_only_parts_are_left"])
def test_calls_of_which_only_parts_are_left(
    call: dict[str, Any], response: dict[str, Any] | None, expected: dict[str, Any]
) -> None:
    assert to_builtins(call_from_parts(call, response)).items() >= expected.items()


@each_row("result, output, error", TABLES["output_and_error"])
def test_output_and_error(result: Any, output: str | None, error: str | None) -> None:
    call = tool_call(raw_call(result=result))
    assert (call.output, call.error) == (output, error)


@each_row("output, code", [*TABLES["exit_code"], ("x" * 100_000 + "\nExit Code: 7\n", 7)])
def test_exit_code(output: str, code: int | None) -> None:
    call = tool_call(raw_call("run_shell_command", result=reply(output=output)))
    assert call.exit_code == code
    assert call.output is not None
    assert "untrusted_context" not in call.output


@each_row("shown, end, code", TABLES["what_a_command_prints_is_no_exit_code"])
def test_what_a_command_prints_is_no_exit_code(shown: str, end: str, code: int | None) -> None:
    given = "(empty)" if shown.startswith("Command") else shown
    result = reply(output=f"<untrusted_context>\nOutput: {given}{end}\n</untrusted_context>")
    screen = [[{"text": f"{line:80}", "bold": False}] for line in (*shown.splitlines(), "")]
    for display in (shown, screen):
        raw = raw_call("run_shell_command", result=result, resultDisplay=display)
        assert tool_call(raw).exit_code == code


def test_images_beside_and_inside_a_response() -> None:
    data = {"inlineData": {"mimeType": "image/png", "data": "QUJDRA=="}}
    inside = {"functionResponse": {"response": {}, "parts": [data]}}
    file = {"fileData": {"mimeType": "application/pdf", "fileUri": "gs://x", "displayName": "d"}}
    images = tool_call(raw_call(result=[inside, data, file])).images
    assert images == (
        Image(mime_type="image/png", size=4, name="image 1 of 3", data="QUJDRA=="),
        Image(mime_type="image/png", size=4, name="image 2 of 3", data="QUJDRA=="),
        Image(mime_type="application/pdf", uri="gs://x", name="d"),
    )


def test_static_documentation_is_clipped_to_one_line() -> None:
    documentation = "Reads a file.   And " + "more " * 500 + "\n\n" + "second paragraph"
    description = tool_call(raw_call(description=documentation)).description
    assert description is not None
    assert description.startswith("Reads a file. And more")
    assert len(description) <= 200
    assert "\n" not in description


def test_duration_counts_from_the_asking_record() -> None:
    assert tool_call(raw_call(), asked=ASKED).duration == timedelta(seconds=1.5)
    assert tool_call(raw_call()).duration is None
    assert tool_call(raw_call(timestamp="nonsense"), asked=ASKED).duration is None
    assert tool_call(raw_call(timestamp="2025-01-01T00:00:00Z"), asked=ASKED).duration is None
    assert tool_call(raw_call(timestamp="0001-01-01T00:00:00+14:00"), asked=ASKED).time is None


@each_row("name, args, about", TABLES["target"])
def test_target(name: str, args: Any, about: str) -> None:
    assert target(tool_call(raw_call(name, args=args))) == about


@each_row("fields, path", TABLES["written_path"])
def test_written_path(fields: dict[str, Any], path: str | None) -> None:
    raw = raw_call(**{"name": "write_file", **fields})
    assert written_path(raw, call_status(raw)) == path


def test_a_diff_is_rebuilt_from_the_arguments_of_old_edits() -> None:
    args = {"file_path": "/p/a.py", "old_string": "one\ntwo\n", "new_string": "one\n2\n"}
    display = tool_call(raw_call("replace", args=args)).display
    assert display == DiffDisplay(
        diff="--- a.py\tOriginal\n+++ a.py\tWritten\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n",
        path="/p/a.py",
        name="a.py",
        added=1,
        removed=1,
    )


@each_row(
    "output, is_new, removed",
    [
        ("Successfully created and wrote to new file: /p/a.", True, 0),
        ("Successfully overwrote file: /p/a.", False, None),
    ],
)
def test_a_diff_is_rebuilt_from_the_content_of_old_writes(
    output: str, is_new: bool, removed: int | None
) -> None:
    args = {"file_path": "/p/a", "content": "x\ny"}
    display = tool_call(raw_call("write_file", args=args, result=reply(output=output))).display
    assert isinstance(display, DiffDisplay)
    assert (display.is_new, display.added, display.removed) == (is_new, 2, removed)
    assert display.new == "x\ny"


def test_no_diff_is_made_up_for_calls_that_wrote_nothing() -> None:
    args = {"file_path": "/p/a", "content": "x"}
    failed = raw_call("write_file", args=args, status="error", result=reply(error="no"))
    assert tool_call(failed).display is None


def test_big_texts_are_not_compared_line_by_line() -> None:
    args = {"file_path": "a", "old_string": "a\nb\n" * 1500, "new_string": "b\na\n" * 1500}
    display = tool_call(raw_call("replace", args=args)).display
    assert isinstance(display, DiffDisplay)
    assert (display.added, display.removed) == (3000, 3000)


def test_a_foreign_tool_that_gave_rows_shows_a_table() -> None:
    rows = reply(output='[{"city": "Oslo", "c": 3}]')
    display = tool_call(raw_call("mcp_weather_get", result=rows)).display
    assert display == TableDisplay(columns=("city", "c"), rows=(("Oslo", "3"),))
    assert tool_call(raw_call("read_file", result=rows)).display is None
