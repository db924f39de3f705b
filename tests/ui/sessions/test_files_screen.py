"""All files that sessions wrote: of this project or all, as one types."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gemtui.ui.kit.clean_widgets import Input
from gemtui.ui.sessions.files_screen import FileRow, FilesScreen
from gemtui.ui.sessions.history_screen import HistoryScreen
from tests.sessions.stores import marker, session, talk, uuid
from tests.sessions.writes import wrote
from tests.ui.people import BOTH, WIDE, Person, person

EVIL = "[b]x\x1b]0;owned\x07\n\u202e.py"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "tide").mkdir()
    return tmp_path / "tide"


@pytest.fixture
def home(tmp_path: Path, project: Path) -> Path:
    """Three files of a project, one of them of two sessions, and one of another project."""
    home, other = tmp_path / ".gemini", tmp_path / "other"
    marker(home, "proj", str(project))
    marker(home, "other", str(other))
    moon, sun = project / "src" / "moon.py", project / "sun.py"
    one = [wrote(moon, None, "full\n", seconds=20), wrote(sun, None, "x\n", seconds=21)]
    session(home, uuid(1), [*talk(uuid(1), "Draw the moon"), *one], minute="2026-11-20T23-04")
    two = [wrote(moon, "full\n", "half\n", seconds=40), wrote(project / EVIL, None, "", seconds=30)]
    session(home, uuid(2), [*talk(uuid(2), "Let it wane"), *two], minute="2026-11-20T23-05")
    three = [wrote(other / "far.py", None, "far\n", seconds=10)]
    session(home, uuid(3), [*talk(uuid(3), "Go away"), *three], key="other")
    return home


@asynccontextmanager
async def on_files(home: Path, size: tuple[int, int] = WIDE, **start: Any) -> AsyncIterator[Person]:
    async with person(home, size, **start) as me:
        await me.sees("Let it wane")
        await me.press("w")
        await me.until(lambda: isinstance(me.app.screen, FilesScreen) and shown(me))
        yield me


def shown(me: Person) -> list[FileRow]:
    screen = me.app.screen
    assert isinstance(screen, FilesScreen)
    return list(screen.rows.items)


async def test_the_files_of_this_project_or_all_since_when_the_one_written_last_first(
    home: Path, project: Path
) -> None:
    async with on_files(home, BOTH, project=project) as me:
        assert [row.path.name for row in shown(me)] == ["moon.py", EVIL, "sun.py"]
        assert [(row.writes, row.sessions) for row in shown(me)] == [(2, 2), (1, 1), (1, 1)]
        await me.sees("src/moon.py", "2 writes   2 sessions", "3 files")
        await me.sees("[b]x␛]0;owned␇ ⟨U+202E⟩.py")
        assert not {"\x1b", "\x07", "\u202e"} & set(me.text)
        await me.does("ctrl+r", "all projects", "other/far.py", "4 files")
        await me.does("ctrl+r", "3 files")
        await me.does("ctrl+t ctrl+t ctrl+t", "24 hours", "3 files")


async def test_the_period_is_shown_beside_a_project_with_a_long_path(
    home: Path, tmp_path: Path
) -> None:
    async with on_files(home, project=tmp_path / ("long" * 40) / "tide") as me:
        await me.does("ctrl+r ctrl+t ctrl+t ctrl+t", "longlong/tide", "24 hours")


async def test_a_file_that_is_typed_leads_to_its_writes_a_session_and_all_the_way_back(
    home: Path,
) -> None:
    async with on_files(home) as me:
        await me.does("'tide space 'src", "1 of 4 files")
        assert [row.path.name for row in shown(me)] == ["moon.py"]
        await me.does("'zzz", "No matches.")
        await me.does("ctrl+u", "4 files")
        await me.press(*"moon", "enter")
        await me.on(HistoryScreen)
        await me.sees("2 writes in 2 sessions")
        await me.press("down", "enter")
        await me.until(lambda: me.app.screen is me.home and me.home.reading)
        assert me.home.pane.summary is not None
        assert me.home.pane.summary.id == uuid(1)
        await me.press("escape")
        await me.on(HistoryScreen)
        await me.sees("2 writes in 2 sessions", "Draw the moon")
        await me.press("escape")
        files = await me.on(FilesScreen)
        assert files.query_one(Input).value == "moon"
        await me.does("ctrl+u", "4 files")
        await me.press("escape")
        await me.until(lambda: me.app.screen is me.home)
        assert me.rows.has_focus


async def test_an_open_session_shows_its_own_files_first_and_a_key_those_of_others(
    home: Path, project: Path
) -> None:
    async with person(home, project=project) as me:
        await me.does("down enter", "Draw the moon")
        await me.until(lambda: me.view.has_focus)
        await me.does("w", "this session", "src/moon.py", "2 files", "^r this project")
        await me.does("ctrl+r", "3 files", "^r all projects")
        await me.press("escape")
        await me.until(lambda: me.app.screen is me.home)
        await me.does("w", "this session", "2 files")


async def test_where_nothing_was_written_it_says_so(tmp_path: Path) -> None:
    home, project = tmp_path / ".gemini", tmp_path / "tide"
    marker(home, "proj", str(project))
    session(home, uuid(1), talk(uuid(1), "Let it wane"))
    async with person(home, project=project) as me:
        await me.sees("Let it wane")
        await me.does("w", "No session has written files here. Press ^r to show all projects.")
        await me.press("enter", "escape")
        await me.until(lambda: me.app.screen is me.home)
