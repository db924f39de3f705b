"""Several sessions selected: exported, deleted, brought back."""

from __future__ import annotations

import asyncio
import json
import shutil
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from gemtui.agent.gemini import UnguardedAdapter
from gemtui.agent.options import AgentOptions
from gemtui.config import Config
from gemtui.sessions.catalog.listing import Heading, SessionRow
from gemtui.sessions.catalog.summary import Flag
from gemtui.ui.kit.text_view import RawText
from tests.fake_cli import INIT, FakeCli
from tests.sessions.stores import append
from tests.ui.people import BOTH, NARROW, WIDE, Person, copy_store, person


@pytest.fixture
def trash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home trash of freedesktop.org, in the test's own folder."""
    from send2trash import plat_other  # type: ignore[import-untyped]

    folder = tmp_path / "data" / "Trash"
    monkeypatch.setattr(plat_other, "HOMETRASH_B", bytes(folder))
    monkeypatch.setattr(plat_other, "XDG_DATA_HOME", bytes(folder.parent))
    monkeypatch.setattr("send2trash.send2trash", plat_other.send2trash)
    (tmp_path / "user").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    return folder


def content(store: Path) -> dict[str, tuple[str, int]]:
    """Every file, with what is in it and its time."""
    return {
        str(path): (sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in store.rglob("*")
        if path.is_file()
    }


async def said(me: Person, words: str) -> None:
    await me.is_told(words)


async def confirmed(me: Person, question: str) -> None:
    await me.does("d", question)
    await me.press("y")


# --- selecting ---------------------------------------------------------------------------------


async def test_what_is_selected_is_marked_and_counted_and_esc_ends_it(store: Path) -> None:
    async with person(store, NARROW) as me:
        await me.does("space space", "◆ first question", "◆ Write a haiku file", "2 selected")
        await me.does("up space", "1 selected")
        await me.does("slash 'greeter down", "1 selected")
        await me.press("slash")
        await me.type(" first")
        await me.press("down", "escape")
        await me.lacks("selected")
        assert me.rows.view.query == "greeter first"
        await me.press("escape")
        assert me.rows.view.query == ""


async def test_selected_sessions_that_are_not_listed_are_said_and_kept(store: Path) -> None:
    async with person(store, NARROW) as me:
        await me.does("space space slash 'haiku", "2 selected, 1 not listed")
        await me.press("escape", "s", "s", "ctrl+r")
        await me.until(lambda: me.has_read)
        await me.sees("2 selected")
        assert {each.title for each in me.rows.selected} == {"first question", "Write a haiku file"}


async def test_v_selects_all_from_the_last_selected_one(store: Path) -> None:
    async with person(store, NARROW) as me:
        await me.does("space down down down v", "5 selected")
        await me.does("escape end v home v", f"{me.rows.rows.shown} selected")


async def test_on_the_heading_of_a_project_all_below_it_are_selected(store: Path) -> None:
    async with person(store, NARROW) as me:
        await me.press("g", "home")
        [first, *_] = me.rows.rows.rows
        assert isinstance(first, Heading)
        await me.does("space", f"{first.count} selected")
        await me.press("home", "space")
        await me.lacks("selected")


async def test_a_selection_has_an_ascii_sign(store: Path) -> None:
    async with person(store, NARROW, config=Config(ascii=True)) as me:
        await me.press("space")
        await me.sees("# first question", "1 selected")


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


async def test_a_session_that_can_not_be_written_does_not_stop_the_others(store: Path) -> None:
    async with person(store, NARROW) as me:
        await me.press("space", "space")
        me.rows.selected[0].path.unlink()
        await me.does("e", "2 sessions", "gemini-sessions")
        await me.press("enter")
        await me.until(lambda: me.app.screen.query(RawText))
        await me.sees("1 session could not be exported", "first question")
    assert [path.name for path in Path("gemini-sessions").iterdir()] == [
        "Write-a-haiku-file-63a18d40.md"
    ]


async def test_several_are_not_written_into_the_store(store: Path) -> None:
    async with person(store, NARROW) as me:
        await me.does("space space e", "gemini-sessions")
        await me.press("tab", "ctrl+u", *str(store / "tmp"), "enter")
        await me.sees("That folder belongs to Gemini CLI")


# --- deleting and bringing back ----------------------------------------------------------------


async def test_several_are_deleted_at_once_and_brought_back_at_once(
    store: Path, trash: Path
) -> None:
    before = content(store)
    async with person(store, BOTH) as me:
        await me.press("space", "down", "space")
        gone = me.rows.selected
        await me.does("d", "Delete 2 sessions?", *(each.title for each in gone))
        await me.sees(*(path.name for each in gone for path in each.files))
        await me.press("y")
        await me.is_told("2 sessions: ")
        await me.is_told("u to undo")
        await me.until(lambda: not any(each.path.exists() for each in gone))
        await me.lacks("selected")
        await me.press("u")
        await me.is_told("Restored 2 sessions")
        assert content(store) == before
        await me.until(lambda: me.chosen.id == gone[-1].id)
    assert list((trash / "files").iterdir()) == []


async def test_deletions_are_undone_one_after_the_other(store: Path, trash: Path) -> None:
    before = content(store)
    async with person(store, NARROW) as me:
        first = me.chosen
        await confirmed(me, "Delete this session?")
        await me.is_told("moved to the trash, u to undo")
        await me.until(lambda: me.chosen.id != first.id)
        second = me.chosen
        await confirmed(me, "Delete this session?")
        await me.until(lambda: me.chosen.id != second.id)
        await me.press("u")
        await me.is_told(f"Restored: {second.title}")
        assert second.path.exists()
        assert not first.path.exists()
        await me.press("u")
        await me.is_told(f"Restored: {first.title}")
        assert content(store) == before
        await me.press("u")
        await me.is_told("nothing to undo")
        assert content(store) == before


async def test_what_came_meanwhile_is_not_written_over(store: Path, trash: Path) -> None:
    async with person(store, WIDE) as me:
        gone = me.chosen
        await confirmed(me, "Delete this session?")
        await me.is_told("u to undo")
        gone.path.write_text("newer")
        await me.does("u", "not restored", "another file is now in its place", "Trash")
        assert gone.path.read_text() == "newer"
        gone.path.unlink()
        await me.press("escape", "u")
        await me.is_told("Restored: ")
        assert gone.path.stat().st_size > 100


async def test_an_emptied_trash_is_said(store: Path, trash: Path) -> None:
    async with person(store, WIDE) as me:
        await confirmed(me, "Delete this session?")
        await me.is_told("u to undo")
        shutil.rmtree(trash)
        await me.does("u", "not restored", "no longer in the trash")


async def test_a_live_one_of_several_is_named(store: Path, trash: Path) -> None:
    async with person(store, WIDE) as me:
        append(me.chosen.path, {"$set": {"lastUpdated": datetime.now(UTC).isoformat()}})
        await me.until(lambda: Flag.LIVE in me.chosen.flags)
        await me.does("home space space d", "Delete 2 sessions?", "It is still being written")


async def test_where_the_trash_takes_nothing_several_are_asked_about_again(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_trash(path: Path) -> None:
        raise OSError("there is no trash")

    monkeypatch.setattr("send2trash.send2trash", no_trash)
    async with person(store, NARROW) as me:
        await me.press("space", "space")
        gone = me.rows.selected
        await confirmed(me, "Delete 2 sessions?")
        await me.sees("Delete 2 sessions permanently?", "The system reported: there is no trash")
        assert all(each.path.exists() for each in gone)
        await me.press("D")
        await me.is_told("deleted permanently")
        assert not any(each.path.exists() for each in gone)
        assert not any("undoes" in each for each in me.said)


async def test_a_subagent_goes_with_its_session_though_both_are_selected(
    store: Path, trash: Path
) -> None:
    before = content(store)
    async with person(store, NARROW) as me:
        await me.press("full_stop")
        rows = [row for row in me.rows.rows.rows if isinstance(row, SessionRow)]
        child = next(row.entry.summary for row in rows if row.entry.summary.parent)
        [parent] = [row.entry.summary for row in rows if row.key == child.parent]
        for each in (child, parent):
            assert me.rows.highlight(each)
            await me.press("space")
        assert {each.id for each in me.rows.selected} == {child.id, parent.id}
        await confirmed(me, "Delete this session?")
        await me.is_told("u to undo")
        await me.press("u")
        await me.is_told("Restored: ")
    assert content(store) == before


async def test_the_last_session_deleted_comes_back_from_the_empty_store(
    tmp_path: Path, trash: Path
) -> None:
    home = copy_store(tmp_path)
    for path in (*home.glob("tmp/*/chats/**/*.json*"), *home.glob("tmp/*/checkpoint-*")):
        if "9babadd1" not in path.name:
            path.unlink()
    async with person(home, NARROW) as me:
        await me.press("tab")
        await confirmed(me, "Delete this session?")
        await me.sees("No sessions yet.")
        await me.does("u", "Add a docstring to Stock", "Restored")


async def test_one_of_several_in_which_a_run_goes_on_is_left_and_said(
    store: Path, trash: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    fake_cli(f"print:{INIT}", "wait")
    async with person(store, WIDE) as me:
        busy = me.chosen
        await me.press("space", "space")
        [idle] = [each for each in me.rows.selected if each.id != busy.id]
        options = AgentOptions(cwd=tmp_path, resume=busy.id)
        run = await asyncio.to_thread(UnguardedAdapter().start, "go on", options)
        await me.does("d", "Delete this session?", idle.title, f"{busy.title}: A run is using")
        await me.does("y", "1 problem while deleting 2 sessions", "A run is using this session")
        assert busy.path.exists()
        assert not idle.path.exists()
        run.abort()
        await run.wait()
