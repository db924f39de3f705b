"""The longest stops of the event loop, in which the app neither draws nor takes a key."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from gemtui.policy.file.rule_codec import rules_to_toml
from tests.terminal import Terminal
from tests.tools.bench import watched
from tests.tools.bench.editing import make_rules
from tests.tools.bench.make_store import make_many, make_session, more_records, store_in
from tests.tools.bench.measure import Cost, Row
from tests.tools.bench.starting import environ, fill_cache

RULES, RECORDS, SECONDS, MANY = 300, 1_000, 4, 100_000
FRAME = 1 / 60
SILENCE, LONGEST = 4.0, 20.0
ENTER, DOWN, END, ESCAPE, QUIT = "\r", "j", "\x1b[F", "\x1b", "\x11"


class _Watched:
    """The running app, and the stops of its event loop since the last look."""

    def __init__(self, terminal: Terminal, told: Path) -> None:
        self.terminal = terminal
        self._told, self._read = told, 0

    def longest(self) -> float:
        """Wait until the app draws nothing, or for some seconds; return its longest stop since."""
        end = time.monotonic() + LONGEST
        while time.monotonic() < end and self.terminal.read(SILENCE):
            pass
        lines = self._told.read_text().splitlines() if self._told.exists() else []
        new, self._read = lines[self._read :], len(lines)
        return max(map(float, new), default=watched.LEAST)


_Do = Callable[[_Watched, Path], dict[str, float]]


def rows(folder: Path, sessions: int, repeat: int) -> Iterator[Row]:
    """The longest stop at each of several things to do, in a median of several runs.

    `sessions`: the size of the store whose list is read and rearranged.
    """
    yield from _rows(_with_rules(folder), _policy, repeat)
    yield from _rows(
        _with_sessions(folder, sessions),
        partial(_list, f"{sessions:,} sessions", "hidden (.)", ""),
        repeat,
    )
    yield from _rows(folder / "growing", _growing, repeat)


def many(folder: Path, repeat: int) -> Iterator[Row]:
    """The longest stops in a list of many small sessions; making them takes some minutes."""
    home = store_in(folder, MANY, make_many)
    fill_cache(home)
    yield from _rows(
        home, partial(_list, f"{MANY:,} small sessions", f"{MANY:,} ·", "oldest first"), repeat
    )


def _rows(home: Path, do: _Do, repeat: int) -> Iterator[Row]:
    runs = [_run(home, do) for _ in range(repeat)]
    for what in runs[0]:
        cost = Cost.middle([Cost(seconds=run[what], memory=0) for run in runs])
        what = f"longest stop of the event loop: {what}"
        yield Row(what=what, cost=cost, floor="a frame of 60 a second", least=FRAME)


def _run(home: Path, do: _Do) -> dict[str, float]:
    told = home / "stops"
    told.unlink(missing_ok=True)
    shutil.rmtree(home / "state", ignore_errors=True)  # how the list was left
    if do is _growing:
        shutil.rmtree(home, ignore_errors=True)
        _make_growing(home)
    words = [sys.executable, "-m", watched.__name__, str(told)]
    with Terminal(words, environ=environ(home), folder=Path.cwd()) as terminal:
        found = do(_Watched(terminal, told), home)
        terminal.press(QUIT)
        terminal.wait()
    return found


# --- a policy ------------------------------------------------------------------------------------


def _with_rules(folder: Path) -> Path:
    home = folder / "rules"
    policies = home / ".gemini" / "policies"
    policies.mkdir(parents=True, exist_ok=True)
    (policies / "many.toml").write_text(rules_to_toml(make_rules(RULES)))
    return home


def _policy(app: _Watched, _home: Path) -> dict[str, float]:
    """A policy of many rules: opened, and a rule switched off and on."""
    app.terminal.shows("No sessions here yet")
    app.longest()
    app.terminal.press("3")
    app.terminal.shows("No policy yet")
    app.terminal.press("f")
    app.terminal.shows("many")
    app.terminal.press(ENTER)
    app.terminal.shows(f"{RULES} rules")
    opened = app.longest()
    app.terminal.press("j", "j")
    moved = app.longest()
    app.terminal.press(" ")
    changed = app.longest()
    app.terminal.press("u")
    name = f"a policy of {RULES} rules"
    return {f"{name} opened": opened, f"{name}, moved in": moved, f"{name} changed": changed}


# --- the list ------------------------------------------------------------------------------------


def _with_sessions(folder: Path, sessions: int) -> Path:
    home = store_in(folder, sessions)
    fill_cache(home)
    return home


def _list(name: str, listed: str, order: str, app: _Watched, _home: Path) -> dict[str, float]:
    """The list of many sessions: read, grouped, reversed, narrowed; and the run pane.

    `name`: what they are called in the rows. `listed`: what the screen shows once the sessions are
    listed. `order`: what it then shows of the reversed order, if there is room for that.
    """
    app.terminal.shows(listed)
    found = {f"{name} listed": app.longest()}
    for what, shown, *keys in (
        ("grouped", "", "g"),
        ("ungrouped", "", "g"),
        ("reversed", order, "S"),
        ("counted", "of it cached", "t"),
        ("no longer counted", order, ESCAPE),
        ("narrowed", "inside sessions: ", "/", "p", "a"),
        ("all again", order, ESCAPE),
        ("left for the run pane", "", ENTER, "2"),
    ):
        app.terminal.press(*keys)
        app.terminal.shows(shown)
        found[f"{name} {what}"] = app.longest()
    return found


# --- a session that grows ------------------------------------------------------------------------


def _make_growing(home: Path) -> None:
    chats = home / ".gemini" / "tmp" / "large" / "chats"
    chats.mkdir(parents=True)
    make_session(chats, size=1_000_000)


def _growing(app: _Watched, home: Path) -> dict[str, float]:
    """A session opened; then it grows while it is on the screen."""
    app.terminal.shows("Sessions 1")
    app.longest()
    path = next((home / ".gemini").glob("tmp/*/chats/*"))
    app.terminal.press(ENTER)
    app.terminal.shows("message 1 of")
    opened = app.longest()
    app.terminal.press(END)
    app.longest()
    records = more_records(RECORDS).splitlines(keepends=True)
    with path.open("ab", buffering=0) as file:
        for _ in range(SECONDS):
            for part in range(10):
                began = time.monotonic()
                file.write(b"".join(records[part::10]))
                while time.monotonic() < began + 0.1:
                    app.terminal.read(0.02)
    return {
        "a session of 1 MB opened": opened,
        f"a session that grows by {RECORDS:,} records a second": app.longest(),
    }
