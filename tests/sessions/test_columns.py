"""The table of columns: what each says of a session that is read, or only in part."""

from __future__ import annotations

from msgspec.structs import replace

from gemtui.sessions.catalog.columns import COLUMNS, FAILURES, Column, Sort, sorted_by
from tests.rows import each_row
from tests.sessions.summaries import summary


@each_row("sort", Sort)
def test_every_order_has_words_for_both_directions(sort: Sort) -> None:
    assert len({sort.words(), sort.words(reverse=True), ""}) == 3
    column = sorted_by(sort)
    assert column is None or column.sort is sort


@each_row("column", COLUMNS)
def test_a_number_is_unknown_until_all_of_a_session_is_read(column: Column) -> None:
    whole = summary("a", tools=2)
    assert column.known(replace(whole, partial=True)) is None
    assert column.known(whole) == column.number(whole)


def test_failures_count_as_soon_as_they_are_seen() -> None:
    assert FAILURES.known(summary("a", failures=2, partial=True)) == 2
