"""Words that are alike, or inside of others, are found as a plain look at all words finds them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gemtui.search.search import Search
from gemtui.sessions.catalog.query import Term, parse_query
from tests.deep import some_of
from tests.rows import table
from tests.search.oracle import Said, everything, parts_of, words_of
from tests.search.test_oracle import NOW, indexed, written
from tests.sessions import logs, stores

WORDS: list[str] = table("search/words.json")["alike"]

said = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
session = st.lists(said, max_size=5).map(
    lambda texts: [logs.user(f"u{number}", text) for number, text in enumerate(texts)]
)
word = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from(WORDS).map(lambda word: word[1:] or word),
    st.sampled_from(WORDS).map(lambda word: word[:2] + word[3:4] + word[2:3] + word[4:]),
    st.text("parsetil", min_size=1, max_size=9),
)
query = st.lists(word, min_size=1, max_size=2).map(" ".join)


@settings(max_examples=some_of(200))
@given(
    sessions=st.lists(session, min_size=1, max_size=3),
    asked=query,
    prefix=st.booleans(),
    with_index=st.booleans(),
)
def test_likeness_is_that_of_a_plain_look(
    sessions: list[list[Any]], asked: str, prefix: bool, with_index: bool
) -> None:
    with written(sessions, legacy=False) as (home, paths):
        folder = home.parent / "search" / "index"
        if with_index:
            indexed(home, folder)
        parsed = parse_query(asked if prefix else f"{asked} ", now=NOW)
        with closing(Search(folder)) as search:
            snapshot = stores.read(home).sessions
            *_, results = search.find(parsed, snapshot, limit=10_000)
        found = {(hit.file.name, hit.message, hit.block) for hit in results.hits}
        expected, how = wanted([each for path in paths for each in everything(path)], parsed.terms)
        assert found == expected
        assert (results.note or "").startswith(how)


def wanted(blocks: list[Said], terms: tuple[Term, ...]) -> tuple[set[Any], str]:
    """What is to be found, and how the note on it begins."""

    def having(fits: Callable[[str, Term], bool]) -> set[Any]:
        return {
            (each.file, each.message, each.block)
            for each in blocks
            if not each.dropped and all(fits(each.text, term) for term in terms)
        }

    if same := having(is_same):
        return same, ""
    texts = [each.text for each in blocks if not each.dropped]
    missing = [term for term in terms if not any(is_same(text, term) for text in texts)]

    def loosely(fits: Callable[[str, Term], bool]) -> set[Any]:
        return having(
            lambda text, term: fits(text, term) if term in missing else is_same(text, term)
        )

    if missing and all(typos(term.text) for term in missing) and (similar := loosely(is_alike)):
        return similar, "no matches for “"
    if missing and all(len(term.text.encode()) >= 3 for term in missing):
        inside = loosely(is_inside)
        return inside, "no whole words match “" if inside else ""
    return set(), ""


def typos(word: str) -> int:
    """Words with digits, and of up to four letters, have no typing errors."""
    if len(word) < 5 or any(map(str.isdigit, word)):
        return 0
    return 1 if len(word) <= 7 else 2


def is_same(text: str, term: Term) -> bool:
    found, word = {*words_of(text), *parts_of(text)}, term.text.lower()
    return word in found or (term.prefix and any(each.startswith(word) for each in found))


def is_alike(text: str, term: Term) -> bool:
    if is_same(text, term):
        return True
    word = term.text.lower()
    most = typos(word)
    for each in {*words_of(text), *parts_of(text)} if most else ():
        beginnings = [each[:end] for end in range(len(each) + 1)] if term.prefix else [each]
        if any(distance(word, beginning) <= most for beginning in beginnings):
            return True
    return False


def is_inside(text: str, term: Term) -> bool:
    return is_same(text, term) or any(term.text.lower() in each for each in words_of(text))


def distance(one: str, other: str) -> int:
    """Letters to add, take, replace, or change with their neighbour, from one word to another."""
    rows = [list(range(len(other) + 1))]
    for at, letter in enumerate(one, 1):
        row = [at]
        for to, wanted in enumerate(other, 1):
            ways = [rows[-1][to] + 1, row[-1] + 1, rows[-1][to - 1] + (letter != wanted)]
            if at > 1 and to > 1 and one[at - 2] == wanted and letter == other[to - 2]:
                ways.append(rows[-2][to - 2] + 1)
            row.append(min(ways))
        rows.append(row)
    return rows[-1][-1]


def test_the_distance_counts_neighbours_that_change_places_as_one() -> None:
    words = ["parser", "praser", "prase", "phase", "", "a"]
    assert [distance(one, other) for one, other in pairwise(words)] == [1, 1, 1, 5, 1]
