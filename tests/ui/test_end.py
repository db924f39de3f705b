"""Whatever ends gemtui, the terminal is as it was before."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.terminal import Terminal

pytestmark = [
    pytest.mark.deep,
    pytest.mark.covers("gemtui/ui/app.py", "gemtui/ui/kit", "gemtui/__main__.py"),
]

SIGNALS = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT]
ESCAPE = "\x1b[27u"
STORE = Path(__file__).parents[1] / "data" / "sessions" / "main"
CRASH = """
import sys
from gemtui.ui.sessions.session_keys import SessionKeys
SessionKeys.action_problems = lambda self: 1 / 0
from gemtui.cli import main
sys.exit(main([]))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(STORE, tmp_path / "home")
    return tmp_path


def terminal(folder: Path, *words: str) -> Terminal:
    environ = dict(os.environ, GEMINI_CLI_HOME=str(folder / "home"))
    environ.pop("PYTEST_CURRENT_TEST", None)
    return Terminal([sys.executable, *words], environ=environ, folder=folder)


@pytest.fixture
def running(folder: Path) -> Iterator[Terminal]:
    with terminal(folder, "-m", "gemtui") as place:
        place.shows("Write a haiku file", "? keys")
        yield place


def restored(raw: bytearray) -> bool:
    """Alternate screen and mouse off, cursor on, our title gone: each said last."""
    pairs = (
        (b"\x1b[?1049h", b"\x1b[?1049l"),
        (b"\x1b[?1000h", b"\x1b[?1000l"),
        (b"\x1b[?1003h", b"\x1b[?1003l"),
        (b"\x1b[?1006h", b"\x1b[?1006l"),
        (b"\x1b[?2004h", b"\x1b[?2004l"),
        (b"\x1b[?25l", b"\x1b[?25h"),
        (b"\x1b[22;2t", b"\x1b[23;2t"),
        (b"\x1b]2;", b"\x1b[23;2t"),
    )
    return all(-1 < raw.rfind(on) < raw.rfind(off) for on, off in pairs)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_it_in_order(running: Terminal, number: signal.Signals) -> None:
    running.process.send_signal(number)
    assert running.wait() == 128 + number
    assert restored(running.raw)


def test_a_terminal_that_is_gone_ends_it(running: Terminal) -> None:
    running.hang_up()
    assert running.process.wait(PATIENCE) == 128 + signal.SIGHUP


EARLY = """
import os, select, sys
from gemtui.ui import app
handle = app.exit_immediately

def wait(attributes):
    os.write(1, b"ready")
    poll = select.poll()
    poll.register(0, 0)
    poll.poll()
    handle(attributes)

app.exit_immediately = wait
from gemtui.cli import main
sys.exit(main([]))
"""


def test_a_terminal_that_is_gone_before_the_app_begins_ends_it(folder: Path) -> None:
    with terminal(folder, "-c", EARLY) as place:
        place.until(lambda: b"ready" in place.raw, "the app is about to begin")
        place.hang_up()
        assert place.process.wait(PATIENCE) == 128 + signal.SIGHUP


def test_a_signal_ends_it_when_the_terminal_takes_nothing_any_more(folder: Path) -> None:
    with terminal(folder, "-m", "gemtui", "--demo") as place:
        place.shows("? keys")
        for _ in range(200):
            place.press("j", "k")
        place.process.send_signal(signal.SIGTERM)
        assert place.process.wait(PATIENCE) == 128 + signal.SIGTERM


def test_ctrl_q_ends_it_in_order_and_the_title_was_put_aside_before_it_was_set(
    running: Terminal,
) -> None:
    running.press("\x11")
    assert running.wait() == 0
    assert restored(running.raw)
    assert 0 <= running.raw.find(b"\x1b[22;2t") < running.raw.find(b"\x1b]2;gemtui")


def test_a_crash_ends_it_in_order_and_says_where(folder: Path) -> None:
    with terminal(folder, "-c", CRASH) as place:
        place.shows("? keys")
        place.press("!")
        assert place.wait() == 1
        assert restored(place.raw)
        assert b"ZeroDivisionError" in place.raw


LATE = """
import signal, sys
from gemtui.ui.sessions.session_keys import SessionKeys

def fail(self):
    app = self.screen.app
    async def look():
        app.query_one("#gone")
    app.run_worker(look())
    {ending}
    app.query_one("#gone")

SessionKeys.action_problems = fail
from gemtui.cli import main
sys.exit(main([]))
"""


@pytest.mark.parametrize(
    ("ending", "code"), [("signal.raise_signal(signal.SIGTERM)", 143), ("app.exit()", 0)]
)
def test_an_error_of_a_pane_while_the_app_ends_is_not_shown(
    folder: Path, ending: str, code: int
) -> None:
    with terminal(folder, "-c", LATE.format(ending=ending)) as place:
        place.shows("? keys")
        place.press("!")
        assert place.wait() == code
        assert b"Traceback" not in place.raw


def test_what_is_typed_in_one_burst_is_a_search_and_the_window_is_named_after_what_is_read(
    running: Terminal,
) -> None:
    running.press("\x03")
    running.shows("Press ^q to quit gemtui")

    running.press("/dynamo")
    running.shows("/ dynamo", "No session title matches")
    assert "Delete this session" not in running.text

    running.press(ESCAPE)
    running.hides("/ dynamo")
    named = rb"\x1b\]2;gemtui: (?!Sessions)([^\x07]+)\x07"
    running.press("\r")
    running.until(lambda: bool(re.search(named, running.raw)), "the title")
    title = re.findall(named, running.raw)[-1].decode()
    running.shows(title[:30], "/ find")

    running.press("/dynamo")
    running.shows("/ dynamo", "no match")
    assert "Raw JSON" not in running.text

    running.press(ESCAPE)
    running.hides("/ dynamo")
    running.press("q")
    running.shows("enter open")
    running.press("q")
    assert running.wait() == 0


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("shown", [b"\x1b[?1049h", b"Sessions"])
def test_a_signal_while_panes_are_made_ends_it_without_a_traceback(
    folder: Path, number: signal.Signals, shown: bytes
) -> None:
    with terminal(folder, "-m", "gemtui") as place:
        place.until(lambda: shown in place.raw, "the app begins")
        place.process.send_signal(number)
        assert place.wait() in (128 + number, -number), bytes(place.raw[-3000:])
        assert b"Traceback" not in place.raw


INTERRUPTED = """
import os, signal, sys
left = [int(sys.argv.pop())]

def profile(frame, event, _):
    if event == "call" and frame.f_code.co_name == NAME:
        left[0] -= 1
        if not left[0]:
            sys.setprofile(None)
            os.kill(os.getpid(), signal.SIGINT)

from gemtui.__main__ import main
sys.setprofile(profile)
sys.exit(main())
"""


@pytest.mark.parametrize("name", ["cb", "__set_name__"])
@pytest.mark.parametrize("at", [20, 200])
def test_an_interrupt_where_an_import_would_ignore_it_ends_it(
    folder: Path, name: str, at: int
) -> None:
    """`cb` is a callback of the import system; errors of `__set_name__` become a RuntimeError."""
    with terminal(folder, "-c", INTERRUPTED.replace("NAME", repr(name)), str(at)) as place:
        assert place.wait() == 128 + signal.SIGINT
        assert not place.raw


def test_a_signal_and_then_a_terminal_that_is_gone_end_it(folder: Path) -> None:
    for _ in range(2):
        with terminal(folder, "-m", "gemtui") as place:
            place.shows("Write a haiku file", "? keys")
            place.process.send_signal(signal.SIGTERM)
            place.hang_up()
            assert place.process.wait(PATIENCE) in (128 + signal.SIGTERM, 128 + signal.SIGHUP)


STUCK = """
import sys, threading
from gemtui.ui.kit import signals
signals.LAST = 0.5
from gemtui.ui.sessions.session_keys import SessionKeys
wait = threading.Event().wait
SessionKeys.action_problems = lambda self: threading.Thread(target=wait).start()
from gemtui.cli import main
sys.exit(main([]))
"""


def test_a_thread_that_never_ends_holds_nothing_up(folder: Path) -> None:
    with terminal(folder, "-c", STUCK) as place:
        place.shows("? keys")
        place.press("!")
        place.shows("? keys")
        place.process.send_signal(signal.SIGTERM)
        assert place.wait() == 128 + signal.SIGTERM
        assert restored(place.raw)
