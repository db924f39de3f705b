"""A lost file, rebuilt from sessions: looked at, written beside what is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemtui.ui.kit.clean_widgets import Input
from gemtui.ui.kit.dialogs import AskScreen
from gemtui.ui.kit.text_view import LineView
from tests.sessions import logs
from tests.sessions.stores import marker, session, talk, uuid
from tests.sessions.writes import wrote
from tests.ui.people import BOTH, NARROW, Person, person


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tide"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def home(tmp_path: Path, project: Path) -> Path:
    """A file that was written, then changed at its second line by a diff alone; it is lost."""
    home, path = tmp_path / ".gemini", project / "moon.py"
    marker(home, "proj", str(project))
    whole = wrote(path, None, "one\n\x1b[31mtwo\nthree\n", seconds=20)
    args = {"file_path": str(path), "old_string": "three", "new_string": "trois"}
    edit = logs.call("e", 40, name="replace", args=args)
    records = [*talk(uuid(1), "Draw the moon"), whole, logs.gemini("g40", "", 40, toolCalls=[edit])]
    session(home, uuid(1), records)
    return home


async def on_recovered(me: Person) -> LineView:
    await me.sees("Draw the moon")
    await me.press("w")
    await me.sees("moon.py", "2 writes")
    await me.press("ctrl+o")
    await me.sees("Recovered:", "guessed")
    return me.app.screen.query_one(LineView)


async def test_each_line_says_how_sure_it_is_and_where_it_comes_from(
    home: Path, project: Path
) -> None:
    async with person(home, BOTH, project=project) as me:
        view = await on_recovered(me)
        await me.sees("write_file, session", "replace, session")
        assert "? line 3  guessed" in view.text
        assert "    3 ? trois" in view.text
        assert "\x1b" not in view.text
        assert "␛[31mtwo" in view.text


async def test_it_is_written_to_the_lost_place_and_never_over_a_file(
    home: Path, project: Path
) -> None:
    async with person(home, NARROW, project=project) as me:
        await on_recovered(me)
        await me.press("enter")
        await me.until(lambda: isinstance(me.app.screen, AskScreen))
        assert me.app.screen.query_one(Input).value == str(project / "moon.py")
        await me.press("enter")
        await me.until(lambda: any("Saved: " in each for each in me.said))
        assert (project / "moon.py").read_bytes() == b"one\n\x1b[31mtwo\ntrois\n"
        await me.press("s")
        await me.until(lambda: isinstance(me.app.screen, AskScreen))
        field = me.app.screen.query_one(Input)
        assert field.value == "moon-recovered.py"
        field.value = "moon.py"
        await me.press("enter")
        await me.sees("That file already exists")
