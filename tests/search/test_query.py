"""The query language: taken apart, never refused, completed."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemtui.sessions.catalog.query import Field, Query, Term, parse_query, query_completions
from tests.rows import each_row, table

TABLES = table("search/query.json")
NOW = datetime(2026, 11, 22, 14, 30, tzinfo=timezone(timedelta(hours=1)))


def parsed(text: str) -> Query:
    return parse_query(text, now=NOW)


def terms(text: str) -> list[Term]:
    return list(parsed(text).terms)


@each_row("text, expected", TABLES["terms"])
def test_words_phrases_and_exclusions_are_told_apart(text: str, expected: list[list[Any]]) -> None:
    assert terms(text) == [
        Term(text=word, quoted=quoted, excluded=excluded) for word, quoted, excluded in expected
    ]


@each_row("text, prefixes", TABLES["prefixes"])
def test_the_last_word_may_go_on_while_it_is_typed(text: str, prefixes: list[bool]) -> None:
    assert [term.prefix for term in terms(text)] == prefixes


def test_fields_narrow_down() -> None:
    query = parsed('Tool:shell -file:"my notes.md" is:failed in:ANSWER model:pro tag:x project:api')
    assert query.terms == ()
    assert query.note is None
    assert [
        [narrowed.field, narrowed.value, narrowed.excluded] for narrowed in query.fields
    ] == TABLES["fields"]


@each_row("value, expected", TABLES["times"])
def test_times(value: str, expected: str) -> None:
    assert parsed(f"before:{value}").before == datetime.fromisoformat(expected)
    assert parsed(f"x after:{value}").after == datetime.fromisoformat(expected)


def test_several_times_hold_together() -> None:
    query = parsed("after:2026-11-01 after:2026-11-10 before:2026-11-20 before:2026-11-15")
    assert query.after == datetime(2026, 11, 10, tzinfo=NOW.tzinfo)
    assert query.before == datetime(2026, 11, 15, tzinfo=NOW.tzinfo)


@each_row("text, note", TABLES["malformed"])
def test_what_is_malformed_is_searched_as_words_and_says_so(text: str, note: str) -> None:
    query = parsed(text)
    assert query.note == f"{note} (searched as words)"
    assert [term.text for term in query.terms] == text.replace('"', " ").split()
    assert not query.fields


@pytest.mark.parametrize("text", ["https://example.org/x", "std::vector", "a:b", "12:30", "x:"])
def test_a_colon_alone_makes_no_field(text: str) -> None:
    assert parsed(text) == Query(text=text, terms=(Term(text=text, prefix=True),))


def test_a_mistyped_field_is_a_word_and_says_so() -> None:
    query = parsed("projct:api")
    assert [term.text for term in query.terms] == ["projct:api"]
    assert str(query.note).startswith("projct: is not a field (did you mean project:), so")


def test_of_a_very_long_query_the_beginning_is_searched() -> None:
    query = parsed("word " * 10_000)
    assert len(query.terms) == 200
    assert query.note == "the query is too long: only the first 1,000 characters are searched"


PIECES = st.sampled_from(
    [
        "tool:",
        "is:",
        "in:prompt",
        "before:",
        "-",
        '"',
        " ",
        "word",
        "é",
        ":",
        "after:7d",
        "--x",
        "\n",
    ]
)


@given(st.one_of(st.text(max_size=30), st.lists(PIECES, max_size=8).map("".join)))
def test_nothing_is_refused_and_nothing_is_lost(text: str) -> None:
    query = parsed(text)
    assert query.text == text
    said = "".join(
        [term.text for term in query.terms]
        + [each.field.value + each.value for each in query.fields]
        + [str(query.before), str(query.after)]
    ).lower()
    for letter in ("word", "é"):
        assert letter not in text or letter in said
    if '"' in text and text.count('"') % 2:
        assert query.note is not None
    query_completions(text, {})


@given(st.lists(st.from_regex(r"[a-z]{1,8}", fullmatch=True), max_size=5))
def test_plain_words_are_terms_in_order(typed: list[str]) -> None:
    assert [term.text for term in terms(" ".join(typed))] == typed
    assert [term.excluded for term in terms(" ".join(f"-{word}" for word in typed))] == (
        [True] * len(typed)
    )


@each_row("text, completions", TABLES["completions"])
def test_fields_are_completed_as_they_are_typed(text: str, completions: list[str]) -> None:
    assert query_completions(text, {}) == completions


@each_row("text, completions", TABLES["completed projects"])
def test_values_are_completed_from_what_there_is(text: str, completions: list[str]) -> None:
    assert query_completions(text, {Field.PROJECT: ["api", "my notes"]}) == completions
