"""The line that is shown of a hit."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from gemtui.search.results import Snippet, snippet
from gemtui.sessions.catalog.query import parse_query
from gemtui.text import clean


def shown(text: str, query: str, **more: int) -> Snippet:
    return snippet(text, parse_query(query, now=datetime(2026, 11, 22, tzinfo=UTC)), **more)


def marked(text: str, query: str, **more: int) -> tuple[str, list[str]]:
    found = shown(text, query, **more)
    return found.text, [found.text[start:end] for start, end in found.spans]


def test_the_line_with_most_words_is_shown() -> None:
    text = "a parser\n  the parser Falls  apart\nfalls"
    assert marked(text, "falls parser ") == ("the parser Falls apart", ["parser", "Falls"])


def test_whole_words_come_before_parts_of_words() -> None:
    assert marked("parsers here\nthe parser", "parser ") == ("the parser", ["parser"])
    assert marked("parsers here\nthe parser", "parser") == ("parsers here", ["parser"])
    assert marked("see parseMessage", "message ") == ("see parseMessage", ["Message"])


def test_a_phrase_is_marked_as_one_even_over_two_lines() -> None:
    assert marked("it falls\napart here", '"falls apart"') == ("it falls apart here", ["falls apart"])
    assert marked("x parse_message()", "parse_message ") == ("x parse_message()", ["parse_message"])


def test_a_word_that_is_alike_is_marked() -> None:
    assert marked("one\nthe parsre fails", "parser ") == ("the parsre fails", ["parsre"])


def test_without_words_the_first_line_is_shown() -> None:
    assert shown("\n\n first\nsecond", "tool:shell") == ("first", ())
    assert shown("", "x") == ("", ())


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
