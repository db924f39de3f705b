"""Which documents the index returns if there are more than wanted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from gemtui.search.documents import DocumentKind, SearchDocument
from gemtui.search.matching import engine_query
from gemtui.search.text_index import TextIndex, TextReader
from gemtui.sessions.catalog.query import parse_query

BEGAN = datetime(2026, 11, 1, tzinfo=UTC)
MOST = 5


def documents() -> Iterator[SearchDocument]:
    """Two a minute; the words are of all, of every third, of the oldest, and of a single one."""
    for number in range(400):
        words = ["tide"] + ["tides"] * (number % 2) + ["ebb"] * (number % 3 == 0)
        words += ["flood"] * (number < 50) + ["moon"] * (number == 7)
        yield SearchDocument(
            message=f"m{number}",
            block=0,
            order=number,
            kind=DocumentKind.USER,
            time=BEGAN + timedelta(minutes=number // 2),
            text=" ".join(words),
        )


@pytest.fixture(scope="module")
def reader() -> TextReader:
    index = TextIndex()
    index.add(1, documents())
    index.commit()
    return index.reader()


@pytest.mark.parametrize("text", ["t", "tides", "tide ebb ", "ebb ", "flood ", "moon", "tide -ebb"])
def test_of_many_matches_the_newest_are_returned_the_best_of_them_first(
    reader: TextReader, text: str
) -> None:
    query = engine_query(parse_query(text, now=BEGAN))
    matches = {match.order: match for match in reader.search(query, 400, rare=True)}
    oldest = sorted(match.time for match in matches.values())[-MOST:][0]
    newest = [match for match in matches.values() if match.time >= oldest]
    newest.sort(key=lambda match: (-match.score, match.order))
    for rare in (True, False):
        assert reader.search(query, MOST, rare=rare) == newest
