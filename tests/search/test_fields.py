"""A field means the same in the list's filter and in the full-text search."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemtui.search.search import Search
from gemtui.sessions.catalog.listing import Listing, SessionRow, View
from gemtui.sessions.catalog.query import parse_query
from tests.deep import some_of
from tests.search.test_oracle import NOW, indexed, message, written
from tests.sessions import logs, stores

SEVERAL = st.lists(
    st.one_of(message, message, st.lists(message, max_size=3).map(lambda records: logs.restore(*records))), max_size=6
)
"""Without replies to calls that are gone: a summary does not count those."""


def both(home: Path, search: Search, asked: str) -> tuple[set[str], set[str]]:
    """The ids of the sessions that the list and the search find."""
    sessions = stores.read(home).sessions
    listing = Listing(None)
    listing.replace_all(sessions)
    rows = listing.arrange(View(query=asked, everywhere=True, hidden=True)).rows
    *_, results = search.find(parse_query(asked, now=NOW), sessions, limit=10_000)
    listed = {row.entry.summary.id for row in rows if isinstance(row, SessionRow) and not row.entry.summary.is_copy}
    return listed, {group.session.id for group in results.groups}


CALLS: tuple[dict[str, Any], ...] = (
    {"name": "replace", "args": {"file_path": "src/message_list.py", "old_string": "a", "new_string": "b"}},
    {"name": "write_file", "args": {"file_path": "/home/ada/proj/Été/NOTES.md", "content": "x"}},
    {"name": "run_shell_command", "args": {"command": "ls"}},
    {"name": "mcp_git_hub_listIssues", "args": {"owner": "ada"}},
    {"name": "read_background_output", "args": {"pid": 1}},
    {"args": {"x": 1}},
)
"""A session each."""


@pytest.fixture(params=["indexed", "direct"])
def searched(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    home = tmp_path / ".gemini"
    stores.marker(home, "proj", "/home/ada/proj")
    for number, made in enumerate(CALLS):
        id = stores.uuid(number)
        call = {**logs.call("t1"), "name": "", **made, "status": "error" if number == 2 else "success"}
        stores.session(home, id, [logs.header(id), logs.gemini("g1", "", toolCalls=[call])])
    folder = tmp_path / "search" / "x"
    if request.param == "indexed":
        indexed(home, folder)
    with closing(Search(folder)) as search:
        yield home, search


@pytest.mark.parametrize(
    ("asked", "numbers"),
    [
        ("tool:edit", [0]),
        ("tool:replace", [0]),
        ("tool:write", [1]),
        ("tool:file", [1]),
        ("tool:shell", [2, 4]),
        ("tool:shell_command", [2]),
        ("tool:SHELL", [2, 4]),
        ("tool:ell", []),
        ("tool:back", [4]),
        ("tool:mcp", [3]),
        ("tool:git_hub", [3]),
        ("tool:issues", []),
        ("tool:listissues", [3]),
        ("tool:unknown", [5]),
        ("tool:_", []),
        ('tool:"shell command"', [2]),
        ("file:message", [0]),
        ("file:src/mess", [0]),
        ("file:list.py", [0]),
        ("file:.py", [0]),
        ("file:essage", []),
        ("file:été/notes", [1]),
        ("file:ÉTÉ/notes", [1]),
        ("file:ete", []),
        ("file:/", []),
        ("file:home/ada", [1]),
        ("is:failed", [2]),
        ("tool:shell is:failed", [2]),
        ("tool:edit file:notes", []),
        ("model:gemini-x tool:edit", [0]),
        ("project:PROJ tool:edit", [0]),
    ],
)
def test_the_list_and_the_search_find_the_same_sessions(searched: Any, asked: str, numbers: list[int]) -> None:
    home, search = searched
    expected = {stores.uuid(number) for number in numbers}
    assert both(home, search, asked) == (expected, expected)


@settings(max_examples=some_of(100))
@given(
    sessions=st.lists(SEVERAL, min_size=1, max_size=3),
    asked=st.sampled_from(("tool:shell", "tool:run", "tool:read", "tool:other", "is:failed", "model:x")),
)
def test_in_any_store_a_field_finds_the_same_sessions(sessions: list[list[Any]], asked: str) -> None:
    with written(sessions, legacy=False) as (home, _), closing(Search(None)) as search:
        listed, found = both(home, search, asked)
        assert listed == found
