"""Cards: what stays when it gets narrow, what starts open, what unfolding shows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from gemtui.transcript.call_text import call_text
from gemtui.transcript.model import (
    Answer,
    Consent,
    DiffDisplay,
    Text,
    TextDisplay,
    Thought,
    TodosDisplay,
    ToolCall,
    ToolStatus,
)
from gemtui.transcript.seal import new_seal, sealed
from gemtui.transcript.tools import args_hold_controls, tool_call
from gemtui.ui.draw.theme import Role
from gemtui.ui.transcript.card import HOOKED
from gemtui.ui.transcript.message import default_folded
from tests.rows import each_row, table
from tests.ui.transcript.samples import DIFF, body, built, called, drawn, look

TABLES = table("transcript/cards.json", built)

FULL = called(
    "replace",
    DiffDisplay(diff=DIFF, path="/x/f.py", name="f.py", added=6, removed=2),
    args={"file_path": "gemtui/sessions/some/folder/with/format.py"},
    duration=timedelta(seconds=2.1),
)


def title(call: ToolCall, width: int) -> str:
    return body(drawn(call, width=width))[0]


def test_duration_goes_first_then_counts_then_arguments() -> None:
    assert title(FULL, 80) == (
        "✓ replace  gemtui/sessions/some/folder/with/format.py             +6 −2    2.1 s"
    )
    narrower = [title(FULL, width) for width in range(80, 19, -1)]
    assert all(line.startswith("✓ replace") for line in narrower)
    last = {
        what: min(len(line) for line in narrower if what in line)
        for what in ("2.1 s", "+6 −2", "ormat.py")
    }
    assert last["2.1 s"] > last["+6 −2"] > last["ormat.py"]


@each_row("promise, call, options, expected", TABLES["drawn"])
def test_a_card_is_drawn_as_promised(
    promise: str, call: ToolCall, options: dict[str, Any], expected: dict[str, Any]
) -> None:
    drawing = drawn(call, **options)
    lines, part = body(drawing), drawing.parts[1]
    text = "\n".join(lines)
    assert lines[0].startswith(expected.get("first", "")), promise
    assert lines[-1].startswith(expected.get("last", "")), promise
    assert len(lines) == expected.get("count", len(lines)), promise
    assert part.foldable is expected.get("foldable", part.foldable), promise
    assert part.folded is expected.get("folded", part.folded), promise
    assert [words for words in expected.get("has", ()) if words not in text] == [], promise
    assert [words for words in expected.get("lacks", ()) if words in text] == [], promise
    whole = " ".join(line.strip("│ ") for line in lines)
    assert expected.get("flat", "") in whole, promise


@pytest.mark.parametrize("name", ["", " "])
def test_the_title_of_a_call_without_a_name_ends_in_no_blank(name: str) -> None:
    assert [strip.text for strip in drawn(called(name)).strips if strip.text.endswith(" ")] == []


def test_a_long_path_keeps_its_end() -> None:
    assert title(FULL, 40) == "✓ replace  …s/some/folder/with/format.py"


@pytest.mark.parametrize("name", ["read_file", "write_file", "replace"])
def test_a_path_in_the_project_is_relative_and_not_shown_twice(name: str) -> None:
    call = called(name, TextDisplay(text="x"), args={"file_path": "/p/src/a.py"}, project="/p")
    for folded in (True, False):
        lines = body(drawn(call, folded=folded))
        assert lines[0].startswith(f"✓ {name}  src/a.py")
        assert "/p" not in "".join(lines)
    assert call.args == {"file_path": "/p/src/a.py"}


def test_reads_and_thoughts_start_folded_and_failures_and_todos_open() -> None:
    assert default_folded(called())
    assert default_folded(Thought(subject="a", description="b"))
    assert not default_folded(called(status=ToolStatus.ERROR, error="no"))
    assert default_folded(called(status=ToolStatus.ERROR, error="no\n" * 100))
    assert not default_folded(called("write_todos", TodosDisplay(items=())))
    assert not default_folded(Text(text="x"))


def test_shell_output_shows_its_end_and_says_what_is_missing() -> None:
    text = "\n".join(str(number) for number in range(30_000))
    lines = body(drawn(called("run_shell_command", TextDisplay(text=text))))
    assert lines[1:5] == ["│ 29996", "│ 29997", "│ 29998", "│ 29999"]
    assert lines[5] == "│ +29,996 lines"


def test_unfolded_output_is_bounded_and_says_so() -> None:
    text = "\n".join(str(number) for number in range(30_000))
    lines = body(drawn(called("run_shell_command", TextDisplay(text=text)), folded=False))
    assert "│ … 28,000 lines not shown …" in lines
    assert lines[1] == "│ 0"
    assert lines[-1] == "│ 29999"


def test_line_numbers_and_signs_of_a_diff_are_margin() -> None:
    drawing = drawn(FULL, folded=False)
    line = next(
        number for number, strip in enumerate(drawing.strips) if "is_complete" in strip.text
    )
    text = drawing.strips[line].text
    assert text[drawing.margins[line] :] == "    if tail and is_complete(tail):"
    assert text[: drawing.margins[line]] == "│  42 + "


def test_the_word_that_changed_is_marked() -> None:
    drawing = drawn(FULL, folded=False)
    line = next(strip for strip in drawing.strips if "_tail" in strip.text)
    ground = look(74)[Role.REMOVED_WORD].bgcolor
    marked = [each for each in line if each.style and each.style.bgcolor == ground]
    assert [segment.text for segment in marked] == ["_"]


def test_nested_or_huge_values_are_no_trouble() -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    lines = body(drawn(called("mcp_x", args={"deep": deep, "n": 10**6000}), folded=False))
    assert lines[1].startswith("│ deep:")


@pytest.mark.parametrize(
    ("args", "marked"),
    [
        ({"path": "a\u202eb"}, True),
        ({"x": "a", "paths": ["b", "c\x9b2J"]}, True),
        ({"file_path": "a", "content": "\x1b[31m"}, False),
        ({"command": "a\n\tb"}, False),
    ],
)
def test_any_argument_but_the_contents_of_files_is_looked_at(
    args: dict[str, object], marked: bool
) -> None:
    assert args_hold_controls(args) is marked


def read(output: str, shown: str = "", **args: object) -> ToolCall:
    display = TextDisplay(text=shown) if shown else None
    return called("read_file", display, output=output, args={"file_path": "a.py"} | args)


def test_a_file_that_was_read_has_its_colours() -> None:
    drawing = drawn(read("\n\ndef f(x):\n    return 'é'\n"), folded=False)
    styles = {part.text.strip(): part.style for part in drawing.strips[2]}
    assert styles["def"] == look(74)[Role.KEYWORD]


def test_the_numbers_go_on_behind_what_is_left_out() -> None:
    text = "\n".join(f"x{number}" for number in range(5, 3005))
    lines = body(drawn(read(text, start_line=5), folded=False))
    assert lines[1] == "│    5  x5"
    assert lines[-1] == "│ 3004  x3004"


def test_of_a_large_file_only_the_beginning_is_coloured() -> None:
    source = "\n".join(f"def f{number}(): return None" for number in range(1500))
    strips = drawn(read(source), folded=False).strips
    keyword = look(74)[Role.KEYWORD]
    coloured = [any(part.style == keyword for part in strip) for strip in strips]
    assert coloured[2]
    assert sum(coloured) < 600


@each_row("call, text, role", TABLES["colours"])
def test_what_has_a_language_has_its_colours(call: ToolCall, text: str, role: str) -> None:
    drawing = drawn(call, folded=False)
    styles = {part.text.strip(): part.style for strip in drawing.strips for part in strip}
    assert styles[text] == look(80)[Role[role]]


def test_a_log_in_brackets_is_no_json() -> None:
    log = called("run_shell_command", TextDisplay(text="[INFO] 1 file\n[INFO] done"))
    styles = [part.style for strip in drawn(log, folded=False).strips for part in strip]
    assert look(80)[Role.NUMBER] not in styles


def test_a_changed_line_has_its_ground_up_to_the_end() -> None:
    drawing = drawn(FULL, folded=False)
    grounds = {strip.text[6:7]: drawing.grounds[at] for at, strip in enumerate(drawing.strips)}
    assert grounds["+"] == look(80)[Role.ADDED_LINE]
    assert grounds["−"] == look(80)[Role.REMOVED_LINE]
    assert grounds[" "] is None


@pytest.mark.parametrize("ours", [True, False])
def test_a_change_by_a_hook_is_told_unless_it_was_the_mark_of_a_run_that_asks(ours: bool) -> None:
    notice = "\n\n[System] Tool input parameters were modified by a hook before execution."
    args = {"command": "ls"}
    given = sealed("run_shell_command", args, new_seal()) if ours else args
    reply = {"functionResponse": {"response": {"output": f"Output: a{notice}"}}}
    raw = {"name": "run_shell_command", "args": given, "result": [reply], "status": "success"}
    assert (HOOKED in "\n".join(body(drawn(tool_call(raw), width=120)))) != ours


@each_row("what, call, sought", TABLES["shown"])
def test_what_a_card_shows_is_found(what: str, call: ToolCall, sought: list[str]) -> None:
    found = call_text(call)
    shown = " ".join("\n".join(body(drawn(call, width=60, folded=False))).split())
    assert [text for text in sought if text not in found] == [], what
    assert [text for text in sought if text not in shown] == [], what
    assert "." * 301 not in found


def test_a_denial_by_the_user_is_told_once_and_the_error_for_the_model_when_unfolded() -> None:
    error = "Tool execution blocked: The user said no: use b.py"
    answer = Answer(consent=Consent.DENIED, reason="use b.py")
    call = called("write_file", status=ToolStatus.DENIED, error=error, answer=answer)
    folded, unfolded = ("\n".join(body(drawn(call, folded=folded))) for folded in (None, False))
    assert "denied by you: use b.py" in folded
    assert error not in folded
    assert error in unfolded
