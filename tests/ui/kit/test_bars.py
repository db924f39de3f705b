from __future__ import annotations

import pytest
from textual.content import Content

from gemtui.text import Clean, cells
from gemtui.ui.kit.bars import joined
from gemtui.ui.kit.text_view import wrapped
from tests.rows import each_row

TITLE = "A title that is longer than anything"


def line(left: list[str], right: list[str], width: int) -> str:
    made = joined([Content(part) for part in left], [Content(part) for part in right], width, "…")
    assert made.cell_length == width
    return made.plain


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (30, "one  two           three  four"),
        (20, "one  two        four"),
        (13, "one      four"),
        (6, "one   "),
        (2, "o…"),
    ],
)
def test_parts_give_way_until_the_rest_fits(width: int, expected: str) -> None:
    assert line(["one", "two"], ["four", "three"], width) == expected


def test_the_left_can_give_way_first() -> None:
    left, right = ([Content(part) for part in parts] for parts in (["one", "two"], ["4", "3"]))
    assert joined(left, right, 12, "…", gives_way="left").plain == "one     3  4"
    assert joined(left, right, 8, "…", gives_way="left").plain == "one    4"


def test_a_title_is_cut_before_the_first_fact_at_its_right_is_left_out() -> None:
    assert line([TITLE], ["3 prompts"], 40) == "A title that is longer than…   3 prompts"


def test_a_title_alone_is_cut_where_nothing_else_fits() -> None:
    assert line([TITLE], ["3 prompts"], 20) == "A title that is lon…"


def test_wide_characters_count_twice() -> None:
    assert line(["日本語"], ["x"], 12) == "日本語     x"


@each_row("text", ["", "one", "日本語のテキスト\n\nabc", "x" * 100, "🙏" * 9])
@each_row("width", [1, 2, 7])
def test_wrapping_loses_nothing_and_fits(text: str, width: int) -> None:
    lines = wrapped(Clean(text), width)
    assert "".join(lines) == text.replace("\n", "")
    assert len(lines) >= text.count("\n") + 1
    assert all(cells(Clean(each)) <= max(width, 2) for each in lines)
