"""Every tool call in the recordings of the real CLI, versions 0.11 to 0.61."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from gemtui.transcript.model import (
    AgentDisplay,
    DiffDisplay,
    FilesDisplay,
    JsonDisplay,
    MatchesDisplay,
    ScreenDisplay,
    TextDisplay,
    TodosDisplay,
    ToolCall,
    ToolStatus,
)
from gemtui.transcript.tools import call_status, tool_call, written_path

DATA = Path(__file__).parent.parent / "data" / "sessions"


def raw_calls(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield from value.get("toolCalls") or ()
        for inner in value.values():
            yield from raw_calls(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from raw_calls(inner)


def values(path: Path) -> Iterator[Any]:
    text = path.read_text(encoding="utf-8")
    for line in [text] if path.suffix == ".json" else text.split("\n"):
        if line.strip().endswith("}"):  # the last line of one recording is cut on purpose
            yield json.loads(line)


@cache
def recorded() -> list[tuple[dict[str, Any], ToolCall]]:
    paths = sorted(DATA.rglob("chats/**/*.json*"))
    raws = [raw for path in paths for value in values(path) for raw in raw_calls(value)]
    return [(raw, tool_call(raw)) for raw in raws]


def named(name: str) -> list[tuple[dict[str, Any], ToolCall]]:
    found = [(raw, call) for raw, call in recorded() if call.name == name]
    assert found
    return found


def test_every_display_is_understood() -> None:
    assert len(recorded()) > 100
    assert not [call for _, call in recorded() if isinstance(call.display, JsonDisplay)]
    shapes = {
        "grep_search": MatchesDisplay,
        "list_directory": FilesDisplay,
        "invoke_agent": AgentDisplay,
        "write_todos": TodosDisplay,
        "update_topic": TextDisplay,
    }
    for name, shape in shapes.items():
        assert {type(call.display) for _, call in named(name)} == {shape}


def test_every_edit_that_was_written_has_a_diff_and_a_path() -> None:
    written = [(raw, call) for raw, call in recorded() if written_path(raw, call_status(raw))]
    assert {call.name for _, call in written} == {"write_file", "replace"}
    for _, call in written:
        assert call.status is ToolStatus.SUCCESS
        assert isinstance(call.display, DiffDisplay)
        assert call.display.added


def test_the_cancelled_edit_was_not_written() -> None:
    cancelled = [each for each in named("write_file") if each[1].status is ToolStatus.CANCELLED]
    assert cancelled
    for raw, call in cancelled:
        assert isinstance(call.display, DiffDisplay)
        assert written_path(raw, call_status(raw)) is None


def test_the_write_in_plan_mode_was_denied() -> None:
    errors = [call for _, call in named("write_file") if "Plan Mode" in (call.error or "")]
    assert {call.status for call in errors} == {ToolStatus.DENIED}


def test_a_tool_that_does_not_exist_failed() -> None:
    assert {call.status for _, call in named("frobnicate")} == {ToolStatus.ERROR}


def test_exit_codes_of_all_versions() -> None:
    codes = {call.exit_code for _, call in named("run_shell_command") if "exit 3" in str(call.args)}
    assert codes == {3}


def test_the_screen_of_an_interactive_run_has_no_padding() -> None:
    calls = [call for _, call in named("run_shell_command") if call.args["command"] != "echo yolo"]
    (screen,) = {call.display for call in calls if isinstance(call.display, ScreenDisplay)}
    assert ["".join(span.text for span in line) for line in screen.lines] == ["green plain", "a.py"]
    assert screen.lines[0][0].fg == "#008000"


def test_what_the_cli_wraps_for_the_model_is_not_shown() -> None:
    assert any("<untrusted_context>" in json.dumps(raw) for raw, _ in recorded())
    assert not [call for _, call in recorded() if "untrusted_context" in (call.output or "")]


def test_descriptions_are_one_short_line() -> None:
    assert any(len(raw.get("description", "")) > 1000 for raw, _ in recorded())
    for _, call in recorded():
        assert len(call.description or "") <= 200
        assert "\n" not in (call.description or "")
