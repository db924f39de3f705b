"""What rings while somebody looks elsewhere: the bytes at a terminal."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from gemtui.notify import PAUSE, Notification, Ringer
from gemtui.paths import config_file, live_dir
from gemtui.text import Clean, clean_line
from tests.extension.live_files import hook_input, write_live
from tests.fake_cli import INIT, OK, FakeCli, says
from tests.terminal import Terminal
from tests.ui.people import copy_store

pytestmark = pytest.mark.covers(
    "gemtui/ui/app.py", "gemtui/ui/kit", "gemtui/notify.py", "gemtui/extension"
)

AWAY, BACK, LEAVE = "\x1b[O", "\x1b[I", "\x11"
WEZTERM = {"TERM_PROGRAM": "WezTerm"}


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """The file that lets the run end."""
    return tmp_path / "gate"


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:
    """A folder that Gemini CLI trusts, with a name that is not harmless."""
    folder = tmp_path / "api;\x1b]0;x\x07"
    folder.mkdir()
    (home / ".gemini/trustedFolders.json").write_text(json.dumps({str(folder): "TRUST_FOLDER"}))
    return folder


@pytest.fixture
def running(project: Path, fake_cli: FakeCli, gate: Path) -> Callable[..., Terminal]:
    """gemtui in a terminal with a run that goes on until the gate is there."""
    fake_cli(f"print:{INIT}", says("I work."), f"until:{gate}", f"print:{OK}")

    def start(**environ: str) -> Terminal:
        here = {name: value for name, value in os.environ.items() if name not in ("TMUX", "STY")}
        terminal = Terminal(
            [sys.executable, "-m", "gemtui"], environ={**here, **environ}, folder=project
        )
        terminal.shows("? keys")
        terminal.press("2")
        terminal.shows("enter starts a run")
        terminal.press("test it\r")
        terminal.shows("I work.")
        return terminal

    return start


TITLE = re.compile(rb"\x1b\]2;([^\x07]*)\x07")


def after(terminal: Terminal, act: Callable[[], object], what: bytes) -> None:
    """Do something, and wait for what is then written."""
    start = len(terminal.raw)
    act()
    terminal.until(lambda: what in terminal.raw[start:], repr(what))


@pytest.mark.deep
def test_a_run_that_ends_while_nobody_looks_rings_once(
    running: Callable[..., Terminal], gate: Path, project: Path
) -> None:
    with running(**WEZTERM) as me:
        me.press(AWAY)
        name = clean_line(project.name)
        told = f"\x1b]777;notify;gemtui: {name.replace(';', ',')};run ended: done: test it\x1b\\"
        after(me, gate.touch, b"\a" + told.encode())
        ended = f"gemtui: {name}: run ended".encode()
        me.until(lambda: TITLE.findall(me.raw)[-1].startswith(ended), "the title")
        me.press(BACK)
        me.until(lambda: b"run ended" not in TITLE.findall(me.raw)[-1], "the title of before")
        me.press(LEAVE)
        me.wait()
        assert me.raw.count(b"\x1b]777;") == 1
        assert b"\x1b]0;" not in me.raw


@pytest.mark.deep
def test_a_run_that_ends_before_ones_eyes_does_not_ring_and_names_the_window_once_a_state(
    running: Callable[..., Terminal], gate: Path
) -> None:
    with running(**WEZTERM) as me:
        gate.touch()
        me.shows("✓ done")
        me.press(LEAVE)
        me.wait()
        assert b"\x1b]777;" not in me.raw
        titles = TITLE.findall(me.raw)
        assert all(title != following for title, following in pairwise(titles))


@pytest.mark.deep
@pytest.mark.parametrize("ring", ["off", "bell"])
def test_settings_say_how_it_rings(running: Callable[..., Terminal], gate: Path, ring: str) -> None:
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text(f'ring = "{ring}"\n')
    with running(**WEZTERM) as me:
        me.press(AWAY)
        start = len(me.raw)
        gate.touch()
        me.shows("✓ done")

        def bells() -> int:
            return re.sub(rb"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)", b"", bytes(me.raw[start:])).count(
                b"\a"
            )

        if ring == "bell":
            me.until(lambda: bells() > 0, "the bell")
        me.press(BACK, LEAVE)
        me.wait()
        assert bells() == (1 if ring == "bell" else 0)
        assert b"\x1b]777;" not in me.raw


# --- sessions that wait --------------------------------------------------------------------------

HAIKU = "63a18d40-df0d-4a78-8965-77892f4a9218"


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[Terminal]:
    """gemtui on the recorded store, in a terminal, with a session that works."""
    copy_store(tmp_path)
    write_live(live_dir(), os.getpid(), hook_input("BeforeTool", session_id=HAIKU))
    environ = {**os.environ, **WEZTERM, "GEMINI_CLI_HOME": str(tmp_path / "home")}
    environ = {name: value for name, value in environ.items() if name not in ("TMUX", "STY")}
    words = [sys.executable, "-m", "gemtui"]
    with Terminal(words, environ=environ, folder=tmp_path, columns=80, rows=24) as terminal:
        terminal.shows("● 1 working", "? keys")
        yield terminal


def begins_to_wait() -> None:
    write_live(live_dir(), os.getpid(), hook_input("Notification", session_id=HAIKU))


def leave(terminal: Terminal) -> bytes:
    """All that was written, once gemtui has ended."""
    terminal.press(LEAVE)
    terminal.wait()
    return bytes(terminal.raw)


@pytest.mark.deep
@pytest.mark.parametrize("away", [AWAY, "3"], ids=["another window", "another pane"])
def test_a_session_that_begins_to_wait_rings_where_nobody_looks(
    watching: Terminal, away: str
) -> None:
    watching.press(away)
    if away != AWAY:
        watching.shows("[3 Policy]")
    asked = b"Write a haiku file: waiting for you: Tool Confirm Write: w.txt requires editing"
    rings = b"\a\x1b]777;notify;gemtui: proj;" + asked + b"\x1b\\"
    after(watching, begins_to_wait, rings)
    begins_to_wait()  # the CLI may tell it twice
    watching.press(BACK, "1")
    watching.shows("? 1 waiting: proj")
    assert leave(watching).count(b"\x1b]777;") == 1


@pytest.mark.deep
def test_a_session_that_begins_to_wait_before_ones_eyes_does_not_ring(watching: Terminal) -> None:
    begins_to_wait()
    watching.shows("? 1 waiting: proj")
    assert b"\x1b]777;" not in leave(watching)


# --- not too often -------------------------------------------------------------------------------


def test_what_comes_soon_after_a_ring_waits_and_is_told_together() -> None:
    sounded: list[str] = []
    timers: list[tuple[float, Callable[[], None]]] = []
    ringer = Ringer(lambda notice: sounded.append(notice.text), lambda *timer: timers.append(timer))
    for number in range(100):
        ringer.ring(Notification(title=Clean("t"), text=Clean(f"run {number}")))
    assert sounded == ["run 0"]
    ((seconds, go_on),) = timers
    assert seconds == PAUSE
    go_on()
    assert sounded == ["run 0", "run 99 (and 98 more)"]
    timers.pop()[1]()
    ringer.ring(Notification(title=Clean("t"), text=Clean("later")))
    assert sounded[2:] == ["later"]
