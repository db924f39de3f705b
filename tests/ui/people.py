"""A person at the whole app, on a copy of the recorded store, with the time standing still."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from pytest_textual_snapshot import SVGImageExtension  # type: ignore[import-untyped]
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.pilot import Pilot

from gemtui.config import Config
from gemtui.sessions.catalog.summary import Summary
from gemtui.text import clean_line
from gemtui.ui.app import GemtuiApp
from gemtui.ui.kit.app_base import Start
from gemtui.ui.kit.bars import BarLine
from gemtui.ui.run.screen import RunScreen
from gemtui.ui.sessions.list import SessionList
from gemtui.ui.sessions.screen import SessionsScreen
from gemtui.ui.transcript.view import TranscriptView
from tests.patience import PATIENCE
from tests.ui.quick_pilot import drawn, settle

S = TypeVar("S")
Kind = type[S]
"""A class, in `Person`, where `type` is what a person does."""
STORE = Path(__file__).parents[1] / "data" / "sessions" / "main"
NOW = datetime(2026, 11, 21, 1, 0, tzinfo=UTC)
WIDE, NARROW = (120, 36), (80, 24)
BOTH = (0, 0)
"""For `person`: it begins wide; what is seen is then seen in the other size, where the next keys
are pressed.
"""
_MOST_PAUSES = 50
"""After so many looks, the next ones are no rarer: what is waited for needs the processor too."""


class _Text(SingleFileSnapshotExtension):
    """A screen as text, for widths: what is where, without colours."""

    file_extension = _file_extension = "txt"
    _write_mode = WriteMode.TEXT


def copy_store(folder: Path) -> Path:
    """A copy of the recorded store; its `.gemini`."""
    shutil.copytree(STORE, folder / "home")
    return folder / "home" / ".gemini"


def _unbroken(text: str) -> str:
    """Return a text without blanks, borders and scroll bars: where it wraps depends on how long
    paths are.
    """
    return "".join(re.sub("[│▀▄█]", " ", text).split())


_HEARD = WeakKeyDictionary[App[Any], list[str]]()
_TURNING = WeakSet[App[Any]]()
"""Those of `BOTH` sizes."""


def _listen(app: GemtuiApp) -> None:
    """Keep what it says: on a busy machine it is gone before somebody looks."""
    say, heard = app.show_message, _HEARD.setdefault(app, [])

    def keep(text: str, **how: Any) -> None:
        heard.append(clean_line(text))
        say(text, **how)

    app.show_message = keep  # type: ignore[method-assign]


def keys(words: str) -> Iterator[str]:
    """Read the keys of a story: their names, and `'letters` to type."""
    for word in words.split():
        yield from word[1:] if word.startswith("'") else (word,)


def type_at(app: App[Any], text: str) -> None:
    """What comes from the terminal in one read, as its driver takes it."""
    driver, parser = app._driver, XTermParser()
    assert driver is not None
    events = list(parser.feed(text))
    for event in events if parser.is_eof else (*events, *parser.feed("")):
        driver.process_message(event)


@dataclass
class Person:
    """Presses keys and looks at the screen."""

    app: GemtuiApp
    pilot: Pilot[None]

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def burst(self, text: str) -> None:
        """Type all of this in one read."""
        type_at(self.app, text)
        await self.pilot.pause()
        await self.until(lambda: not self.app.has_pending_keys)
        await self.pilot.pause()

    async def comes_home(self) -> None:
        """Close what is open, and come back to the sessions."""
        await self.press("escape", "escape", "escape", "1")
        await self.until(lambda: isinstance(self.app.screen, SessionsScreen))

    async def command(self, name: str) -> None:
        """Run the command of this name by the palette."""
        await self.press("ctrl+p")
        await self.type(name)
        await self.press("enter")

    async def type(self, text: str) -> None:
        await self.press(*("space" if char == " " else char for char in text))

    async def does(self, words: str, *texts: str) -> None:
        """Press keys (see `keys`), and wait for what is then seen."""
        await self.press(*keys(words))
        await self.sees(*texts)

    async def walks(self, steps: Iterable[Sequence[str]]) -> None:
        """Do these steps of a story: keys, and what is then seen."""
        for words, *texts in steps:
            await self.does(words, *texts)

    async def on(self, kind: Kind[S]) -> S:
        """Wait for a screen of this kind."""
        await self.until(lambda: isinstance(self.app.screen, kind))
        screen = self.app.screen
        assert isinstance(screen, kind)
        return screen

    async def lacks(self, text: str) -> None:
        """Wait until a text is no longer on the screen."""
        await self.until(lambda: text not in self.text)

    async def is_told(self, text: str) -> None:
        """Wait until the app has said something with this text, or says it now."""
        await self.until(lambda: any(text in message for message in self.said))

    async def until(self, holds: Callable[[], Any]) -> None:
        """Wait until something holds; the screen is in the error if it never does."""
        pauses = 0
        try:
            async with asyncio.timeout(PATIENCE):
                while not holds():
                    pauses += 1
                    await asyncio.sleep(min(pauses, _MOST_PAUSES) / 1000)
                    await settle(self.pilot)
        except TimeoutError:
            raise AssertionError(f"never came, instead:\n{self.text}\n{self.said}") from None

    async def sees(self, *texts: str) -> None:
        """Wait for texts, wherever their lines break: a long path may wrap anywhere."""
        await self._see(texts)
        if self.app in _TURNING:
            await self.pilot.resize_terminal(*(NARROW if self.app.size == WIDE else WIDE))
            await self._see(texts)

    @property
    def _behind_messages(self) -> str:
        """What a message covers: in tests it stays until a key, so whatever comes behind it would
        never be seen.
        """
        covered = [bar for bar in self.app.screen.query(BarLine) if bar.told is not None]
        return " ".join(part.plain for bar in covered for part in (*bar._left, *bar._right))

    async def _see(self, texts: tuple[str, ...]) -> None:
        wanted = [_unbroken(text) for text in texts]

        def seen() -> bool:
            shown = _unbroken(self.text) + _unbroken(self._behind_messages)
            return all(text in shown for text in wanted)

        await self.until(seen)

    async def looks_as(self, snapshot: SnapshotAssertion) -> None:
        """Compare the screen with the accepted picture."""
        pictures = snapshot.use_extension(SVGImageExtension)
        await self._equals(pictures, lambda: self.app.export_screenshot(title="gemtui"))

    async def reads_as(self, snapshot: SnapshotAssertion) -> None:
        """Compare the lines of the screen with the accepted ones."""
        lines = snapshot.use_extension(_Text)
        await self._equals(
            lines, lambda: "".join(f"{line.rstrip()}\n" for line in self.text.splitlines())
        )

    async def looks_in_both_sizes(self, snapshot: SnapshotAssertion) -> None:
        """Compare the picture of the screen, and then its lines when it has become narrow."""
        await self.looks_as(snapshot)
        await self.pilot.resize_terminal(*NARROW)
        await self.until(lambda: drawn(self.app)[0].cell_length == NARROW[0])
        await self.reads_as(snapshot)

    async def _equals(self, snapshot: SnapshotAssertion, look: Callable[[], str]) -> None:
        """Compare what is seen with what was accepted, waiting for late parts.

        Nothing tells when a thread or a program that a busy machine starves will draw again, so
        what differs is looked at again until `PATIENCE` has passed.
        """
        accepted, _ = snapshot._recall_data(snapshot.index)
        end = monotonic() + PATIENCE
        if snapshot.update_snapshots:
            await asyncio.sleep(1)  # nothing accepted tells what is late
        while True:
            await self.pilot.pause()
            seen = look()
            same = snapshot._serialize(seen) == accepted
            if same or snapshot.update_snapshots or monotonic() > end:
                break
            await asyncio.sleep(0.05)
        assert seen == snapshot, self.text

    async def painted(self, pane: RunScreen) -> None:
        """Wait until nothing more is to come of the runs, and the run pane has drawn all of it."""
        runs = [each for each in self.app.workers if each.group == "runs"]
        await self.until(lambda: all(each.is_finished for each in runs))
        pane.paint()
        await self.pilot.pause()

    @property
    def text(self) -> str:
        """The screen, as text."""
        return "\n".join(line.text for line in drawn(self.app))

    @property
    def home(self) -> SessionsScreen:
        """The sessions pane."""
        screen = self.app.screen_stack[0]
        assert isinstance(screen, SessionsScreen)
        return screen

    @property
    def has_read(self) -> bool:
        """Whether the whole store has been loaded."""
        snapshot = self.home.store.snapshot
        return snapshot is not None and snapshot.complete

    @property
    def rows(self) -> SessionList:
        return self.home.query_one(SessionList)

    @property
    def view(self) -> TranscriptView:
        return self.home.query_one(TranscriptView)

    @property
    def chosen(self) -> Summary:
        summary = self.rows.highlighted
        assert summary is not None
        return summary

    @property
    def said(self) -> list[str]:
        """What the app has said so far, the newest last, before it what lines tell just now."""
        lines = [line for screen in self.app.screen_stack for line in screen.query(BarLine)]
        told = [line.told for line in lines if line.told is not None]
        over = (str(each.message) for each in self.app._notifications)
        return [*told, *over, *_HEARD[self.app]]

    def heard(self, text: str) -> int:
        """Return how often the app has said something with this text."""
        return sum(text in said for said in _HEARD[self.app])

    async def hears(self, text: str, times: int) -> None:
        """Wait until the app has said something with this text so often."""
        await self.until(lambda: self.heard(text) >= times)


@asynccontextmanager
async def person(
    home: Path, size: tuple[int, int] = WIDE, config: Config | None = None, **start: Any
) -> AsyncIterator[Person]:
    """The app on a store, read whole, with its first rows on the screen; it takes keys."""
    app = GemtuiApp(Start(home=home, **start), config or Config(ready_minutes=0), clock=lambda: NOW)
    _listen(app)
    if size == BOTH:
        _TURNING.add(app)
    async with app.run_test(size=WIDE if size == BOTH else size) as pilot:
        somebody = Person(app, pilot)
        await somebody.until(lambda: somebody.has_read and somebody.home.takes_keys)
        await pilot.pause()
        yield somebody
        drawn(app)
        if not app._exit:
            await _end_runs(app)


async def _end_runs(app: GemtuiApp) -> None:
    """End the runs that were started here, and wait for their processes."""
    registry = app.runs._registry
    for live in registry.runs if registry is not None else ():
        if live.run._supervisor is not None:
            if live.alive:
                live.stop()
            await live.run.wait()
