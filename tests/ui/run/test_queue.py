"""Prompts that wait behind a run, at the keys, with a real child in the place of the CLI."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import shutil
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from textual.widgets import Input, TextArea

from gemtui.agent.prompt_queue import PromptQueue
from gemtui.paths import runs_dir
from gemtui.runs.listing import list_runs, prune_runs
from gemtui.ui.kit.text_area import ChangeScreen
from gemtui.ui.run.options_dialog import OptionsScreen
from gemtui.ui.run.queue_dialog import QueueScreen
from tests.fake_cli import INIT, OK, FakeCli, says
from tests.patience import PATIENCE
from tests.ui.people import BOTH, WIDE, person, type_at
from tests.ui.run.test_screen import Runner, runner

START = f"print:{INIT}"
END = f"print:{OK}"
FAILS = 'print:{"type":"result","status":"error","error":{"message":"no"}}'


class Queuer(Runner):
    """A person with prompts that wait."""

    async def queue(self, *prompts: str) -> None:
        for prompt in prompts:
            await self.ask(prompt)
            await self.until(lambda: self.pane.prompt.text == "" and not self.pane.asking)

    def waits(self) -> list[str]:
        run = self.pane.run_shown
        assert run is not None
        return [each.text for each in run.run.queue.prompts()]

    async def listed(self) -> None:
        """Open the list of what waits."""
        await self.until(lambda: self.pane.can("queue"))
        await self.press("ctrl+r")
        await self.on(QueueScreen)

    async def all_done(self, *prompts: str) -> None:
        """All of these have been sent, one after the other, and nothing goes on."""
        registry = self.app.runs.registry
        await self.until(lambda: sent() == [*prompts] and all(run.over for run in registry.runs))


def sent() -> list[str]:
    """The prompts of all runs, the oldest first."""
    return [run.prompt for run in reversed(list_runs(runs_dir()))]


@asynccontextmanager
async def queuer(
    home: Path, project: Path, fake_cli: FakeCli, *steps: str, size: tuple[int, int] = WIDE
) -> AsyncIterator[Queuer]:
    """Somebody whose run goes on, and ends in these steps."""
    fake_cli(START, says("Begun."), *steps)
    async with runner(home, project, size) as found:
        me = Queuer(found.app, found.pilot)
        await me.ask("go")
        await me.sees("Begun.")
        yield me


async def test_what_waits_is_reordered_changed_dropped_and_sent_one_by_one(
    home: Path, project: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    async with queuer(home, project, fake_cli, f"until:{gate}", END, size=BOTH) as me:
        await me.queue("one", "two", "tree", "four")
        await me.sees("4 queued")
        await me.listed()
        await me.sees("Queue", "1 one", "4 four")
        await me.does("d", "1 two", "2 tree", "3 four")
        await me.does("end K", "2 four", "3 tree")
        await me.does("K", "1 four", "2 two")
        await me.press("end", "e")
        await me.on(ChangeScreen)
        me.app.screen.query_one(TextArea).text = "three"
        await me.does("ctrl+s", "1 four", "2 two", "3 three")
        assert "d remove   s send" not in me.text
        await me.press("escape")
        fake_cli(START, says("Answered."), END)
        gate.touch()
        await me.all_done("go", "four", "two", "three")
        await me.sees("three", "Answered.", "✓ done")
        assert "waiting" not in me.text
        runs = list_runs(runs_dir())
        assert {(each.folder.request().about or {}).get("resume") for each in runs} == {None, "s1"}  # type: ignore[union-attr]


async def test_a_prompt_for_an_agent_that_is_kept_is_sent_to_it_at_once(
    home: Path, project: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    async with queuer(home, project, fake_cli, f"until:{gate}", END, size=BOTH) as me:
        run = me.pane.run_shown
        assert run is not None
        run.run.folder.keep_until(time.time() + 600)
        await me.sees("✓ waits for your next prompt until", "prompt: enter continues session s1")
        await me.queue("one")
        await me.sees("1 queued")
        assert "Queued" not in me.text
        run.run.folder.keep_until(None)
        await me.sees("1 queued", "running")
        gate.touch()
        await me.all_done("go", "one")


async def test_behind_a_bad_end_all_waits_until_a_key_sends_it(
    home: Path, project: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    async with queuer(home, project, fake_cli, f"until:{gate}", FAILS, size=BOTH) as me:
        await me.queue("one", "two", "three")
        gate.touch()
        await me.sees("✗ failed", "3 waiting", "3 queued prompts (ctrl+r")
        assert sent() == ["go"]
        fake_cli(START, says("Answered."), END)
        await me.listed()
        await me.sees("d remove   s send", "with model auto")
        await me.press("down", "s")
        await me.all_done("go", "two", "one", "three")
        await me.sees("Answered.", "✓ done")


async def test_text_typed_while_an_editor_opens_is_for_the_editor(
    home: Path, project: Path, fake_cli: FakeCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_open, editing = threading.Event(), threading.Event(), PromptQueue.editing

    @contextmanager
    def slowly(queue: PromptQueue) -> Iterator[None]:
        begun.set()
        may_open.wait(PATIENCE)
        with editing(queue):
            yield

    monkeypatch.setattr(PromptQueue, "editing", slowly)
    async with queuer(home, project, fake_cli, "wait") as me:
        await me.queue("one", "two")
        await me.listed()
        type_at(me.app, "e d")
        assert await asyncio.to_thread(begun.wait, PATIENCE)
        await me.until(lambda: me.app.screen is me.pane)
        type_at(me.app, "dd")
        may_open.set()
        await me.on(ChangeScreen)
        await me.until(lambda: me.app.screen.query_one(TextArea).text == "one ddd")
        assert me.waits() == ["one", "two"]
        assert me.pane.prompt.text == ""


async def test_a_prompt_typed_behind_a_bad_end_goes_first(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    async with queuer(home, project, fake_cli, "wait") as me:
        await me.queue("one")
        await me.does("ctrl+c ctrl+c", "◌ interrupted", "1 queued prompt")
        await me.ended()
        fake_cli(START, says("Answered."), END)
        await me.ask("typed")
        await me.all_done("go", "typed", "one")


async def test_it_is_sent_while_another_run_is_shown(
    home: Path, project: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    async with queuer(home, project, fake_cli, f"until:{gate}", END) as me:
        await me.queue("one", "two")
        await me.press("ctrl+n")
        await me.type("half a pro")
        fake_cli(START, says("Answered."), END)
        gate.touch()
        await me.all_done("go", "one", "two")
        assert me.pane.prompt.text == "half a pro"
        assert me.pane.run_shown is None


async def test_it_is_sent_with_the_options_chosen_last(
    home: Path, project: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    async with queuer(home, project, fake_cli, f"until:{gate}", END) as me:
        await me.queue("one", "two")
        await me.press("ctrl+o")
        await me.on(OptionsScreen)
        me.app.screen.query_one("#model", Input).value = "other"
        await me.does("ctrl+s", "model other")
        await me.until(lambda: not me.pane.asking)
        fake_cli(START, says("Answered."), END)
        gate.touch()
        await me.all_done("go", "one", "two")
        assert [run.model for run in list_runs(runs_dir())] == ["other", "other", None]


async def test_of_two_gemtui_one_sends_and_both_show_it(
    home: Path, project: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    gate, second = tmp_path / "gate", tmp_path / "second"
    async with queuer(home, project, fake_cli, f"until:{gate}", END) as me:
        await me.queue("one", "two")
        async with person(home / ".gemini", WIDE, project=project) as other:
            await other.until(lambda: other.app.runs.alive)
            await other.does("2", "Begun.", "2 queued")
            fake_cli(START, says("Answered."), f"until:{second}", END)
            gate.touch()
            await me.sees("one", "Answered.", "1 queued")
            await other.sees("one", "Answered.", "1 queued")
            second.touch()
            await me.all_done("go", "one", "two")
            await other.until(lambda: not other.app.runs.alive)
            await asyncio.gather(me.sees("✓ done"), other.sees("two", "✓ done"))
        assert sent() == ["go", "one", "two"]


async def test_what_waits_when_nobody_looks_is_shown_by_the_next_gemtui(
    home: Path, project: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    async with queuer(home, project, fake_cli, f"until:{gate}", END) as me:
        await me.queue("one", "two")
        await me.sees("2 queued")
        await me.does("ctrl+q", "A run is still active", "the queue is kept")
        left = me.pane.run_shown
        assert left is not None
        await me.press("down", "enter")
        await me.until(lambda: me.app._exit)
    gate.touch()
    await left.run.wait()
    fake_cli(START, says("Answered."), END)
    async with person(home / ".gemini", WIDE, project=project) as found:
        me = Queuer(found.app, found.pilot)
        await me.is_told("2 queued prompts")
        await me.press("2")
        await me.until(lambda: me.app.runs.registry is not None)
        await me.does("ctrl+l", "2 unsent", "go")
        await me.does("enter", "Begun.", "2 waiting")
        assert sent() == ["go"]
        await me.until(lambda: me.pane.run_shown and me.pane.run_shown.over)
        await me.listed()
        await me.press("s")
        await me.all_done("go", "one", "two")
    assert prune_runs(runs_dir(), runs=1) == 2


async def test_what_is_typed_in_one_burst_is_queued_one_by_one(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    async with queuer(home, project, fake_cli, "wait") as me:
        await me.burst("one\rtwo\rthree\rhalf")
        await me.sees("3 queued")
        assert me.waits() == ["one", "two", "three"]
        assert me.pane.prompt.text == "half"


async def test_one_that_is_kept_too_late_is_sent_all_the_same(
    home: Path, project: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    async with queuer(home, project, fake_cli, f"until:{gate}", END) as me:
        run = me.pane.run_shown
        assert run is not None
        run.run.queue.path.mkdir()
        with (run.run.queue.path / "changing.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            await me.ask("late")
            fake_cli(START, says("Answered."), END)
            gate.touch()
            await me.until(lambda: run.over)
            assert sent() == ["go"]
        await me.all_done("go", "late")
        await me.sees("Answered.", "✓ done")


async def test_the_end_of_gemtui_comes_before_a_run_is_followed(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    async with queuer(home, project, fake_cli, END) as me:
        await me.all_done("go")
    async with person(home / ".gemini", WIDE, project=project) as found:
        registry = found.app.runs.registry
        assert await registry.attach((await registry.find())[0])
        found.app.workers.cancel_all()
        assert all(each.is_cancelled for each in found.app.workers if each.group == "runs")
    gc.collect()  # it would tell of what was never awaited


async def test_where_there_is_no_session_yet_a_key_begins_one(
    home: Path, project: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    fake_cli(f"until:{gate}", "exit:1")
    async with runner(home, project) as found:
        me = Queuer(found.app, found.pilot)
        await me.ask("go")
        await me.sees("^c stop")
        await me.queue("one", "two")
        gate.touch()
        await me.sees("✗ failed", "2 waiting")
        fake_cli(START, says("Answered."), END)
        await me.listed()
        await me.press("s")
        await me.all_done("go", "one", "two")


async def test_a_run_that_asks_nobody_takes_no_word_in_its_midst(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    async with queuer(home, project, fake_cli, "wait") as me:
        await me.type("faster")
        await me.press("ctrl+s")
        await me.is_told("Only runs with")
        assert me.pane.prompt.text == "faster"


async def test_what_can_not_be_kept_stands_in_the_prompt(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    async with queuer(home, project, fake_cli, "wait") as me:
        assert me.pane.run_shown is not None
        place = me.pane.run_shown.run.queue.path
        place.write_text("in the way")
        await me.ask("one")
        await me.is_told("back in the prompt")
        assert me.pane.prompt.text == "one"
        place.unlink()
        await me.does("enter", "1 queued")
        shutil.rmtree(place)
        await me.lacks("1 queued")


async def test_what_can_not_begin_waits_and_says_why(
    home: Path, project: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    async with queuer(home, project, fake_cli, f"until:{gate}", END) as me:
        await me.queue("one")
        fake_cli(START, END).unlink()
        gate.touch()
        await me.is_told("1 queued prompt not sent, because")
        await me.sees("1 waiting")
        assert me.waits() == ["one"]
