"""What a word is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gemtui.search.words import LONGEST, ends_with_symbol, needed_symbols, parts, symbols, words
from tests.rows import each_row, table

TABLES = table("search/words.json")


@each_row("text, expected", TABLES["words"])
def test_words_are_runs_of_letters_and_digits(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@each_row("text, expected", TABLES["parts"])
def test_names_have_parts(text: str, expected: list[str]) -> None:
    assert sorted(parts(text).split()) == expected


@each_row("text, needed", TABLES["symbols"])
def test_a_text_that_holds_a_term_has_the_pieces_that_the_term_needs(
    text: str, needed: list[str]
) -> None:
    assert sorted(needed_symbols(text)) == needed
    for around in (text, f"see {text}, so", f"({text})", text.upper()):
        assert symbols(around).keys() >= {*needed}
    assert symbols("one C, i++").keys().isdisjoint({"c++", "c+"})


def test_a_text_of_one_long_word_or_run_is_read_once() -> None:
    """If every part of it were tried with every other, the test would reach its time limit."""
    assert symbols("+" * 1_000_000).keys() == {"+", "++", "+++"}
    assert symbols("a" * 50_000_000).keys() == set()
    assert f"{'a' * 255}++" in symbols("a" * 1_000 + "++")


def test_a_word_before_a_symbol_is_complete_but_not_before_a_separator() -> None:
    assert list(map(ends_with_symbol, ["C++", "🔑", "foo", "foo_", "foo.", ""])) == [
        True,
        True,
        *[False] * 4,
    ]


def test_data_is_no_word() -> None:
    assert words("a " + "b" * LONGEST + " " + "c" * (LONGEST + 1)) == ["a", "b" * LONGEST]
    assert words("本" * 400) == ["本" * 400]
    assert parts("x" * LONGEST + "Y") == ""


@given(st.lists(st.from_regex(r"[a-z]{1,8}|[0-9]{1,4}", fullmatch=True), min_size=2, max_size=5))
def test_the_parts_of_a_name_are_those_it_was_made_of(made_of: list[str]) -> None:
    humps = [part.capitalize() for part in made_of]
    name = "".join([made_of[0], *humps[1:]])
    found = "".join(parts(name).split())
    assert set(found) <= set(name.lower())
    lettered = [part for part in made_of if part.isalpha()]
    if len(lettered) == len(made_of) and all(len(part) > 1 for part in made_of):
        assert parts(name).split() == list(dict.fromkeys(made_of))
