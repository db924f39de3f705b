"""What becomes of errors that no pane expected: in workers, in handlers and in keys."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.app import ComposeResult
from textual.message import Message
from textual.screen import Screen
from textual.worker import WorkerFailed

from gemtui.config import Config
from gemtui.errors import PolicyError
from gemtui.ui.kit.app_base import AppBase, Start, start_worker
from gemtui.ui.kit.screens import FullScreen
from gemtui.ui.run import next_run

ERRORS = [
    (
        OSError(28, "No space left on device", "/home/1.json"),
        "/home/1.json: No space left on device",
    ),
    (PolicyError("/home/work.toml: it does not exist"), "/home/work.toml: it does not exist"),
]


class Asked(Message):
    """Asks a screen or the app for what fails."""


class Pane(FullScreen[None]):
    def compose(self) -> ComposeResult:
        yield from self.framed()

    def on_asked(self) -> None:
        assert isinstance(self.app, Failing)
        raise self.app.error


class Failing(AppBase):
    """An app in which everything raises `error`."""

    def __init__(self, home: Path, error: Exception) -> None:
        super().__init__(Start(home=home), Config(), lambda: datetime.now(UTC))
        self.error = error
        self.said: list[str] = []

    def get_default_screen(self) -> Screen[Any]:
        return Pane()

    def notify(self, message: str, **options: Any) -> None:
        self.said.append(message)

    async def fail(self) -> None:
        raise self.error

    async def action_fail(self) -> None:
        raise self.error

    def on_asked(self) -> None:
        raise self.error


def in_worker(app: Failing) -> None:
    start_worker(app.screen, app.fail)


def in_handler_of_screen(app: Failing) -> None:
    app.screen.post_message(Asked())


def in_handler_of_app(app: Failing) -> None:
    app.post_message(Asked())


def in_action(app: Failing) -> None:
    app.call_later(app.run_action, "app.fail")


@pytest.mark.parametrize(("error", "words"), ERRORS)
@pytest.mark.parametrize("begin", [in_worker, in_handler_of_screen, in_handler_of_app, in_action])
async def test_an_error_of_a_file_is_reported_each_time_and_the_app_goes_on(
    tmp_path: Path, error: Exception, words: str, begin: Callable[[Failing], None]
) -> None:
    app = Failing(tmp_path, error)
    async with app.run_test() as pilot:
        for _ in range(2):
            begin(app)
            with suppress(WorkerFailed):
                await app.workers.wait_for_complete()
            await pilot.pause()
        assert app.said == [words] * 2


@pytest.mark.parametrize("begin", [in_worker, in_handler_of_screen])
async def test_a_mistake_in_the_program_ends_the_app(
    tmp_path: Path, begin: Callable[[Failing], None]
) -> None:
    app = Failing(tmp_path, KeyError("a mistake"))

    async def run() -> None:
        async with app.run_test() as pilot:
            begin(app)
            await pilot.pause()

    with pytest.raises((KeyError, WorkerFailed), match="a mistake"):
        await run()
    assert app.said == []


async def test_a_worker_that_failed_leaves_its_error_where_it_said_that_it_reads(
    tmp_path: Path,
) -> None:
    error, words = ERRORS[0]
    app = Failing(tmp_path, error)
    async with app.run_test() as pilot:
        pane = app.screen
        assert isinstance(pane, Pane)
        pane.show_status("reading")
        in_worker(app)
        await pilot.pause()
        assert words in str(pane.status.render())
        await pane.status.remove()  # as while the screen closes
        in_worker(app)
        await pilot.pause()
        assert app.said == [words] * 2


async def test_options_that_could_not_be_read_keep_no_dialog_waiting(tmp_path: Path) -> None:
    app = Failing(tmp_path, ERRORS[0][0])
    async with app.run_test():
        start_worker(app.screen, app.fail, group=next_run._USUAL)
        waiting: Any = SimpleNamespace(screen=app.screen)
        await next_run.NextRun.wait_loaded(waiting)
