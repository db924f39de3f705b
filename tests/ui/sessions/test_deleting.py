"""Sessions deleted, one or several, and brought back."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from gemtui.agent.adapter import UnguardedAdapter
from gemtui.agent.options import AgentOptions
from gemtui.sessions.catalog.entries import SessionRow
from gemtui.sessions.catalog.summary import Flag, Summary
from tests.fake_cli import INIT, FakeCli
from tests.sessions.stores import append
from tests.ui.people import BOTH, NARROW, WIDE, Person, copy_store, person

ONE = "Delete this session?"


def content(store: Path) -> dict[str, tuple[str, int]]:
    """Every file, with what is in it and its time."""
    return {
        str(path): (sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in store.rglob("*")
        if path.is_file()
    }


def gone(sessions: Iterable[Summary]) -> bool:
    return not any(path.exists() for session in sessions for path in session.files)


async def confirmed(me: Person, question: str = ONE) -> None:
    await me.does("d", question)
    await me.press("y")


async def test_a_deletion_asks_first_and_several_are_undone_one_after_the_other(
    store: Path, trash: Path
) -> None:
    before = content(store)
    async with person(store, WIDE) as me:
        await me.press("down")
        first = me.chosen
        for answer in ("enter", "n"):
            await me.does("d", ONE, first.title, "to the system's trash")
            await me.sees(*(path.name for path in first.files))
            await me.press(answer)
            assert content(store) == before
        await confirmed(me)
        await me.is_told(f"Deleted “{first.title}” – u to undo")
        await me.until(lambda: me.chosen != first)
        assert content(store) == {
            name: file for name, file in before.items() if Path(name) not in first.files
        }
        assert {path.name for path in (trash / "files").iterdir()} == {
            path.name for path in first.files
        }

        second = me.chosen
        await me.press("enter")
        await me.until(lambda: me.view.has_focus and me.view.total)
        await me.does("d", ONE, second.title)
        await me.press("y")
        await me.until(lambda: me.rows.has_focus)
        assert gone([second])
        await me.press("u")
        await me.is_told(f"Restored: {second.title}")
        assert gone([first])
        assert not gone([second])
        await me.press("u")
        await me.is_told(f"Restored: {first.title}")
        assert content(store) == before
        await me.press("u")
        await me.is_told("nothing to undo")
        assert content(store) == before


async def test_several_are_deleted_at_once_and_brought_back_at_once(
    store: Path, trash: Path
) -> None:
    before = content(store)
    async with person(store, BOTH) as me:
        await me.press("space", "down", "space")
        chosen = me.rows.selected
        await me.does("d", "Delete 2 sessions?", *(session.title for session in chosen))
        await me.sees(*(path.name for session in chosen for path in session.files))
        await me.press("y")
        await me.is_told("Deleted 2 sessions – ")
        await me.is_told("u to undo")
        await me.until(lambda: gone(chosen))
        await me.lacks("selected")
        await me.press("u")
        await me.is_told("Restored 2 sessions")
        assert content(store) == before
        await me.until(lambda: me.chosen.id == chosen[-1].id)
        assert list((trash / "files").iterdir()) == []

        await me.press("escape", "full_stop")
        rows = [row for row in me.rows.rows.rows if isinstance(row, SessionRow)]
        child = next(row.entry.summary for row in rows if row.entry.summary.parent)
        [parent] = [row.entry.summary for row in rows if row.key == child.parent]
        for session in (child, parent):
            assert me.rows.highlight(session)
            await me.press("space")
        assert {session.id for session in me.rows.selected} == {child.id, parent.id}
        await confirmed(me)  # the subagent goes with its session
        await me.until(lambda: gone([child, parent]))
        await me.press("u")
        await me.is_told("Restored: ")
    assert content(store) == before


async def test_what_came_meanwhile_is_not_written_over_and_an_emptied_trash_is_said(
    store: Path, trash: Path
) -> None:
    async with person(store, WIDE) as me:
        session = me.chosen
        await confirmed(me)
        await me.is_told("u to undo")
        session.path.write_text("newer")
        await me.does("u", "not restored", "another file is now in its place", "Trash")
        assert session.path.read_text() == "newer"
        session.path.unlink()
        await me.press("escape", "u")
        await me.is_told("Restored: ")
        assert session.path.stat().st_size > 100

        await me.until(lambda: me.chosen.id == session.id)
        await confirmed(me)
        await me.until(lambda: gone([session]))
        shutil.rmtree(trash)
        await me.does("u", "not restored", "no longer in the trash")


async def test_deleting_a_live_session_says_so(store: Path, trash: Path) -> None:
    async with person(store, WIDE) as me:
        append(me.chosen.path, {"$set": {"lastUpdated": datetime.now(UTC).isoformat()}})
        await me.until(lambda: Flag.LIVE in me.chosen.flags)
        await me.does("home d", ONE, "It is still being written")
        await me.press("n")
        await me.does("space space d", "Delete 2 sessions?", "It is still being written")


async def test_the_last_session_deleted_comes_back_from_the_empty_store(
    tmp_path: Path, trash: Path
) -> None:
    home = copy_store(tmp_path)
    for path in (*home.glob("tmp/*/chats/**/*.json*"), *home.glob("tmp/*/checkpoint-*")):
        if "9babadd1" not in path.name:
            path.unlink()
    async with person(home, WIDE) as me:
        await me.sees("Add a docstring to Stock", "run_shell_command")
        await me.press("tab")
        await confirmed(me)
        await me.sees("No sessions yet.")
        await me.does("u", "Add a docstring to Stock", "Restored")


async def test_where_the_trash_takes_nothing_a_deletion_for_good_is_asked_about(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_trash(path: Path) -> None:
        raise OSError("there is no trash")

    monkeypatch.setattr("send2trash.send2trash", no_trash)
    async with person(store, NARROW) as me:
        await me.press("down")
        session = me.chosen
        await confirmed(me)
        await me.sees("Delete permanently?", session.title, "can't be moved")
        await me.sees("The system reported: there is no trash")
        await me.does("y", "Delete permanently (D)")
        assert not gone([session])
        await me.press("D")
        await me.until(lambda: gone([session]))

        await me.until(lambda: me.chosen.id != session.id)
        await me.press("home", "space", "space")
        chosen = me.rows.selected
        await confirmed(me, "Delete 2 sessions?")
        await me.sees("Delete 2 sessions permanently?", "The system reported: there is no trash")
        assert not any(gone([session]) for session in chosen)
        await me.press("D")
        await me.until(lambda: gone(chosen))
        assert not any("undoes" in message for message in me.said)


async def test_a_session_in_which_a_run_goes_on_is_left_and_said(
    store: Path, trash: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    fake_cli(f"print:{INIT}", "wait")
    async with person(store, WIDE) as me:
        busy = me.chosen
        await me.does("d", ONE)
        options = AgentOptions(cwd=tmp_path, resume=busy.id)
        run = await asyncio.to_thread(UnguardedAdapter().start, "go on", options)
        await me.press("y")
        await me.is_told("A run is using this session")
        assert busy.path.exists()

        await me.press("space", "space")
        [idle] = [session for session in me.rows.selected if session.id != busy.id]
        await me.does("d", ONE, idle.title, f"{busy.title}: A run is using")
        await me.does("y", "1 problem while deleting 2 sessions", "A run is using this session")
        assert busy.path.exists()
        assert gone([idle])
        run.abort()
        await run.wait()
