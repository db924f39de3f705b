"""What a comparison by lines does not show of a file."""

from __future__ import annotations

from gemtui.runs.gate.proposal import comparable, line_end_changes
from tests.rows import each_row, table


@each_row("before, after, told", table("runs/line_ends.json"))
def test_line_ends_are_told(before: str | None, after: str, told: list[str]) -> None:
    assert list(line_end_changes(before, after)) == told


def test_each_line_end_is_marked_where_they_are_mixed() -> None:
    assert comparable("a\r\nb\r\n", "a\r\nb\r\n") == ("a\nb\n", "a\nb\n")
    assert comparable("a\r\nb\r\n", "a\nb\r\n") == ("a␍\nb␍\n", "a\nb␍\n")
