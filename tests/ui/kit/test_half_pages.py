"""ctrl+d and ctrl+u: half a page, wherever pages turn; in a field that holds text they edit."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input, OptionList

from gemtui.sessions.catalog.entries import SessionRow
from gemtui.ui.kit.command_screen import CommandList
from gemtui.ui.kit.text_view import RawText
from tests.tools.bench.make_store import make_session, make_store
from tests.ui.people import NARROW, copy_store, person


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """A store of 60 sessions, the newest of them long."""
    make_store(tmp_path, 60)
    make_session(tmp_path / ".gemini" / "tmp" / "api" / "chats", size=400_000, seed=1_000)
    return tmp_path / ".gemini"


async def test_in_the_list(long: Path) -> None:
    async with person(long, NARROW) as me:
        first, page = me.chosen, me.rows.size.height
        await me.press("ctrl+d")
        listed = [row.key for row in me.rows.rows.rows if isinstance(row, SessionRow)]
        assert page // 2 - 3 <= listed.index(me.chosen.id) <= page // 2
        await me.press("ctrl+d", "ctrl+u", "ctrl+u")
        assert me.chosen == first


async def test_in_the_transcript_and_its_raw_record(long: Path) -> None:
    async with person(long, NARROW) as me:
        await me.press("enter")
        await me.until(lambda: me.view.total > 50)
        await me.press("home", "ctrl+d")
        assert me.view.page.top == (me.view.page.height - 1) // 2
        await me.press("ctrl+u")
        assert me.view.page.top == 0
        await me.press("v")
        await me.until(lambda: me.app.screen.query(RawText))
        raw = me.app.screen.query_one(RawText)
        await me.until(lambda: raw.virtual_size.height > raw.size.height)
        await me.press("ctrl+d")
        await me.until(lambda: raw.scroll_offset.y > 0)
        await me.press("ctrl+u")
        await me.until(lambda: raw.scroll_offset.y == 0)


async def test_in_the_help_where_nothing_is_searched(tmp_path: Path) -> None:
    async with person(copy_store(tmp_path), NARROW) as me:
        await me.does("question_mark", "Keys")
        keys, field = me.app.screen.query_one(CommandList), me.app.screen.query_one(Input)
        await me.press("ctrl+d")
        assert keys.cursor > 3
        await me.press("ctrl+u")
        assert keys.cursor == 0
        await me.press("pagedown", "pagedown", "pageup", *"half", "ctrl+u")
        assert field.value == ""
        await me.press(*"half", "home", "ctrl+d")
        assert field.value == "alf"


async def test_in_a_list_of_choices(long: Path) -> None:
    async with person(long, NARROW) as me:
        await me.press("e", "ctrl+d")
        assert me.app.screen.query_one(OptionList).highlighted == 3
        await me.press("ctrl+u", "ctrl+u")
        assert me.app.screen.query_one(OptionList).highlighted == 0
