"""The folder in which runs start: the one that gemtui was opened on, or that the person chose."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from gemtui.agent.options import AgentOptions
from gemtui.agent.trust import remember
from gemtui.paths import runs_dir
from gemtui.policy.model.rules import ApprovalMode
from gemtui.runs.listing import list_runs
from gemtui.ui.run.options_dialog import OptionsScreen
from tests.fake_cli import FakeCli, says
from tests.ui.people import NARROW, person
from tests.ui.run.test_screen import END, START, Runner, runner


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Another folder that the person trusts."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    remember(folder)
    return folder


async def test_a_run_at_work_elsewhere_moves_no_prompt_to_its_folder(
    home: Path, project: Path, elsewhere: Path, fake_cli: FakeCli
) -> None:
    fake_cli(START, says("I work elsewhere."), "wait")
    async with runner(home, elsewhere) as first:
        await first.ask("work")
        await first.sees("I work elsewhere.")
        async with person(home / ".gemini", NARROW, project=project) as me:
            await me.until(lambda: me.app.runs.alive)
            await me.hears("press 2, then ctrl+l", 1)
            await me.press("2")
            await me.sees(
                "New run in", f"1 run is active in {elsewhere}", "enter starts a run", "/project"
            )
            fake_cli(START, says("I work here."), END)
            here = Runner(me.app, me.pilot)
            await here.ask("here")
            await here.sees("I work here.")
            await here.does("ctrl+l", "Runs", "running")
            await here.does("down enter", "I work elsewhere.", "elsewhere")
            await here.press("ctrl+n")
            await here.ask("here again")
            await here.until(lambda: len(list_runs(runs_dir())) == 3)
    begun = {run.prompt: run.cwd for run in list_runs(runs_dir())}
    assert begun == {"work": str(elsewhere), "here": str(project), "here again": str(project)}


async def test_options_chosen_in_one_folder_are_used_in_no_other(
    home: Path, project: Path, elsewhere: Path, fake_cli: FakeCli
) -> None:
    fake_cli()
    async with runner(home, project) as me:
        next_run = me.pane.next_run
        me.pane.new_run_in(elsewhere)
        next_run.use_mode("yolo")
        next_run.options = AgentOptions(cwd=elsewhere, approval_mode="yolo", trust=True, resume="a")
        me.pane.new_run_in(project)
        await next_run.wait_loaded()
        assert next_run.options == AgentOptions(cwd=project)
        me.pane.new_run_in(elsewhere)
        await next_run.wait_loaded()
        assert next_run.options == AgentOptions(cwd=elsewhere, approval_mode=ApprovalMode.YOLO)


async def test_a_new_run_starts_in_the_folder_chosen_in_the_dialog_not_in_that_of_a_session(
    home: Path, project: Path, elsewhere: Path, fake_cli: FakeCli
) -> None:
    fake_cli()
    async with runner(home, project) as me:
        me.pane.prepare(elsewhere, resume="a")
        await me.sees("continues session a")
        await me.press("ctrl+n")
        assert me.pane.next_run.folder == project
        await me.press("ctrl+o")
        await me.on(OptionsScreen)
        me.app.screen.query_one("#cwd", Input).value = str(elsewhere)
        await me.press("ctrl+s")
        await me.until(lambda: me.app.screen is me.pane)
        await me.does("ctrl+n", "New run in", "/elsewhere")
        assert me.pane.next_run.folder == elsewhere
