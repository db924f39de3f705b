"""Sessions that are gone and of which a run keeps a copy: found and put back by a key."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gemtui.kept.resume_guard import SessionKeeper
from gemtui.kept.run_copies import keep_before, last_copies, runs_that_keep
from gemtui.kept.vault import keep
from gemtui.paths import runs_dir
from gemtui.sessions.catalog.index import Index
from tests.runs.test_listing import add_run
from tests.ui.people import BOTH, NARROW, copy_store, person

TITLE = "Write a haiku file"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return copy_store(tmp_path)


@pytest.fixture
def lost(store: Path) -> tuple[Path, ...]:
    """The files of a session that a run has resumed, and that are gone since."""
    session = Index(store, cache=None).find("63a18d40")
    folder = add_run(runs_dir(), "11111111-a")
    SessionKeeper(folder, keep_before(folder, store, session.id)).close()
    files = tuple(session.files)
    for path in files:
        path.unlink()
    return files


async def test_a_lost_session_is_put_back(store: Path, lost: tuple[Path, ...]) -> None:
    async with person(store, BOTH) as me:
        assert TITLE not in me.text
        await me.command("lost sessions")
        await me.sees("Restore a session?", TITLE, "63a18d40")
        await me.press("enter")
        await me.until(lambda: lost[0].exists())
        await me.is_told("Restored: ")
        await me.sees(TITLE)
        await me.command("lost sessions")
        await me.is_told("No sessions are lost")


async def test_the_list_of_lost_sessions_has_those_of_the_vault(store: Path) -> None:
    path = Index(store, cache=None).find("63a18d40").path
    keep(path)
    path.unlink()
    async with person(store, NARROW) as me:
        await me.sees(TITLE)
        await me.command("lost sessions")
        await me.sees("Restore a session?", TITLE, "63a18d40")
        await me.press("enter")
        await me.until(path.exists)
        await me.is_told("Restored: ")
        await me.command("lost sessions")
        await me.is_told("No sessions are lost")


async def test_a_lost_session_is_put_back_in_the_list_of_runs(
    store: Path, lost: tuple[Path, ...]
) -> None:
    async with person(store, NARROW) as me:
        await me.does("2 ctrl+l", "only copy of its session", "b restore")
        await me.press("b")
        await me.until(lambda: lost[0].exists())
        await me.lacks("only copy of its session")


async def test_a_place_that_takes_nothing_is_said(store: Path, lost: tuple[Path, ...]) -> None:
    chats = lost[0].parent
    shutil.rmtree(chats)
    chats.touch()
    async with person(store, NARROW) as me:
        await me.command("lost sessions")
        await me.sees("Restore a session?")
        await me.press("enter")
        await me.is_told("was not restored")


async def test_what_a_person_deletes_is_not_lost(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("send2trash.send2trash", lambda path: Path(path).unlink())
    async with person(store, NARROW) as me:
        await me.press("down")
        assert me.chosen.title == TITLE
        folder = add_run(runs_dir(), "11111111-a")
        SessionKeeper(folder, keep_before(folder, store, me.chosen.id)).close()
        gone = me.chosen.path
        await me.does("d", "Delete this session?")
        await me.press("y")
        await me.until(lambda: not gone.exists())
        await me.until(lambda: not list(runs_that_keep(runs_dir())))
    assert last_copies(runs_dir()) == ()
    assert not list(folder.path.glob("*.jsonl"))
