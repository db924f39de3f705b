"""All writes of a file and its rebuilt text: from a card, and the way to each and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemtui.marks import MarkEdit, Marks
from gemtui.ui.kit.clean_widgets import Input
from gemtui.ui.kit.dialogs import AskScreen
from gemtui.ui.kit.text_view import LineView
from gemtui.ui.sessions.history_screen import HistoryScreen, WriteRow
from gemtui.ui.transcript.cursor import Cursor
from tests.sessions import logs
from tests.sessions.stores import append, marker, session, talk, uuid
from tests.sessions.writes import wrote
from tests.ui.people import BOTH, NARROW, Person, person

HOSTILE = "src/[b]x[/b]\x1b]0;owned\x07\n\u202e[@click=app.exit]y.py"


@pytest.fixture
def home(tmp_path: Path, project: Path) -> Path:
    """Two sessions that wrote one file, the newer one twice, once in vain, and another file."""
    home, path = tmp_path / ".gemini", project / "src" / "moon.py"
    marker(home, "proj", str(project))
    one = [*talk(uuid(1), "Draw the moon"), wrote(path, None, "full\n", seconds=20)]
    session(home, uuid(1), one, minute="2026-11-20T23-04")
    two = [
        *talk(uuid(2), "Let the moon wane"),
        wrote(path, "full\n", "half\n", seconds=40),
        wrote(path, "half\n", "new\n", seconds=50, status="cancelled"),
        wrote(project / "other.py", None, "x = 1\n", seconds=60),
        {"$set": {"lastUpdated": logs.at(70)}},
    ]
    session(home, uuid(2), two, minute="2026-11-20T23-05")
    return home


async def read_first(me: Person) -> None:
    """The newest session, with the cursor on its first card."""
    await me.sees("Let the moon wane")
    await me.press("enter")
    await reads(me, "Let the moon wane")
    await me.press("right_square_bracket")


async def reads(me: Person, prompt: str) -> None:
    """Wait for the transcript that begins so."""
    await me.until(
        lambda: (
            me.view.has_focus and any(e.excerpt == prompt for e in me.view.page.transcript.outlines)
        )
    )


async def on_history(me: Person) -> HistoryScreen:
    screen = await me.on(HistoryScreen)
    await me.until(lambda: screen.rows.items)
    return screen


def told(screen: HistoryScreen) -> str:
    return screen.query_one(LineView).text


def writes(screen: HistoryScreen) -> list[WriteRow]:
    return [row for row in screen.rows.items if isinstance(row, WriteRow)]


def titles(screen: HistoryScreen) -> list[str]:
    return [row.title for row in writes(screen)]


async def test_a_card_leads_to_all_writes_of_its_file_and_to_those_that_come(
    home: Path, project: Path
) -> None:
    Marks().edit([uuid(1)], MarkEdit(name="The first moon"))
    async with person(home, BOTH) as me:
        await read_first(me)
        await me.press("W")
        screen = await on_history(me)
        await me.sees("src/moon.py", "2 writes in 2 sessions, 1 failed", "cancelled")
        await me.until(lambda: titles(screen)[-1:] == ["The first moon"])
        assert titles(screen)[:-1] == ["Let the moon wane", "Let the moon wane"]
        await me.until(lambda: "new" in told(screen))
        await me.press("down")
        await me.until(lambda: "full" in told(screen) and "half" in told(screen))
        path = home / "tmp/proj/chats" / f"session-2026-11-20T23-04-{uuid(1)[:8]}.jsonl"
        append(path, wrote(project / "src/moon.py", "half\n", "gone\n", seconds=90))
        await me.until(lambda: len(writes(screen)) == 4)
        await me.press("escape")
        await me.until(lambda: me.app.screen is me.home)
        me.view.page.go(Cursor(0, 0))
        await me.does("W", "no file here")
        assert me.app.screen is me.home


async def test_enter_reads_the_session_at_the_call_and_escape_leads_back(home: Path) -> None:
    async with person(home) as me:
        await read_first(me)
        before = me.view.page.cursor
        await me.press("W")
        await on_history(me)
        await me.press("enter")  # a write of the same session
        await me.until(lambda: me.app.screen is me.home and me.view.page.cursor != before)
        await me.press("escape")
        await on_history(me)
        await me.press("end", "up", "enter")
        await me.until(lambda: me.home.pane.summary and me.home.pane.summary.id == uuid(1))
        await me.until(lambda: me.view.page.block is not None and me.view.page.cursor.block == 0)
        assert me.view.page.block.name == "write_file"  # type: ignore[union-attr]
        await me.press("escape")
        screen = await on_history(me)
        await me.until(lambda: screen.rows.chosen == writes(screen)[-1:][0])
        await me.press("escape")
        await me.until(lambda: me.app.screen is me.home)
        assert me.home.pane.summary is not None
        assert me.home.pane.summary.id == uuid(2)
        await me.until(lambda: me.view.page.cursor == before)
        await me.press("escape")
        await me.until(lambda: me.rows.has_focus)


async def test_hostile_names_are_text(tmp_path: Path, project: Path) -> None:
    home = tmp_path / ".gemini"
    marker(home, "proj", str(project))
    path = project / HOSTILE
    session(home, uuid(1), [*talk(uuid(1), "[b]Let[/b] \x1b[31m"), wrote(path, None, "\x1b]0;x\n")])
    async with person(home) as me:
        await me.press("enter")
        await me.until(lambda: me.view.has_focus and me.view.total)
        await me.press("right_square_bracket", "W")
        screen = await on_history(me)
        await me.until(lambda: "␛]0;x" in told(screen))
        await me.sees("1 write in 1 session", "[@click=app.exit]y.py")
        assert not {"\x1b", "\x07", "\u202e"} & set(me.text)


async def test_a_call_without_a_stored_change_says_so(tmp_path: Path, project: Path) -> None:
    home = tmp_path / ".gemini"
    marker(home, "proj", str(project))
    call = logs.call("c", 5, name="write_file", args={"file_path": "a.py"})
    session(home, uuid(1), [*talk(uuid(1)), logs.gemini("g", "", 5, toolCalls=[call])])
    async with person(home) as me:
        await me.press("enter")
        await me.until(lambda: me.view.has_focus and me.view.total)
        await me.press("right_square_bracket", "W")
        screen = await on_history(me)
        assert writes(screen)[0].write.path == project / "a.py"
        await me.sees("the change was not recorded")


@pytest.fixture
def lost(tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that was written, then changed at its last line by an edit alone; it is lost."""
    monkeypatch.chdir(project)
    home, path = tmp_path / ".gemini", project / "moon.py"
    marker(home, "proj", str(project))
    whole = wrote(path, None, "one\n\x1b[31mtwo\nthree\n", seconds=20)
    args = {"file_path": str(path), "old_string": "three", "new_string": "trois"}
    edit = logs.call("e", 40, name="replace", args=args)
    records = [*talk(uuid(1), "Draw the moon"), whole, logs.gemini("g40", "", 40, toolCalls=[edit])]
    session(home, uuid(1), records)
    return home


async def on_text(me: Person) -> HistoryScreen:
    await me.sees("Draw the moon")
    await me.does("w", "moon.py", "2 writes")
    await me.press("ctrl+o")
    screen = await on_history(me)
    await me.sees("0 lines known, 3 guessed")
    return screen


async def test_a_history_ends_with_the_files_text_and_how_sure_each_line_is(
    lost: Path, project: Path
) -> None:
    async with person(lost, BOTH, project=project) as me:
        screen = await on_text(me)
        await me.until(lambda: "? line 3  guessed" in told(screen))
        assert "    3 ? trois" in told(screen)
        assert "write_file, session" in told(screen)
        assert "replace, session" in told(screen)
        assert "\x1b" not in told(screen)
        assert "␛[31mtwo" in told(screen)
        assert len(screen.rows.items) == 3
        await me.press("home")
        await me.until(lambda: "guessed" not in told(screen))
        await me.press("r")
        await me.until(lambda: "guessed" in told(screen))


async def test_the_text_is_saved_to_the_lost_place_and_never_over_a_file(
    lost: Path, project: Path
) -> None:
    async with person(lost, NARROW, project=project) as me:
        await on_text(me)
        await me.sees("s save")
        await me.press("enter")
        await me.on(AskScreen)
        assert me.app.screen.query_one(Input).value == str(project / "moon.py")
        await me.press("enter")
        await me.is_told("Saved: ")
        assert (project / "moon.py").read_bytes() == b"one\n\x1b[31mtwo\ntrois\n"
        await me.press("s")
        await me.on(AskScreen)
        field = me.app.screen.query_one(Input)
        assert field.value == "moon-recovered.py"
        field.value = "moon.py"
        await me.does("enter", "That file already exists")
