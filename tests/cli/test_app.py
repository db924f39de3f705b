"""`gemtui [PATH]`, `--session` and `--demo`, at a terminal."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from gemtui.agent import process_tree
from gemtui.paths import config_file
from tests.cli.conftest import put
from tests.cli.test_sessions import add_session
from tests.terminal import Terminal
from tests.ui.test_end import restored

pytestmark = pytest.mark.covers("gemtui/ui", "gemtui/commands", "gemtui/demo", "gemtui/agent")


def terminal(*words: str | Path, folder: Path) -> Terminal:
    return Terminal(
        [sys.executable, "-m", "gemtui", *map(str, words)], environ=dict(os.environ), folder=folder
    )


@pytest.fixture
def mine(store: Path, tmp_path: Path) -> Path:
    """A project folder with one session."""
    folder = tmp_path / "mine"
    folder.mkdir()
    add_session(store, "mine", "11111111-aaaa", "Water the plants", project=str(folder))
    return folder


def test_opens_on_the_current_folders_project(mine: Path) -> None:
    with terminal(folder=mine) as screen:
        screen.shows("Water the plants")
        assert "Change the greeting" not in screen.text
        screen.press("q")
        assert screen.wait() == 0
        assert restored(screen.raw)


@pytest.mark.deep
def test_opens_on_the_project_of_a_path(mine: Path, tmp_path: Path) -> None:
    with terminal("mine", folder=tmp_path) as screen:
        screen.shows("Water the plants")
        assert "Change the greeting" not in screen.text


@pytest.mark.deep
@pytest.mark.parametrize("words", [["--session", "7024884b"], [".", "--session", "7024884b"]])
def test_opens_straight_into_a_session(store: Path, tmp_path: Path, words: list[str]) -> None:
    with terminal(*words, folder=tmp_path) as screen:
        screen.shows("Change the greeting from hello to bye", "You")


@pytest.mark.deep
def test_the_demo_leaves_nothing_behind(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    with terminal("--demo", "--ascii", folder=tmp_path) as screen:
        screen.shows("demo", "Running the tests.")
        (place,) = temporary.glob("gemtui-demo-*")
        assert place.stat().st_mode & 0o777 == 0o700
        screen.process.send_signal(signal.SIGTERM)
        assert screen.wait() == 128 + signal.SIGTERM
    assert list(temporary.iterdir()) == []
    assert list((home / ".gemini").iterdir()) == []
    assert not Path(os.environ["XDG_CACHE_HOME"]).exists()


@pytest.mark.deep
def test_a_run_in_the_demo_ends_with_it(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setenv("GEMTUI_DEMO_PACE", "0.4")
    with terminal("--demo", folder=tmp_path) as screen:
        screen.shows("demo", "Running the tests.")
        screen.press("2")
        screen.shows("enter starts a run", "gemini 0.61.0-demo")
        screen.press("Be polite", "\r")
        screen.shows("run_shell_command  python3", "running")
        (run,) = temporary.glob("gemtui-demo-*/state/gemtui/runs/*")
        screen.press("\x03")
        screen.shows("Press ctrl+c again to stop the run.")
        screen.press("\x03")
        screen.shows("interrupted", "2 files")
        screen.press("\x1b")
        screen.hides("enter send")
        screen.press("r")
        screen.until(lambda: len(list(run.parent.iterdir())) == 2, "a second run")
        screen.shows("run_shell_command  python3", "running")
        screen.process.send_signal(signal.SIGTERM)
        assert screen.wait() == 128 + signal.SIGTERM
    assert process_tree.tagged(run.name) == set()
    assert list(temporary.iterdir()) == []
    assert list((home / ".gemini").iterdir()) == []
    assert not Path(os.environ["XDG_STATE_HOME"]).exists()


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--session", "nothing-like-it"], "nothing-like-it"),
        (["--demo", "."], "leave PATH out"),
        (["--demo", "--session", "nothing-like-it"], "nothing-like-it"),
    ],
)
def test_what_can_not_be_opened_is_said_before_the_screen(
    store: Path, tmp_path: Path, words: list[str], what: str
) -> None:
    with terminal(*words, folder=tmp_path) as screen:
        assert screen.wait() == 2
        assert screen.lines[0].startswith("gemtui: ")
        assert what in screen.lines[0]
        assert b"\x1b[?1049h" not in screen.raw


def test_a_wrong_setting_names_file_and_key(store: Path, tmp_path: Path) -> None:
    put(config_file(), "ascii = 3")
    with terminal(folder=tmp_path) as screen:
        assert screen.wait() == 2
        said = "".join(line.rstrip() for line in screen.lines)
        assert said.startswith("gemtui: ")
        assert "gemtui/config.toml" in said
        assert "ascii" in said


@pytest.mark.deep
def test_a_theme_that_is_not_there_stops_nothing(store: Path, tmp_path: Path) -> None:
    put(config_file(), 'theme = "nope"')
    with terminal(folder=tmp_path) as screen:
        screen.shows('There is no theme "nope". Press F2', "Change the greeting")


def test_a_current_folder_that_is_gone(store: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    line = f'rmdir {gone}; exec "{sys.executable}" -m gemtui'
    with Terminal(["/bin/sh", "-c", line], environ=dict(os.environ), folder=gone) as screen:
        assert screen.wait() == 2
        assert "current folder has been deleted" in screen.text
