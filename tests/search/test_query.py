"""The query language: taken apart, never refused, completed."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemtui.sessions.catalog.query import Field, Narrowed, Query, Term, parse_query, query_completions
from tests.rows import each_row

NOW = datetime(2026, 11, 22, 14, 30, tzinfo=timezone(timedelta(hours=1)))


def parsed(text: str) -> Query:
    return parse_query(text, now=NOW)


def terms(text: str) -> list[Term]:
    return list(parsed(text).terms)


def test_words_phrases_and_exclusions() -> None:
    assert terms('parser "falls apart" -draft -"not this" ') == [
        Term(text="parser"),
        Term(text="falls apart", quoted=True),
        Term(text="draft", excluded=True),
        Term(text="not this", quoted=True, excluded=True),
    ]


def test_a_minus_that_is_part_of_a_symbol_excludes_nothing() -> None:
    assert terms("-> -= -🔑 -x ") == [
        Term(text="->"),
        Term(text="-="),
        Term(text="🔑", excluded=True),
        Term(text="x", excluded=True),
    ]


def test_the_last_word_may_go_on_while_it_is_typed() -> None:
    assert [term.prefix for term in terms("the pars")] == [False, True]
    assert [term.prefix for term in terms("the pars ")] == [False, False]
    assert [term.prefix for term in terms('the "pars"')] == [False, False]
    assert [term.prefix for term in terms("the -pars")] == [False, False]


def test_fields_narrow_down() -> None:
    query = parsed('Tool:shell -file:"my notes.md" is:failed in:ANSWER model:pro tag:x project:api')
    assert query.terms == ()
    assert query.note is None
    assert query.fields == (
        Narrowed(field=Field.TOOL, value="shell"),
        Narrowed(field=Field.FILE, value="my notes.md", excluded=True),
        Narrowed(field=Field.IS, value="failed"),
        Narrowed(field=Field.IN, value="answer"),
        Narrowed(field=Field.MODEL, value="pro"),
        Narrowed(field=Field.TAG, value="x"),
        Narrowed(field=Field.PROJECT, value="api"),
    )


@each_row(
    ("value", "expected"),
    [
        ("2026-11-20", datetime(2026, 11, 20, tzinfo=NOW.tzinfo)),
        ("2026-11", datetime(2026, 11, 1, tzinfo=NOW.tzinfo)),
        ("2025", datetime(2025, 1, 1, tzinfo=NOW.tzinfo)),
        ("today", datetime(2026, 11, 22, tzinfo=NOW.tzinfo)),
        ("Yesterday", datetime(2026, 11, 21, tzinfo=NOW.tzinfo)),
        ("6h", NOW - timedelta(hours=6)),
        ("2w", NOW - timedelta(weeks=2)),
    ],
)
def test_times(value: str, expected: datetime) -> None:
    assert parsed(f"before:{value}").before == expected
    assert parsed(f"x after:{value}").after == expected


def test_several_times_hold_together() -> None:
    query = parsed("after:2026-11-01 after:2026-11-10 before:2026-11-20 before:2026-11-15")
    assert query.after == datetime(2026, 11, 10, tzinfo=NOW.tzinfo)
    assert query.before == datetime(2026, 11, 15, tzinfo=NOW.tzinfo)


@each_row(
    ("text", "note"),
    [
        ('an "open quote', 'a closing quotation mark " is missing'),
        ("tool: x", "tool: needs a word after it"),
        ('file:"" x', "file: needs a value"),
        ("is:broken x", "is:broken is not valid; use failed, thought, pinned or archived"),
        ("in:title x", "in:title is not valid; use prompt, answer, thought or tool"),
        ("before:soon", "before:soon is not a valid date; examples: 2026-11-20, yesterday or 7d"),
        ("before:2026-13-40", "before:2026-13-40 is not a valid date; examples: 2026-11-20, yesterday or 7d"),
        ("after:9999y", "after:9999y is not a valid date; examples: 2026-11-20, yesterday or 7d"),
        ("-after:7d", "-after: can't be used to exclude"),
    ],
)
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


def test_what_is_no_text_is_searched_as_text() -> None:
    assert terms("a\udcff ") == [Term(text="a?")]


PIECES = st.sampled_from(
    ["tool:", "is:", "in:prompt", "before:", "-", '"', " ", "word", "é", ":", "after:7d", "--x", "\n"]
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
    assert [term.excluded for term in terms(" ".join(f"-{word}" for word in typed))] == ([True] * len(typed))


def test_fields_are_completed_as_they_are_typed() -> None:
    assert query_completions("fix pro", {}) == ["fix project:"]
    assert query_completions("fix -to", {}) == ["fix -tool:"]
    assert query_completions("fix i", {}) == ["fix is:", "fix in:"]
    assert query_completions("fix ", {}) == []
    assert query_completions("is:", {}) == ["is:failed", "is:thought", "is:pinned", "is:archived"]
    assert query_completions("in:t", {}) == ["in:thought", "in:tool"]
    assert query_completions("in:tool", {}) == []
    assert query_completions('"tool:', {}) == []
    known = {Field.PROJECT: ["api", "my notes"]}
    assert query_completions("x project:", known) == ["x project:api", 'x project:"my notes"']
    assert query_completions("x project:MY", known) == ['x project:"my notes"']
