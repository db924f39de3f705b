"""A CLI that is started while a prompt is typed: when there is one, and which run it becomes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gemtui.agent.options import AgentOptions
from gemtui.config import Config
from gemtui.errors import OptionError
from gemtui.paths import runs_dir
from gemtui.runs.listing import list_runs
from tests.fake_cli import FakeCli, says
from tests.ui.people import NARROW, person
from tests.ui.run.test_screen import END, START, Runner


@asynccontextmanager
async def typist(home: Path, project: Path) -> AsyncIterator[Runner]:
    async with person(home / ".gemini", NARROW, Config(), project=project) as me:
        somebody = Runner(me.app, me.pilot)
        await somebody.does("2", "enter starts a run", "gemini 0.61.0")
        yield somebody


def waiting() -> set[str]:
    return {file.parent.name for file in runs_dir().glob("*/waiting.json")}


async def one_waits(me: Runner, *, but: str = "") -> str:
    """Wait until there is one waiting CLI, another one than before; return its id."""
    await me.until(lambda: len(waiting()) == 1 and but not in waiting())
    (id,) = waiting()
    return id


async def test_a_cli_that_was_started_for_a_prompt_becomes_its_run(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    fake_cli("stdin", "print:", START, says("Fine."), END)
    async with typist(home, project) as me:
        await me.type("he")
        first = await one_waits(me)
        await me.type("llo")
        await me.does("enter", "Fine.", "done, with a warning")
        (run,) = list_runs(runs_dir())
        assert run.id == first
        assert run.folder.stdout.read_text().startswith("hello\n")


async def test_a_cli_is_replaced_when_it_would_not_be_the_same_run(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    fake_cli("stdin")
    async with typist(home, project) as me:
        await me.type("hello")
        first = await one_waits(me)
        me.pane.prompt.set_text("")
        await me.type("hi")
        me.pane.next_run.use_model("another")
        second = await one_waits(me, but=first)
        me.pane.prompt.set_text("")
        await me.type("other")
        await one_waits(me, but=second)
        me.pane.prompt.set_text("/model")
        await me.until(lambda: not waiting())
        await me.until(lambda: not list(runs_dir().iterdir()))


async def test_no_cli_waits_while_a_run_works(home: Path, project: Path, fake_cli: FakeCli) -> None:
    fake_cli("stdin", "print:", START, "wait")
    async with typist(home, project) as me:
        await me.type("go")
        first = await one_waits(me)
        await me.press("enter")
        await me.until(lambda: not waiting())
        await me.until(lambda: me.pane.prompt.text == "" and not me.pane.asking)
        await me.type("go on")
        await me.does("enter", "1 queued")
        assert me.pane.readying.wanted() is None
        assert {path.name for path in runs_dir().iterdir()} == {first}


async def test_no_cli_waits_in_a_folder_that_is_not_trusted(
    home: Path, project: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    fake_cli("stdin")
    other = tmp_path / "other"
    other.mkdir()
    async with typist(home, project) as me:
        with pytest.raises(OptionError, match="not trusted"):
            await me.app.runs.registry.make_ready(("h", AgentOptions(cwd=other)), 60)
        assert not runs_dir().exists()
