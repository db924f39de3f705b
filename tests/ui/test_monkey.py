"""A monkey at the app: whatever is pressed, it lives, draws, and leaves the store alone."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.drivers.headless_driver import HeadlessDriver
from textual.events import Resize
from textual.geometry import Size

from gemtui.config import Config, Scope
from gemtui.demo import write_store
from gemtui.ui.app import GemtuiApp
from gemtui.ui.kit.app_base import DialogScreen, Start
from gemtui.ui.kit.bars import FooterLine
from tests import hostile
from tests.deep import some_of
from tests.fake_cli import INIT, OK, FakeCli, ends, says, uses
from tests.monkey import Move, moves
from tests.ui.people import type_at

KEYS = int(os.environ.get("GEMTUI_MONKEY_KEYS", "0")) or some_of(1000)
"""Keys at each store; fifty thousand find what a thousand do not."""
SEED = int(os.environ.get("GEMTUI_MONKEY_SEED", "1"))
SHARES = 2
"""Monkeys at each store, which part the keys: they may sit at different cores."""


@dataclass
class Cage:
    """What a monkey is let at: a store and a project, and what stood in the store before."""

    home: Path
    project: Path
    before: dict[Path, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.before = content(self.home)

    def changed(self) -> list[Path]:
        """What has been written in the store; deleting is done only after a question."""
        now = content(self.home)
        return [path for path, what in now.items() if self.before.get(path) != what]


def content(folder: Path) -> dict[Path, str]:
    """All files below a folder, each with what is in it."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {path: sha256(path.read_bytes()).hexdigest() for path in files}


@asynccontextmanager
async def noticing() -> AsyncIterator[None]:
    """Errors that tasks leave behind are errors."""
    found: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: found.append(context))
    try:
        yield
    finally:
        loop.set_exception_handler(None)
    assert not found, found


async def play(cage: Cage, wanted: Iterable[Move]) -> None:
    """Do all of it, with another app where one was left; the first error comes with the moves."""
    waiting, played = iter(wanted), list[Move]()
    try:
        async with noticing():
            while await visit(cage, waiting, played):
                pass
            assert cage.changed() == []
    except Exception as error:
        raise AssertionError(f"after {len(played)} moves: {played}") from error


async def visit(cage: Cage, waiting: Iterable[Move], played: list[Move]) -> bool:
    """One app, until it is left (True: there may be more to do) or nothing waits."""
    start = Start(home=cage.home, project=cage.project)
    app = GemtuiApp(start, Config(scope=Scope.EVERYWHERE))
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        for move in waiting:
            played.append(move)
            do(app, move)
            await (pilot.pause() if len(played) % 10 == 0 else pilot._wait_for_screen())
            check(app)
            if len(played) % 200 == 0:
                assert cage.changed() == []
            if app._exit:
                return True
        await pilot.pause()
        for run in app.runs.alive:
            run.run.abort()
            await run.run.wait()
    return False


def do(app: App[None], move: Move) -> None:
    """As the driver of a terminal does it. No file is written outside of the cage."""
    driver = app._driver
    assert isinstance(driver, HeadlessDriver)
    if isinstance(move, tuple):
        driver._size = size = Size(*move)
        app.post_message(Resize(size, size))
        return
    if isinstance(app.screen, DialogScreen) or "e" in move:
        move = move.replace("/", " ")
    type_at(app, move)


def check(app: App[None]) -> None:
    """Nothing has failed, and what is shown can be drawn."""
    if app._exception is not None:
        raise app._exception
    if not app._exit:
        app.screen._compositor.render_strips()
        for line in app.screen.query(FooterLine):
            line.render()


@pytest.fixture
def cli(fake_cli: FakeCli) -> None:
    """Runs end by themselves, and soon."""
    fake_cli(f"print:{INIT}", says("Hm."), uses("t", "write_file", "a"), ends("t"), f"print:{OK}")


@pytest.fixture(params=["calm", "hostile"])
def cage(
    request: pytest.FixtureRequest,
    home: Path,
    tmp_path: Path,
    cli: None,
    monkeypatch: pytest.MonkeyPatch,
) -> Cage:
    if request.param == "calm":
        write_store(home, now=datetime(2026, 11, 21, tzinfo=UTC))
    else:
        hostile.make_store(home)
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("EDITOR", "true")
    return Cage(home / ".gemini", project)


@pytest.mark.timeout(120 + KEYS)
@pytest.mark.parametrize("share", range(SHARES))
async def test_a_monkey_finds_nothing(cage: Cage, share: int) -> None:
    """The moves that led to a failure are in its error; the seed is SEED + share."""
    await play(cage, moves(SEED + share, KEYS // SHARES))
