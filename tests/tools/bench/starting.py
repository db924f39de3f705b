"""From the start of the process to the first row on the screen, at a pseudo-terminal."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from gemtui.paths import gemini_home
from gemtui.sessions.catalog.index import Index
from gemtui.text import clean_line
from tests.terminal import Terminal
from tests.tools.bench import minimal
from tests.tools.bench.make_store import store_in
from tests.tools.bench.measure import Cost, Row, medians, peak, resident

_SILENCE = 2.0
"""Seconds without a byte: nothing is read any more."""


def environ(folder: Path) -> dict[str, str]:
    """A world in which `folder` holds the store and all our files."""
    names = {
        f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("CACHE", "CONFIG", "STATE")
    }
    home = {"HOME": str(folder), "GEMINI_CLI_HOME": str(folder), "LC_ALL": "C.UTF-8"}
    return {"PATH": os.environ["PATH"], "TEXTUAL_ANIMATIONS": "none", **home, **names}


def first_paint(module: str, text: str, folder: Path) -> Cost:
    """Start `python -m module` and wait until `text` has been painted."""
    began = time.perf_counter()
    words = [sys.executable, "-m", module]
    with Terminal(words, environ=environ(folder), folder=Path.cwd()) as terminal:
        terminal.until(lambda: text.encode() in terminal.raw, text)
        cost = Cost(seconds=time.perf_counter() - began, memory=peak(terminal.process.pid))
        terminal.press("\x11")
        terminal.wait()
    return cost


def rows(folder: Path, counts: list[int], repeat: int) -> Iterator[Row]:
    """Cold starts with stores of several sizes, without a cache and with one.

    The floor is measured between the runs, so that what else the machine does slows down both.
    """
    _floor(folder)
    for count in counts:
        place = store_in(folder, count)
        shutil.rmtree(place / "state", ignore_errors=True)  # how the list was left
        text = _first_row(place)
        for cache in ("no cache", "cache"):
            costs, floors = [], []
            for _ in range(repeat):
                if cache == "no cache":
                    shutil.rmtree(place / "cache", ignore_errors=True)
                floors.append(_floor(folder))
                costs.append(first_paint("gemtui", text, place))
            yield Row(
                what=f"start to first rows, {count:,} sessions, {cache}",
                cost=Cost.middle(costs),
                floor="minimal Textual app",
                least=Cost.middle(floors).seconds,
            )
            fill_cache(place)


def resting(folder: Path, counts: list[int], repeat: int) -> Iterator[Row]:
    """The app's memory once the whole store is listed and nothing happens any more."""
    for count in counts:
        place = store_in(folder, count)
        fill_cache(place)
        runs = [
            [
                at_rest(minimal.__name__, minimal.LINE, folder),
                at_rest("gemtui", f"{count:,}", place),
            ]
            for _ in range(repeat)
        ]
        floor, cost = medians(runs)
        yield Row(
            what=f"memory at rest, {count:,} sessions",
            cost=cost,
            floor="minimal Textual app",
            least_memory=floor.memory,
        )


def at_rest(module: str, text: str, folder: Path) -> Cost:
    """Start `python -m module`, wait until it shows `text` and then for silence."""
    words = [sys.executable, "-m", module]
    with Terminal(words, environ=environ(folder), folder=folder) as terminal:
        terminal.shows(text)
        while terminal.read(_SILENCE):
            pass
        cost = Cost(seconds=0.0, memory=resident(terminal.process.pid))
        terminal.press("\x11")
        terminal.wait()
    return cost


def _floor(folder: Path) -> Cost:
    return first_paint(minimal.__name__, minimal.LINE, folder)


def _first_row(place: Path) -> str:
    """The first words of the newest session's title."""
    index = Index(gemini_home({"GEMINI_CLI_HOME": str(place)}), cache=None)
    newest = index.quick(project=None, limit=1).sessions[0]
    return clean_line(newest.title)[:12]


def fill_cache(place: Path) -> None:
    """Read the store of a home folder, so that its sessions are in the cache."""
    index = Index(place / ".gemini", cache=place / "cache" / "gemtui")
    index.load(publish=lambda snapshot: None, cancelled=lambda: False)
    index.close()
