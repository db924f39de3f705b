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
ASKED = (
    "tool:shell",
    "tool:run",
    "tool:read",
    "tool:other",
    "is:failed",
    "model:x",
    "file:a",
    "file:a.py is:failed",
    "tool:shell is:failed",
    "tool:shell -is:failed",
    "is:failed !tool:shell",
    "!tool:shell",
    "-is:failed",
)


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


CALLS: tuple[dict[str, Any], ...] = (
    {"name": "replace", "args": {"file_path": "src/message_list.py", "old_string": "a", "new_string": "b"}},
    {"name": "write_file", "args": {"file_path": "/home/ada/proj/Été/NOTES.md", "content": "x"}},
    {"name": "run_shell_command", "args": {"command": "ls"}},
    {"name": "mcp_git_hub_listIssues", "args": {"owner": "ada"}},
    {"name": "read_background_output", "args": {"pid": 1}},
    {"args": {"x": 1}},
    {"name": "read_many_files", "args": {"paths": ["docs/a.md", "docs/b.md"]}},
)
"""A session each."""
MIXED, CHILD = 7, 8
"""The numbers of a session with several calls and of its subagent."""


def mixed(home: Path) -> None:
    """A session that reads a file, fails to write it and runs a command, and whose subagent edits another file."""
    calls = [
        logs.call("t1", args={"file_path": "lib/core.py"}),
        logs.call("t2", name="write_file", args={"file_path": "lib/core.py"}, status="error"),
        logs.call("t3", name="run_shell_command", args={"command": "make"}),
    ]
    edits = [logs.call("t4", name="replace", args={"file_path": "lib/helper.py"}, status="error")]
    id, child = stores.uuid(MIXED), stores.uuid(CHILD)
    attached = "--- Content from referenced files ---"
    prompt = logs.user("u1", "Look at it")
    texts = (attached, "Content from @lib/plan.txt:", "x", "--- End of content ---")
    prompt["content"] += [{"text": text} for text in texts]
    stores.session(home, id, [logs.header(id), prompt, logs.gemini("g1", "", toolCalls=calls)])
    records = [logs.header(child, kind="subagent"), logs.gemini("g1", "", toolCalls=edits)]
    logs.write(home / "tmp" / "proj" / "chats" / id / f"{child}.jsonl", records)


@pytest.fixture(params=["indexed", "direct"])
def searched(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    home = tmp_path / ".gemini"
    stores.marker(home, "proj", "/home/ada/proj")
    for number, made in enumerate(CALLS):
        id = stores.uuid(number)
        call = {**logs.call("t1"), "name": "", **made, "status": "error" if number == 2 else "success"}
        stores.session(home, id, [logs.header(id), logs.gemini("g1", "", toolCalls=[call])])
    mixed(home)
    folder = tmp_path / "search" / "x"
    if request.param == "indexed":
        indexed(home, folder)
    with closing(Search(folder)) as search:
        yield home, search


@pytest.mark.parametrize(
    ("asked", "numbers"),
    [
        ("tool:edit", [0, 7]),
        ("tool:replace", [0, 7]),
        ("tool:write", [1, 7]),
        ("tool:file", [1, 6, 7]),
        ("tool:shell", [2, 4, 7]),
        ("tool:shell_command", [2, 7]),
        ("tool:SHELL", [2, 4, 7]),
        ("tool:ell", []),
        ("tool:back", [4]),
        ("tool:mcp", [3]),
        ("tool:git_hub", [3]),
        ("tool:issues", []),
        ("tool:listissues", [3]),
        ("tool:unknown", [5]),
        ("tool:_", []),
        ('tool:"shell command"', [2, 7]),
        ("file:message", [0]),
        ("file:src/mess", [0]),
        ("file:list.py", [0]),
        ("file:.py", [0, 7]),
        ("file:essage", []),
        ("file:été/notes", [1]),
        ("file:ÉTÉ/notes", [1]),
        ("file:ete", []),
        ("file:/", []),
        ("file:home/ada", [1]),
        ("is:failed", [2, 7]),
        ("tool:shell is:failed", [2]),
        ("tool:edit file:notes", []),
        ("model:gemini-x tool:edit", [0, 7]),
        ("project:PROJ tool:edit", [0, 7]),
        ("file:core", [7]),
        ("file:core tool:read", [7]),
        ("file:core tool:read is:failed", []),
        ("file:core tool:read -is:failed", [7]),
        ("file:core tool:write is:failed", [7]),
        ("file:core is:failed", [7]),
        ("file:core tool:edit", []),
        ("file:core file:helper", []),
        ("file:helper", [7]),
        ("file:helper is:failed", [7]),
        ("file:helper -tool:edit", []),
        ("file:helper !tool:write", [7]),
        ("file:core -tool:read -tool:write", []),
        ("file:docs/b", [6]),
        ("file:docs/a file:docs/b", [6]),
        ("file:plan.txt", [7]),
        ("file:plan.txt -tool:read", [7]),
        ("file:plan.txt tool:read", []),
        ("is:failed -tool:shell", [7]),
        ("is:failed !tool:edit !tool:write", [2]),
        ("!tool:shell", [0, 1, 3, 5, 6]),
        ("-tool:edit -tool:shell", [1, 3, 5, 6]),
        ("-file:.py", [1, 2, 3, 4, 5, 6]),
        ("-is:failed", [0, 1, 3, 4, 5, 6]),
        ("-is:failed -tool:mcp project:proj", [0, 1, 4, 5, 6]),
    ],
)
def test_the_list_and_the_search_find_the_same_sessions(searched: Any, asked: str, numbers: list[int]) -> None:
    home, search = searched
    expected = {stores.uuid(number) for number in numbers}
    assert both(home, search, asked) == (expected, expected)


@settings(max_examples=some_of(100))
@given(sessions=st.lists(SEVERAL, min_size=1, max_size=3), asked=st.sampled_from(ASKED))
def test_in_any_store_a_field_finds_the_same_sessions(sessions: list[list[Any]], asked: str) -> None:
    with written(sessions, legacy=False) as (home, _), closing(Search(None)) as search:
        listed, found = both(home, search, asked)
        assert listed == found


@pytest.mark.parametrize("with_index", [True, False])
@pytest.mark.parametrize("store", sorted(stores.DATA.glob("**/.gemini")), ids=lambda store: store.parent.name)
def test_in_recorded_stores_the_list_and_the_search_find_the_same_sessions(
    store: Path, with_index: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "search" / "x"
    if with_index:
        indexed(store, folder)
    with closing(Search(folder)) as search:
        for asked in (*ASKED, "file:py", "file:readme tool:read", "file:py tool:edit", "-file:py", "tool:agent"):
            listed, found = both(store, search, asked)
            assert listed == found, asked
