"""What sessions changed, as one patch: looked at, copied, written; git itself applies it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemtui.ui.kit.clean_widgets import Input
from gemtui.ui.kit.dialogs import AskScreen
from gemtui.ui.sessions.files_screen import FilesScreen
from gemtui.ui.sessions.history_screen import HistoryScreen
from gemtui.ui.sessions.patch_screen import PatchScreen
from tests.sessions import logs
from tests.sessions.stores import marker, session, talk, uuid
from tests.sessions.writes import wrote
from tests.transcript.test_patch import apply
from tests.ui.people import BOTH, Person, person


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tide"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def home(tmp_path: Path, project: Path) -> Path:
    """Two sessions of a project; the newer one also wrote what no patch can tell."""
    home, path = tmp_path / ".gemini", project / "src" / "moon.py"
    marker(home, "proj", str(project))
    one = [
        wrote(path, "new\n", "full\n", seconds=20),
        wrote(project / "a b", None, "x", seconds=21),
    ]
    session(home, uuid(1), [*talk(uuid(1), "Draw the moon"), *one], minute="2026-11-20T23-04")
    untold = logs.call("u", 41, name="write_file", args={"file_path": "old.py", "content": "x"})
    two = [
        wrote(path, "full\n", "half\n", seconds=40),
        wrote(project.parent / "far.py", None, "far", seconds=42),
        logs.gemini("u", "", 41, toolCalls=[untold]),
        {"$set": {"lastUpdated": logs.at(70)}},
    ]
    session(home, uuid(2), [*talk(uuid(2), "Let it wane"), *two], minute="2026-11-20T23-05")
    (project / "src").mkdir()
    path.write_text("new\n")
    return home


async def on_patch(me: Person) -> PatchScreen:
    screen = await me.on(PatchScreen)
    await me.until(lambda: screen.view.patch is not None)
    return screen


async def write(me: Person, name: str) -> None:
    await me.press("enter")
    await me.on(AskScreen)
    await me.press("ctrl+a", "ctrl+k")
    await me.type(name)
    await me.press("enter")


async def test_the_patch_of_selected_sessions_of_one_project_is_written_over_no_file_and_applies(
    home: Path, project: Path
) -> None:
    marker(home, "other", "/home/ada/other")
    session(home, uuid(3), talk(uuid(3), "Go away"), key="other")
    async with person(home, BOTH) as me:
        await me.sees("Let it wane", "Draw the moon", "Go away")
        await me.press("space", "space", "space", "E")
        await me.is_told("several projects")
        assert me.app.screen is me.home
        await me.press("up", "space", "E")
        await on_patch(me)
        await me.sees("2 files", "2 files left out", "far.py")
        await me.sees("left out: not in", "its contents before the write are not recorded")
        await write(me, "src/moon.py")
        await me.sees("That file already exists")
        await me.press("ctrl+a", "ctrl+k", *str(home / "x"))
        await me.does("enter", "belongs to Gemini CLI")
        await me.press("ctrl+a", "ctrl+k", *"my.patch", "enter")
        await me.is_told("Saved: ")
    written = project / "my.patch"
    assert written.stat().st_mode & 0o777 == 0o600
    assert not (home / "x").exists()
    assert (project / "src/moon.py").read_text() == "new\n"
    apply(project, written.read_text())
    assert (project / "src/moon.py").read_text() == "half\n"
    assert (project / "a b").read_text() == "x"


async def test_the_patch_of_the_open_session_is_copied_and_those_of_files_are_theirs(
    home: Path, project: Path
) -> None:
    async with person(home) as me:
        await me.sees("Draw the moon")
        await me.press("down", "enter")
        await me.until(lambda: me.home.reading and me.view.total)
        await me.press("E")
        await on_patch(me)
        await me.press("y", "escape")
        await me.until(lambda: me.app.screen is me.home and me.view.has_focus)
        first = me.app.clipboard

        await me.press("escape", "w")
        files = await me.on(FilesScreen)
        await me.does("'moon", "1 of 4 files")
        await me.press("ctrl+s")
        screen = await on_patch(me)
        both = screen.view.patch
        assert both is not None
        assert (both.files, both.remarks) == (1, [])
        await me.press("escape")
        await me.until(lambda: me.app.screen is files)
        assert files.query_one(Input).value == "moon"
        await me.press("enter")
        await me.on(HistoryScreen)
        await me.sees("2 writes in 2 sessions")
        await me.press("E")
        screen = await on_patch(me)
        assert screen.view.patch is not None
        assert screen.view.patch.text.splitlines()[-2:] == ["-new", "+half"]
    apply(project, first)
    assert (project / "src/moon.py").read_text() == "full\n"
    (project / "src/moon.py").write_text("new\n")
    apply(project, both.text)
    assert (project / "src/moon.py").read_text() == "half\n"


async def test_without_a_project_folder_there_is_no_patch(tmp_path: Path) -> None:
    home = tmp_path / ".gemini"
    lost = logs.call("c", 5, name="write_file", args={"file_path": "a", "content": "x"})
    session(
        home, uuid(1), [*talk(uuid(1), "Let it wane"), logs.gemini("g", "", 5, toolCalls=[lost])]
    )
    async with person(home) as me:
        await me.sees("Let it wane")
        await me.press("E")
        await me.is_told("this session's project folder")
        await me.press("w")
        await me.on(FilesScreen)
        await me.sees("1 file")
        await me.press("ctrl+s")
        await me.is_told("this file's project folder")


async def test_what_is_left_out_for_one_reason_is_told_once_and_controls_are_written(
    home: Path, project: Path
) -> None:
    far = [wrote(project.parent / f"far{n}.py", None, "x", seconds=n) for n in range(30)]
    evil = wrote(project / "a\n\x1b[31mb", None, "one\r\n\x1b]0;x\x07\n")
    for number, title, writes in ((4, "Wax", [evil]), (5, "Wander off", far)):
        records = [*talk(uuid(number), title), *writes]
        records.append({"$set": {"lastUpdated": logs.at(90 + number)}})
        session(home, uuid(number), records, minute="2026-11-20T23-06")
    async with person(home) as me:
        await me.sees("Wander off")
        await me.press("E")
        await on_patch(me)
        await me.sees(": 30 files", "far18.py", "and 10 more")
        assert me.text.count("not in") == 1
        await me.press("escape", "down", "E")
        await on_patch(me)
        await me.press("y")
        await me.is_told("Control characters")
        assert not {"\x1b", "\x07"} & set(me.text + me.app.clipboard)
        await write(me, "evil.patch")
        await me.until(lambda: (project / "evil.patch").exists())
    apply(project, (project / "evil.patch").read_bytes().decode())
    assert (project / "a\n\x1b[31mb").read_bytes() == b"one\r\n\x1b]0;x\x07\n"


async def test_where_nothing_changed_there_is_nothing_to_write(tmp_path: Path) -> None:
    home = tmp_path / ".gemini"
    marker(home, "proj", "/home/ada/tide")
    session(home, uuid(1), talk(uuid(1), "Let it wane"))
    async with person(home) as me:
        await me.sees("Let it wane")
        await me.press("E")
        await on_patch(me)
        await me.sees("no changes to export")
        await me.press("enter", "y", "escape")
        await me.until(lambda: me.app.screen is me.home)
        assert me.app.clipboard == ""


async def test_a_folder_that_can_not_be_is_the_folder_of_no_file(tmp_path: Path) -> None:
    home = tmp_path / ".gemini"
    marker(home, "proj", "/home/ada\0/ti\x1b[31mde")
    session(home, uuid(1), [*talk(uuid(1), "Let it wane"), wrote(Path("/etc/a"), None, "x")])
    async with person(home) as me:
        await me.sees("Let it wane")
        await me.press("E")
        await on_patch(me)
        await me.sees("no changes to export", "1 file /etc/a", "not in")
        assert "\x1b" not in me.text
