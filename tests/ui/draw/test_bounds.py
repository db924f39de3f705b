"""Long content: what is drawn of it, and that the rest costs next to nothing."""

from __future__ import annotations

from time import thread_time

import pytest

from gemtui.transcript.model import (
    AnsiSpan,
    Author,
    Block,
    DiffDisplay,
    Display,
    JsonDisplay,
    Match,
    MatchesDisplay,
    ScreenDisplay,
    TableDisplay,
    Text,
    TextDisplay,
    Thought,
    ToolStatus,
)
from gemtui.ui.draw.text_rows import bounded_excerpt, line_count
from tests.rows import each_row
from tests.ui.transcript.samples import called, drawn

OUTPUT = "a line of output with some words\n" * 100_000
ADDED = "\n".join(f"+line {number}" for number in range(100_000))
LONG: dict[str, Block] = {
    "answer of lines": Text(text="some words\n" * 100_000),
    "answer of one line": Text(text="word " * 200_000),
    "brackets": Text(text="[" * 30_000),
    "bars": Text(text="|a" * 100 + "\n" + "|-" * 100 + "\n" + ("|" * 200 + "\n") * 100),
    "list": Text(text="- a\n" * 7_000),
    "depth": Text(text=">" * 30_000),
    "code": Text(text="```python\n" + "def f(x): return 'y'\n" * 1_400 + "```"),
    "output": called("run_shell_command", TextDisplay(text=OUTPUT)),
    "one line of output": called("run_shell_command", TextDisplay(text="x" * 3_000_000)),
    "escapes": called("run_shell_command", TextDisplay(text="\x1b[32mx\x1b[0m\n" * 100_000)),
    "marks": called("run_shell_command", TextDisplay(text="a" + "\u0301" * 900_000)),
    "screen": called(
        "run_shell_command", ScreenDisplay(lines=((AnsiSpan(text="x", fg="#008000"),),) * 100_000)
    ),
    "one line of a screen": called(
        "run_shell_command", ScreenDisplay(lines=((AnsiSpan(text="é" * 900_000, fg="#008000"),),))
    ),
    "colours of one line": called(
        "run_shell_command", ScreenDisplay(lines=((AnsiSpan(text="é", fg="#008000"),) * 160_000,))
    ),
    "long lines of a screen": called(
        "run_shell_command",
        ScreenDisplay(lines=((AnsiSpan(text="é" * 900, fg="#008000"),),) * 2_000),
    ),
    "read": called(output=OUTPUT, args={"file_path": "a.py"}),
    "diff": called(
        "write_file",
        DiffDisplay(diff=f"@@ -0,0 +1,100000 @@\n{ADDED}", path="a", name="a", added=100_000),
    ),
    "matches": called(
        "grep_search",
        MatchesDisplay(
            summary="",
            matches=tuple(Match(path=f"f{n // 10}", line=n, text="x") for n in range(100_000)),
        ),
    ),
    "table": called("mcp_x", TableDisplay(columns=("a", "b"), rows=(("1", "2"),) * 20_000)),
    "json": called("mcp_x", JsonDisplay(value=[{"k": n} for n in range(100_000)])),
    "arguments": called("mcp_x", args={f"k{n}": "v" * 50 for n in range(20_000)}),
    "error": called(status=ToolStatus.ERROR, error="word\n" * 400_000),
    "thought": Thought(subject="x", description="word " * 400_000),
}


@each_row("kind", LONG)
@each_row("folded", [True, False, None])
def test_long_content_is_drawn_in_bounded_time_and_space(kind: str, folded: bool | None) -> None:
    drawn(LONG[kind], folded=folded)  # what is imported on first use does not count
    start = thread_time()
    drawing = drawn(LONG[kind], width=100, folded=folded)
    assert thread_time() - start < 1  # seconds of processor time; 0.05 are usual
    assert drawing.height < 3_100


def test_a_long_prompt_is_bounded_too() -> None:
    drawing = drawn(Text(text="some words\n" * 100_000), author=Author.USER)
    assert drawing.height < 3_100
    assert any("lines not shown" in strip.text for strip in drawing.strips)


def test_an_excerpt_is_the_beginning_and_the_end() -> None:
    some = bounded_excerpt("\n\n  a\nb\r\n\x1b[1mc\nd\ne\n\n", head=2, tail=1)
    assert (some.head, some.tail, some.left_out) == (("  a", "b"), ("e",), 2)
    assert bounded_excerpt("a\nb", head=1, tail=1).head == ("a", "b")
    assert bounded_excerpt(" \n", head=3).head == ()
    assert line_count("\n a\n\nb\n\n") == 3


def test_returns_inside_a_line_make_lines() -> None:
    assert bounded_excerpt("10%\r20%\r30%").head == ("10%", "20%", "30%")
    assert line_count("10%\r20%\r\n30%") == 3


def test_a_progress_bar_is_folded() -> None:
    bar = "".join(f"{number}%\r" for number in range(5000)) + "\ndone"
    call = called("run_shell_command", TextDisplay(text=bar))
    assert drawn(call, folded=True).height < 10
    assert drawn(call, folded=False).height < 2_100
    some = bounded_excerpt(bar, head=0, tail=2)
    assert (some.tail, some.left_out) == (("4999%", "done"), 4999)


@pytest.mark.parametrize(
    "display",
    [
        TextDisplay(text="x" * 30_000),
        ScreenDisplay(lines=((AnsiSpan(text="x" * 30_000, bold=True),),)),
    ],
)
def test_very_long_lines_lose_their_ends_with_a_word_about_it(display: Display) -> None:
    drawing = drawn(called("run_shell_command", display), folded=False)
    assert drawing.strips[-2].text == "│ … very long lines are cut off …"
