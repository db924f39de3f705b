"""The line that is shown of a hit."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from gemtui.search.results import Snippet, snippet
from gemtui.sessions.catalog.query import parse_query
from gemtui.text import clean
from tests.rows import each_row, table


def shown(text: str, query: str, **more: int) -> Snippet:
    return snippet(text, parse_query(query, now=datetime(2026, 11, 22, tzinfo=UTC)), **more)


@each_row("promise, text, query, expected, marked", table("search/words.json")["snippets"])
def test_the_line_that_fits_best_is_shown(
    promise: str, text: str, query: str, expected: str, marked: list[str]
) -> None:
    found = shown(text, query)
    assert found.text == expected, promise
    assert [found.text[start:end] for start, end in found.spans] == marked, promise


def test_a_long_line_is_cut_around_the_match() -> None:
    text = "a" * 5000 + " needle " + "b" * 5000
    found = shown(text, "needle", width=60)
    assert len(found.text) == 60
    assert found.text[0] == found.text[-1] == "…"
    ((start, end),) = found.spans
    assert found.text[start:end] == "needle"


@given(st.text(max_size=80), st.text(max_size=12), st.integers(10, 60))
def test_a_snippet_is_clean_and_its_spans_are_inside(text: str, query: str, width: int) -> None:
    found = shown(text, query, width=width)
    assert found.text == clean(found.text)
    assert "\n" not in found.text
    assert len(found.text) <= width
    ends = [0]
    for start, end in found.spans:
        assert ends[-1] <= start < end <= len(found.text)
        ends.append(end)
