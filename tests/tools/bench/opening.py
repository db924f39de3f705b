"""One large session in the running app: opened, scrolled, and growing while it is on the screen."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from statistics import median

from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.transcript.model import Thought
from tests.terminal import Terminal
from tests.tools.bench import minimal
from tests.tools.bench.make_store import NOW, make_session, more_records
from tests.tools.bench.measure import Cost, Row, alone, medians, peak
from tests.tools.bench.reading import parse_file
from tests.tools.bench.starting import environ

ENTER, DOWN, END, PAGE_DOWN, QUIT = "\r", "j", "\x1b[F", "\x1b[6~", "\x11"
PAGES = 100
APPENDED = 1_000


def rows(folder: Path, size: int, repeat: int) -> Iterator[Row]:
    """The running app and one session of `size` bytes; each run has a store of its own."""
    path = make_session(folder, size=size)
    more = folder / "more.jsonl"
    more.write_bytes(more_records(APPENDED))
    runs, floors = [], []
    for number in range(repeat):
        runs.append(_run(folder / f"open-{number}", size))
        floors.append(
            (alone(parse_file, path), _floor_of_scrolling(folder), alone(parse_file, more))
        )
    parsed, scrolled, lines = (cost.seconds for cost in medians(floors))
    name = f"{size / 1e6:,.0f} MB session"
    names = (
        (f"open a {name}: first screen", "orjson over it", parsed),
        (f"open a {name}: all of it", "orjson over it", parsed),
        (f"a page down in a {name}", "a page down in a `Log`", scrolled),
        (f"{APPENDED:,} records appended to an open {name}", "orjson over them", lines),
    )
    for number, (what, floor, least) in enumerate(names):
        cost = Cost.middle([run[number] for run in runs])
        yield Row(what=what, cost=cost, floor=floor, least=least)


def _run(home: Path, size: int) -> list[Cost]:
    """First screen, all of it, a page down, the records appended."""
    chats = home / ".gemini" / "tmp" / "large" / "chats"
    chats.mkdir(parents=True)
    make_session(chats, size=1_000, seed=2, start=NOW + timedelta(days=30))
    path = make_session(chats, size=size)
    first, messages = _facts(path)
    longer = home / "longer.jsonl"
    shutil.copy(path, longer)
    with longer.open("ab") as file:
        file.write(more_records(APPENDED))
    _, more = _facts(longer)
    words = [sys.executable, "-m", "gemtui"]
    with Terminal(words, environ=environ(home), folder=Path.cwd()) as terminal:
        terminal.shows("message 1 of", "Sessions 2")
        costs = _opened(terminal, first, messages)
        costs.append(_page_down(terminal))
        terminal.press(END)
        terminal.shows("following")
        costs.append(_appended(terminal, path, more))
        terminal.press(QUIT)
        terminal.wait()
    shutil.rmtree(home)
    return costs


def _facts(path: Path) -> tuple[str, int]:
    """The model's first thought, and how many messages there are."""
    with SessionLog(path) as log:
        log.refresh()
        transcript = transcript_of(log)
        blocks = (block for message in transcript for block in message.blocks)
        thought = next(block for block in blocks if isinstance(block, Thought))
        return thought.subject, len(transcript)


def _opened(terminal: Terminal, first: str, messages: int) -> list[Cost]:
    """From the keys to the first screen, and to the end of the reading."""
    at, began = len(terminal.raw), time.perf_counter()
    terminal.press(DOWN, ENTER)
    shown = _painted(terminal, first, at, began)
    return [shown, _painted(terminal, f"of {messages}", at, began)]


def _appended(terminal: Terminal, path: Path, messages: int) -> Cost:
    """From the write to the screen that shows what came."""
    at, began = len(terminal.raw), time.perf_counter()
    with path.open("ab") as file:
        file.write(more_records(APPENDED))
    return _painted(terminal, f"of {messages}", at, began)


def _painted(terminal: Terminal, text: str, at: int, began: float) -> Cost:
    terminal.until(lambda: text.encode() in terminal.raw[at:], text)
    seconds = time.perf_counter() - began
    return Cost(seconds=seconds, memory=peak(terminal.process.pid))


def _page_down(terminal: Terminal) -> Cost:
    """The median time from a page-down key to the first bytes of the new screen."""
    times = []
    for _ in range(PAGES):
        while terminal.read(0.02):
            pass
        began = time.perf_counter()
        terminal.press(PAGE_DOWN)
        terminal.read(5)
        times.append(time.perf_counter() - began)
    return Cost(seconds=median(times), memory=peak(terminal.process.pid))


def _floor_of_scrolling(folder: Path) -> Cost:
    words = [sys.executable, "-m", minimal.__name__, "long"]
    with Terminal(words, environ=environ(folder), folder=Path.cwd()) as terminal:
        terminal.shows(minimal.LINE)
        cost = _page_down(terminal)
        terminal.press(QUIT)
        terminal.wait()
    return cost
