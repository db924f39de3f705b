"""Searching in all that was said, as one types, and reading what is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemtui.ui.kit.clean_widgets import Input
from gemtui.ui.kit.row_list import RowList
from gemtui.ui.sessions.search_screen import SearchScreen
from tests.sessions import logs
from tests.sessions.stores import marker, session, talk, typed, uuid
from tests.ui.people import BOTH, NARROW, WIDE, Person, person


async def begin(me: Person) -> None:
    await me.sees("first question")
    await me.press("F")
    await me.on(SearchScreen)


async def test_a_few_letters_lead_to_the_words_in_a_transcript(store: Path) -> None:
    async with person(store, BOTH) as me:
        await begin(me)
        await me.does("'leaps", "Write a haiku file", "frog leaps in", "in 1 session")
        await me.press("enter")
        await me.until(lambda: me.view.found.total)
        assert me.chosen.title == "Write a haiku file"
        assert me.view.has_focus
        await me.sees("frog leaps in")


async def test_escape_leads_back_to_the_hits_and_then_out(store: Path) -> None:
    async with person(store, WIDE) as me:
        await begin(me)
        await me.does("'leaps", "in 1 session")
        await me.press("down", "enter")
        await me.until(lambda: me.view.found.total)
        await me.press("escape")
        await me.until(lambda: not me.view.found.query)
        await me.press("escape")
        await me.on(SearchScreen)
        await me.sees("in 1 session")
        assert me.app.screen.query_one(Input).value == "leaps"
        await me.press("escape", "escape")
        await me.until(lambda: not isinstance(me.app.screen, SearchScreen))
        assert me.rows.has_focus


async def test_this_project_or_all(store: Path) -> None:
    async with person(store, WIDE, project=Path("/home/dev/src/greeter")) as me:
        await begin(me)
        await me.does(
            "'leaps",
            "No matches in this project. Press ctrl+r to search all",
            "0 hits in 0 sessions",
        )
        await me.does("ctrl+r", "all projects", "in 1 session")


@pytest.mark.parametrize("key", ["F", "w"])
async def test_the_way_out_and_the_scope_are_told_at_80_columns(store: Path, key: str) -> None:
    async with person(store, NARROW, project=Path("/home/dev/src/greeter")) as me:
        await me.sees("first question")
        await me.press(key)
        await me.sees("^r scope  ^t", "esc back", "f1 keys")


async def test_without_a_project_there_is_no_scope_to_choose(store: Path) -> None:
    async with person(store, NARROW) as me:
        await begin(me)
        await me.sees("esc back", "is:failed in:prompt")
        assert "scope" not in me.text


async def test_fields_complete_and_narrow_down(store: Path) -> None:
    async with person(store, WIDE) as me:
        await begin(me)
        await me.type("leaps too")
        await me.press("tab")
        await me.until(lambda: me.app.screen.query_one(Input).value == "leaps tool:")
        await me.does("'write_file", "in 1 session")
        await me.does("ctrl+u 'leaps space 'tool:glob", "No matches")


async def test_a_project_of_windows_completes_by_its_name(store: Path) -> None:
    marker(store, "zebra", r"c:\users\ada\zebra")
    session(store, uuid(5), key="zebra")
    async with person(store, WIDE) as me:
        await begin(me)
        await me.type("project:zeb")
        await me.press("tab")
        await me.until(lambda: me.app.screen.query_one(Input).value == "project:zebra")


async def test_what_could_not_be_read_stands_apart_from_the_count(store: Path) -> None:
    async with person(store, BOTH) as me:
        await begin(me)
        await me.does(
            "'is:odd space 'leaps", "0 hits in 0 sessions  is:odd is not valid; use failed, thought"
        )


async def test_what_was_dropped_is_searched_apart(tmp_path: Path) -> None:
    home = tmp_path / ".gemini"
    records = [*talk(uuid(1), "first question"), logs.user("x", "quicksilver", 9)]
    session(home, uuid(1), [*records, {"$rewindTo": "x"}])
    async with person(home, WIDE) as me:
        await begin(me)
        await me.does("'quicksilver", "No matches. Press ctrl+t to search dropped messages.")
        await me.does("ctrl+t", "dropped messages", "in 1 session")
        await me.does(
            "space 'zzzz",
            "No matches in dropped messages. Press ctrl+t to search current messages.",
        )
        await me.press(*["backspace"] * 5)
        await me.sees("in 1 session")
        await me.does("enter", "quicksilver")


async def test_markup_and_escapes_in_hits_are_text(tmp_path: Path) -> None:
    home = tmp_path / ".gemini"
    evil = "needle [/x] [@click=app.exit]y[/] \x1b]0;title\x07"
    session(home, uuid(1), [*talk(uuid(1), "first question"), logs.gemini("g", evil, 9)])
    async with person(home, WIDE) as me:
        await begin(me)
        await me.does("'needle", "needle [/x] [@click=app.exit]y[/]")
        assert "\x1b" not in me.text


async def test_what_is_found_far_to_the_right_is_seen(tmp_path: Path) -> None:
    home = tmp_path / ".gemini"
    far = "a" * 70 + " the needle " + "b" * 90
    session(home, uuid(1), [*talk(uuid(1), "first question"), logs.gemini("g", far, 9)])
    async with person(home, NARROW) as me:
        await begin(me)
        await me.does("'needle", "a the needle bbb")


async def test_a_burst_of_keys_searches_for_all_of_them(store: Path) -> None:
    async with person(store, WIDE) as me:
        await me.sees("first question")
        await me.burst("Fleaps")
        await me.sees("in 1 session")
        rows = me.app.screen.query_one(RowList)
        assert rows.chosen is not None
        await me.burst("zzz\x1b")
        await me.until(lambda: me.app.screen.query_one(Input).value == "")


async def test_a_lost_prompt_is_found_and_opens_with_the_session_s_other_prompts(
    store: Path,
) -> None:
    typed(store, [("aaaa1111-2", "Where is the heliotrope?"), ("aaaa1111-2", "Is it far?")])
    async with person(store, BOTH) as me:
        await begin(me)
        await me.does("'heliotrope", "file is gone", "1 hit in 1 session")
        await me.does(
            "enter",
            "Prompts of aaaa1111-2, whose file is gone",
            "Where is the heliotrope?",
            "Is it far?",
        )
        await me.press("escape")
        await me.on(SearchScreen)
