"""A field means the same in the list's filter and in the full-text search."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemtui.search.search import Search
from gemtui.sessions.catalog.entries import SessionRow
from gemtui.sessions.catalog.listing import Listing, View
from gemtui.sessions.catalog.query import parse_query
from tests.deep import a_quarter_of, some_of
from tests.rows import each_row, table
from tests.search.test_oracle import NOW, indexed, message, written
from tests.sessions import logs, stores

TABLES = table("search/fields.json")
SEVERAL = st.lists(
    st.one_of(
        message, message, st.lists(message, max_size=3).map(lambda records: logs.restore(*records))
    ),
    max_size=6,
)
ASKED: list[str] = TABLES["asked"]


def both(home: Path, search: Search, asked: str) -> tuple[set[str], set[str]]:
    """The ids of the sessions with messages that the list and the search find."""
    sessions = stores.read(home).sessions
    listing = Listing(None)
    listing.replace_all(sessions)
    rows = listing.arrange(View(query=asked, everywhere=True)).rows
    *_, results = search.find(parse_query(asked, now=NOW), sessions, limit=10_000)
    shown = [row.entry.summary for row in rows if isinstance(row, SessionRow)]
    listed = {each.id for each in shown if each.messages}
    found = {group.session.id for group in results.groups if not group.session.hidden}
    return listed, found


MIXED, CHILD = 7, 8
"""The numbers of a session with several calls and of its subagent."""


def mixed(home: Path) -> None:
    """A session that reads a file, fails to write it and runs a command, and whose subagent edits
    another file.
    """
    records, id = table("search/stores.json", logs.built), stores.uuid(MIXED)
    path = stores.session(home, id, records["mixed"])
    logs.write(path.parent / id / f"{stores.uuid(CHILD)}.jsonl", records["its subagent"])


@pytest.fixture(params=["indexed", "direct"])
def searched(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    home = tmp_path / ".gemini"
    stores.marker(home, "proj", "/home/ada/proj")
    for number, made in enumerate(TABLES["calls"]):
        id = stores.uuid(number)
        call = {
            **logs.call("t1"),
            "name": "",
            **made,
            "status": "error" if number == 2 else "success",
        }
        stores.saying(home, id, logs.gemini("g1", "", toolCalls=[call]))
    mixed(home)
    folder = tmp_path / "search" / "x"
    if request.param == "indexed":
        indexed(home, folder)
    with closing(Search(folder)) as search:
        yield home, search


@each_row("asked, numbers", TABLES["fields"])
def test_the_list_and_the_search_find_the_same_sessions(
    searched: Any, asked: str, numbers: list[int]
) -> None:
    home, search = searched
    expected = {stores.uuid(number) for number in numbers}
    assert both(home, search, asked) == (expected, expected)


@settings(max_examples=some_of(100))
@given(sessions=st.lists(SEVERAL, min_size=1, max_size=3), asked=st.sampled_from(ASKED))
def test_in_any_store_a_field_finds_the_same_sessions(
    sessions: list[list[Any]], asked: str
) -> None:
    with written(sessions, legacy=False) as (home, _), closing(Search(None)) as search:
        listed, found = both(home, search, asked)
        assert listed == found


@pytest.mark.parametrize("with_index", [True, False])
@pytest.mark.parametrize(
    "store",
    a_quarter_of(sorted(stores.DATA.glob("**/.gemini"))),
    ids=lambda store: store.parent.name,
)
def test_in_recorded_stores_the_list_and_the_search_find_the_same_sessions(
    store: Path, with_index: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "search" / "x"
    if with_index:
        indexed(store, folder)
    with closing(Search(folder)) as search:
        for asked in (
            *ASKED,
            "file:py",
            "file:readme tool:read",
            "file:py tool:edit",
            "-file:py",
            "tool:agent",
        ):
            listed, found = both(store, search, asked)
            assert listed == found, asked
