"""Searching in all that was said, as one types, and reading what is found."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from gemtui.search.results import Results
from gemtui.search.search import Search
from gemtui.ui.kit.clean_widgets import Input
from gemtui.ui.kit.row_list import RowList
from gemtui.ui.sessions.screen import SessionsScreen
from gemtui.ui.sessions.search_screen import SearchScreen
from tests.patience import PATIENCE
from tests.sessions import logs
from tests.sessions.stores import marker, session, talk, typed, uuid
from tests.ui.people import BOTH, NARROW, Person, person


async def begin(me: Person) -> None:
    await me.sees("first question")
    await me.press("F")
    await me.on(SearchScreen)


async def test_a_few_letters_lead_to_the_words_in_a_transcript_and_escape_back_to_the_hits(
    store: Path,
) -> None:
    async with person(store, BOTH) as me:
        await begin(me)
        await me.does("'leaps", "Write a haiku file", "frog leaps in", "in 1 session")
        await me.press("enter")
        await me.until(lambda: me.view.found.total)
        assert me.chosen.title == "Write a haiku file"
        assert me.view.has_focus
        await me.sees("frog leaps in")
        await me.press("escape")
        await me.until(lambda: not me.view.found.query)
        await me.press("escape")
        screen = await me.on(SearchScreen)
        await me.sees("in 1 session")
        assert screen.query_one(Input).value == "leaps"
        await me.press("escape")
        await me.on(SessionsScreen)
        assert me.rows.has_focus

        await me.burst("Fleaps")
        await me.sees("in 1 session")
        rows = me.app.screen.query_one(RowList)
        assert rows.chosen is not None
        await me.burst("zzz\x1b")
        await me.on(SessionsScreen)
        await me.press("F")
        screen = await me.on(SearchScreen)
        assert screen.query_one(Input).value == "leapszzz"


async def test_without_its_engine_the_search_says_so_and_titles_are_found_all_the_same(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tantivy", None)
    async with person(store, NARROW) as me:
        await me.sees("first question")
        await me.press("F")
        await me.is_told("The search needs the package tantivy")
        await me.does("/ 'haiku", "Write a haiku file", "inside sessions: The search")


async def test_the_lists_search_finds_titles_and_below_them_hits_that_the_full_search_shares(
    store: Path,
) -> None:
    async with person(store, NARROW) as me:
        await me.sees("first question")
        await me.does(
            "/ 'haiku",
            "Write a haiku file",
            "Inside sessions",
            "inside sessions: 3 hits in 1 session",
        )
        await me.does(
            "ctrl+u 'leaps", "Inside sessions", "No session title matches “leaps”", "frog leaps"
        )
        await me.press("enter")
        await me.until(lambda: me.view.found.total)
        await me.does("escape escape", "Inside sessions")
        assert me.rows.has_focus
        await me.does("escape /", "leaps", "1 hit in 1 session")
        await me.press("ctrl+f")
        screen = await me.on(SearchScreen)
        assert screen.query_one(Input).value == "leaps"
        await me.press("escape")
        await me.on(SessionsScreen)
        await me.does("ctrl+u 'zqzq", "No session title matches “zqzq”", "0 hits in 0 sessions")


async def test_a_search_says_at_once_that_it_searches(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end, find = Event(), Search.find

    def slow(self: Search, *args: Any, **options: Any) -> Iterator[Results]:
        may_end.wait(PATIENCE)
        yield from find(self, *args, **options)

    async with person(store, BOTH) as me:
        await begin(me)
        monkeypatch.setattr(Search, "find", slow)
        await me.does("'leaps", "searching…")
        may_end.set()
        await me.sees("in 1 session")
        await me.lacks("searching")


async def test_this_project_or_all(store: Path) -> None:
    async with person(store, NARROW, project=Path("/home/dev/src/greeter")) as me:
        await begin(me)
        await me.sees("^r all projects  ^t rewound", "esc back", "f1 keys")
        await me.does(
            "'leaps",
            "No matches in this project. Press ctrl+r to search all",
            "0 hits in 0 sessions",
        )
        await me.does("ctrl+r", "all projects", "in 1 session")
        await me.press("escape", "escape")
        await me.does("w", "^r all projects  ^t", "esc back", "f1 keys")


async def test_fields_complete_and_narrow_down_and_a_wrong_one_is_told(store: Path) -> None:
    marker(store, "zebra", r"c:\users\ada\zebra")
    session(store, uuid(5), key="zebra")
    typed(store, [("aaaa1111-2", "Where is the heliotrope?"), ("aaaa1111-2", "Is it far?")])
    async with person(store, NARROW) as me:
        await begin(me)
        await me.sees("esc back", "is:failed in:prompt")
        assert "^r" not in me.text
        field = me.app.screen.query_one(Input)
        await me.type("leaps too")
        await me.press("tab")
        await me.until(lambda: field.value == "leaps tool:")
        await me.does("'write_file", "in 1 session")
        await me.does("ctrl+u 'leaps space 'tool:glob", "No matches")
        await me.press("ctrl+u")
        await me.type("project:zeb")
        await me.press("tab")
        await me.until(lambda: field.value == "project:zebra")
        wrong = "is:odd is not valid; use failed, thought"
        await me.does("ctrl+u 'is:odd space 'leaps", f"0 hits in 0 sessions  {wrong}")

        await me.does("ctrl+u 'heliotrope", "file is gone", "1 hit in 1 session")
        await me.does(
            "enter",
            "Prompts of aaaa1111-2, whose file is gone",
            "Where is the heliotrope?",
            "Is it far?",
        )
        await me.press("escape")
        await me.on(SearchScreen)


async def test_dropped_messages_are_searched_apart_and_hits_are_shown_as_text(
    tmp_path: Path,
) -> None:
    home = tmp_path / ".gemini"
    evil = "needle [/x] [@click=app.exit]y[/] \x1b]0;title\x07"
    far = "a" * 70 + " the pin " + "b" * 90
    records = [
        *talk(uuid(1), "first question"),
        logs.gemini("g", evil, 9),
        logs.gemini("h", far, 9),
        logs.user("x", "quicksilver", 9),
        {"$rewindTo": "x"},
    ]
    session(home, uuid(1), records)
    async with person(home, NARROW) as me:
        await begin(me)
        await me.does("'needle", "needle [/x] [@click=app.exit]y[/]")
        assert "\x1b" not in me.text
        await me.does("ctrl+u 'pin", "a the pin bbb")
        other = "Press ctrl+t to search"
        await me.does("ctrl+u 'quicksilver", f"No matches. {other} rewound or replaced messages.")
        await me.does("ctrl+t", "rewound or replaced messages", "in 1 session")
        await me.does("space 'zzzz", "No rewound or replaced message matches.")
        await me.press(*["backspace"] * 5)
        await me.sees("in 1 session")
        await me.does("enter", "quicksilver")
