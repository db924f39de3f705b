"""Several sessions selected, and exported."""

from __future__ import annotations

import json
from pathlib import Path

from gemtui.config import Config
from gemtui.sessions.catalog.listing import Heading
from gemtui.ui.kit.text_view import RawText
from tests.ui.people import NARROW, keys, person

# --- selecting ---------------------------------------------------------------------------------


async def test_what_is_selected_is_marked_and_counted_and_esc_ends_it(store: Path) -> None:
    async with person(store, NARROW) as me:
        await me.does("space space", "◆ first question", "◆ Write a haiku file", "2 selected")
        await me.sees("e export, d delete, ^p compare")
        await me.does("up space", "1 selected")
        await me.does("slash 'greeter down", "1 selected")
        await me.press("slash")
        await me.type(" first")
        await me.press("down", "escape")
        await me.lacks("selected")
        assert me.rows.view.query == "greeter first"
        await me.press("escape")
        assert me.rows.view.query == ""


async def test_selections_grow_by_hidden_ones_by_spans_and_by_projects(store: Path) -> None:
    async with person(store, NARROW) as me:
        await me.does("space space slash 'haiku", "2 selected, 1 not listed")
        await me.press("escape", "s", "s", "ctrl+r")
        await me.until(lambda: me.has_read)
        await me.sees("2 selected")
        titles = {session.title for session in me.rows.selected}
        assert titles == {"first question", "Write a haiku file"}

        await me.does("escape home space down down down v", "5 selected")
        await me.does("escape end v home v", f"{me.rows.rows.shown} selected")

        await me.press("escape", "g", "home")
        [first, *_] = me.rows.rows.rows
        assert isinstance(first, Heading)
        await me.does("space", f"{first.count} selected")
        await me.press("home", "space")
        await me.lacks("selected")


async def test_a_selection_has_an_ascii_sign(store: Path) -> None:
    async with person(store, NARROW, config=Config(ascii=True)) as me:
        await me.does("space", "# first question", "1 selected")


# --- exporting ---------------------------------------------------------------------------------


async def test_export_of_several_writes_a_file_each_and_overwrites_none(store: Path) -> None:
    mine = Path("out") / "Write-a-haiku-file-63a18d40.json"
    mine.parent.mkdir()
    mine.write_text("mine")
    async with person(store, NARROW) as me:
        await me.does("space space e", "2 sessions", "Folder in", "gemini-sessions")
        await me.press("down", "down", "down", "tab", "ctrl+u", *"out", "enter")
        await me.is_told("Exported 2 files to")
    assert mine.read_text() == "mine"
    again = mine.with_name("Write-a-haiku-file-63a18d40-2.json")
    others = sorted(set(mine.parent.iterdir()) - {mine, again})
    assert json.loads(again.read_text())["session"]["title"] == "Write a haiku file"
    assert [json.loads(path.read_text())["session"]["title"] for path in others] == [
        "first question"
    ]


async def test_one_that_can_not_be_written_stops_no_others_and_none_goes_into_the_store(
    store: Path,
) -> None:
    async with person(store, NARROW) as me:
        await me.does("space space e", "2 sessions", "gemini-sessions")
        await me.press("tab", "ctrl+u", *str(store / "tmp"), "enter")
        await me.sees("That folder belongs to Gemini CLI")
        me.rows.selected[0].path.unlink()
        await me.press(*keys("ctrl+u 'gemini-sessions enter"))
        await me.until(lambda: me.app.screen.query(RawText))
        await me.sees("1 session could not be exported", "first question")
    assert [path.name for path in Path("gemini-sessions").iterdir()] == [
        "Write-a-haiku-file-63a18d40.md"
    ]


async def test_two_sessions_are_compared_by_facts_prompts_and_what_they_wrote(store: Path) -> None:
    async with person(store, NARROW) as me:
        await me.does("space space ctrl+p 'compare enter", "Two sessions")
        await me.sees("prompts", "cost", "Prompts of A", "first question", "Files")
        await me.press("escape", "escape")
        await me.does("space ctrl+p 'compare enter", "Select two sessions to compare")
