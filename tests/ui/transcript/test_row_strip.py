from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Offset
from textual.selection import Selection
from textual.strip import Strip

from gemtui.ui.transcript.row_strip import (
    LINES,
    StyledSpan,
    clamp_selection,
    marked,
    row_of,
    text_between,
)
from gemtui.ui.transcript.viewport import Viewport
from tests.ui.talks import Talk, answer, look, prompt, tool

BOLD, RED = Style(bold=True), Style(color="red")

TALK = Talk(
    prompt("p", "first question"),
    answer("a", "some words that are wrapped\n\n```python\nif x:\n    return 1\n```"),
)


def page_of(talk: Talk, width: int = 60) -> Viewport:
    page = Viewport()
    page.resize(look(width), 100)
    page.show(talk.now(), fresh=True)
    return page


def selected(page: Viewport, start: tuple[int, int, int], end: tuple[int, int, int]) -> str:
    """The text from (message, line, character) to another such place."""
    (m1, l1, x1), (m2, l2, x2) = start, end
    selection = Selection(Offset(x1, row_of(m1, l1)), Offset(x2, row_of(m2, l2)))
    return text_between(selection, page.sheet.drawn, len(page.sheet))


def test_marks_change_the_style_of_their_characters_only() -> None:
    strip = Strip([Segment("abcd", RED), Segment("efgh")])
    made = marked(strip, [StyledSpan(2, 6, BOLD)])
    assert [(text, style) for text, style, _ in made] == [
        ("ab", RED),
        ("cd", RED + BOLD),
        ("ef", BOLD),
        ("gh", None),
    ]


@given(
    st.lists(st.text("ab ü漢", max_size=5), max_size=5),
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=4),
)
def test_marks_never_change_the_text(pieces: list[str], spans: list[tuple[int, int]]) -> None:
    strip = Strip([Segment(piece) for piece in pieces])
    made = marked(strip, [StyledSpan(start, end, BOLD) for start, end in spans])
    assert made.text == strip.text
    assert made.cell_length == strip.cell_length


def test_a_selection_leaves_out_frames_and_the_breaks_of_wrapping() -> None:
    page = page_of(TALK, width=20)
    end = page.sheet.drawn(1).height
    assert selected(page, (0, 1, 0), (1, end, 0)) == (
        "first question\n\nsome words that are wrapped\n\nif x:\n    return 1"
    )


def test_a_selection_inside_of_a_line() -> None:
    page = page_of(TALK)
    assert selected(page, (0, 1, 2), (0, 1, 7)) == "first"
    assert selected(page, (0, 1, 8), (1, 0, 99)) == "question\n\nsome words that are wrapped"


def test_a_selection_of_tool_output() -> None:
    page = page_of(Talk(answer("a", tool("t", "one\ntwo", failed=True))))
    lines = [strip.text for strip in page.sheet.drawn(0).strips]
    first = next(index for index, line in enumerate(lines) if "one" in line)
    assert selected(page, (0, first, 0), (0, first + 1, 99)) == "one\ntwo"


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(None, None), Selection(Offset(0, 3), Offset(LINES, 9))),
        (Selection(Offset(1, 5), None), Selection(Offset(1, 5), Offset(LINES, 9))),
        (Selection(None, Offset(1, 5)), Selection(Offset(0, 3), Offset(1, 5))),
    ],
)
def test_open_ends_are_what_is_in_sight(selection: Selection, expected: Selection) -> None:
    assert clamp_selection(selection, 3, 9) == expected
