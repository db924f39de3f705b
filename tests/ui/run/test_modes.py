"""The mode beside the prompt: one key for all, kept for a folder; a plan is carried out."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from gemtui.agent.folder_options import options_for, remember_mode
from gemtui.agent.options import AgentOptions
from gemtui.extension.status import ExtensionState, HookState
from gemtui.paths import runs_dir
from gemtui.policy.model.rules import ApprovalMode
from gemtui.runs.gate import questions
from gemtui.runs.listing import list_runs
from gemtui.ui.kit.text_area import ChangeScreen
from gemtui.ui.run import next_run
from tests.fake_cli import FakeCli, says
from tests.patience import PATIENCE
from tests.ui.run.test_screen import END, START, runner


async def test_one_key_goes_through_the_modes_and_a_run_keeps_a_safe_one(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    fake_cli(START, says("Look."), END)
    async with runner(home, project) as me:
        await me.sees("mode default")
        for word in ("ask", "auto_edit", "plan", "yolo", "ask", "auto_edit", "plan"):
            await me.does("shift+tab", f"mode {word}")
        assert options_for(project) is None
        await me.ask("how?")
        await me.ended()
        kept = options_for(project)
        assert kept is not None
        assert kept.approval_mode is ApprovalMode.PLAN
        await me.sees("^s carry it out")
        await me.does("ctrl+s", "mode auto_edit", "Carry out the plan.")
        await me.all_ended(2)
        await me.lacks("carry it out")
    remember_mode(AgentOptions(cwd=project, approval_mode="yolo"))
    assert options_for(project) == kept


async def test_a_new_run_asks_where_the_extension_is_ready(
    home: Path, project: Path, fake_cli: FakeCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_cli()
    ready = ExtensionState(state=HookState.READY, folder=home, link=home, source=home, problem=None)
    monkeypatch.setattr(next_run, "extension_state", lambda *_, **__: ready)
    async with runner(home, project) as me:
        await me.sees("mode ask")
        assert me.pane.options.ask
        await me.does("shift+tab", "mode auto_edit  asks me")


async def test_the_demo_leaves_out_the_mode_that_asks_and_says_why_it_is_refused(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    fake_cli()
    async with runner(home, project) as me:
        await me.sees("mode default")
        me.app.start = structs.replace(me.app.start, demo=True)
        for word in ("auto_edit", "plan", "yolo", "default"):
            await me.does("shift+tab", f"mode {word}")
        await me.ask("/mode ask")
        await me.is_told(next_run.DEMO_DOES_NOT_ASK)
        assert not me.pane.options.ask


async def test_after_a_run_that_could_not_ask_the_box_shows_the_mode_that_applies(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    fake_cli(START, says("Fine."), END)
    async with runner(home, project) as me:
        await me.does("shift+tab", "mode ask")
        await me.ask("go")
        await me.sees("Install the extension?")
        await me.does("n", "This run can't ask for your approval", "The reason: ")
        await me.press("down", "enter")
        await me.ended()
        await me.sees("mode default")


async def test_keys_typed_on_while_dialogs_appear_answer_none_of_them(
    home: Path, project: Path, fake_cli: FakeCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_cli(START, says("Fine."), END)
    monkeypatch.setattr(questions, "QUIET", PATIENCE)
    (home / ".gemini/trustedFolders.json").unlink()
    async with runner(home, project) as me:
        await me.does("shift+tab", "mode ask")
        await me.type("go")
        await me.burst("\r")
        typed = ""
        for question, answer in (
            ("Trust this folder?", "down enter"),
            ("Install the extension?", "n"),
        ):
            await me.sees(question)
            await me.burst("yni\r\x1b[B\r\x1b[200~d\x1b[201~")
            typed += "ynid"
            await me.sees(question)
            assert me.pane.prompt.text == f"go{typed}"
            with monkeypatch.context() as paused:
                paused.setattr(questions, "QUIET", 0.0)
                await me.press(*answer.split())
            await me.lacks(question)
        await me.is_told("only just appeared")
        await me.sees("This run can't ask for your approval")
        await me.burst("\r\x1b[27u")
        await me.lacks("This run can't ask for your approval")
        assert not list_runs(runs_dir())


async def test_each_run_keeps_its_draft_and_is_found_by_all_its_prompts(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    fake_cli(START, says("Fine."), END)
    async with runner(home, project) as me:
        await me.ask("first line")
        await me.sees("✓ done")
        await me.type("draft of the first")
        await me.press("ctrl+n")
        await me.until(lambda: me.pane.prompt.text == "")
        me.pane.prompt.set_text("second\nwith a needle")
        await me.press("enter")
        await me.until(lambda: len(list_runs(runs_dir())) == 2)
        await me.sees("with a needle", "✓ done")
        await me.does("ctrl+l", "Runs", "first line", "second")
        await me.press("slash")
        await me.type("needle")
        await me.lacks("first line")
        await me.press("escape", "down", "enter")
        await me.until(lambda: me.pane.prompt.text == "draft of the first")


async def test_each_session_to_be_continued_keeps_its_draft(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    fake_cli(START, says("Fine."), END)
    async with runner(home, project) as me:
        await me.type("new")
        for session in "ab":
            me.pane.prepare(project, resume=session)
            assert me.pane.prompt.text == ""
            await me.type(f"for {session}")
        me.pane.prepare(project)
        assert me.pane.prompt.text == "new"
        me.pane.prepare(project, resume="a")
        assert me.pane.prompt.text == "for a"


async def test_a_queued_prompt_is_not_sent_while_it_is_edited(
    home: Path, project: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    fake_cli(START, says("Fine."), f"until:{gate}", END)
    async with runner(home, project) as me:
        await me.ask("go")
        await me.sees("Fine.")
        await me.ask("one")
        await me.sees("1 queued")
        await me.press("ctrl+r", "e")
        await me.on(ChangeScreen)
        gate.touch()
        await me.until(lambda: me.app.runs.registry.runs[0].over)
        assert len(list_runs(runs_dir())) == 1
        await me.type(" more")
        await me.press("ctrl+s")
        await me.until(lambda: [run.prompt for run in list_runs(runs_dir())] == ["one more", "go"])
