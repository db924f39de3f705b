"""What is typed behind a slash: gemtui's commands act, Gemini CLI's are completed and sent."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from textual.screen import Screen

from gemtui.agent.custom_commands import custom_commands
from gemtui.policy.model.rules import ApprovalMode
from gemtui.ui.kit.dialogs import ThemeScreen
from gemtui.ui.review.screen import ReviewScreen
from gemtui.ui.run.prompt_sources import own_command
from gemtui.ui.sessions.stats_screen import StatsScreen
from tests.fake_cli import FakeCli, says
from tests.ui.people import Person
from tests.ui.run.test_screen import END, START, runner


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


async def test_commands_of_gemtui_act_and_those_of_the_cli_are_sent(
    home: Path, project: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    fake_cli(START, says("Done."), END)
    put(project / ".gemini/commands/git/fix.toml", 'prompt = "!{git log}"\ndescription = "Fix"')
    put(project / ".gemini/commands/stop.toml", 'prompt = "run"')
    async with runner(home, project) as me:
        await me.type("/m")
        await me.sees("/mode", "/model", "pro, flash or a full name")
        await me.press("escape", "ctrl+a", "ctrl+k")
        await me.ask("/model flash")
        await me.sees("model flash")
        await me.ask("/mode plan")
        await me.sees("mode plan")
        await me.ask("/stop")
        await me.until(lambda: "/stop can't be used now." in me.said)
        assert me.pane.run_shown is None
        assert me.pane.options.approval_mode is ApprovalMode.PLAN
        await me.type("/gitf")
        await me.sees("/git:fix", "Fix (project, runs shell commands)")
        await me.press("tab")
        await me.until(lambda: me.pane.prompt.text == "/git:fix ")
        await me.ask("now")
        await me.ended()
        assert me.pane.run_shown is not None
        assert me.pane.run_shown.prompt == "/git:fix now"


def test_a_projects_command_replaces_the_users_and_broken_files_are_left_out(
    home: Path, project: Path
) -> None:
    put(home / ".gemini/commands/a b.toml", 'prompt = "mine"')
    put(home / ".gemini/commands/same.toml", 'prompt = "mine"')
    put(project / ".gemini/commands/same.toml", 'prompt = "theirs"')
    put(project / ".gemini/commands/broken.toml", "prompt = ")
    put(project / ".gemini/commands/none.toml", 'description = "no prompt"')
    found = custom_commands(project)
    assert [(each.name, each.project) for each in found] == [("a_b", False), ("same", True)]


def test_commands_behind_links_are_found_and_circles_are_left(
    home: Path, project: Path, tmp_path: Path
) -> None:
    put(tmp_path / "shared/fix.toml", 'prompt = "fix"')
    put(home / ".gemini/commands/mine.toml", 'prompt = "mine"')
    (home / ".gemini/commands/team").symlink_to(tmp_path / "shared")
    (tmp_path / "shared/again").symlink_to(home / ".gemini/commands")
    (tmp_path / "shared/loop").symlink_to("loop")
    assert [each.name for each in custom_commands(project)] == ["mine", "team:fix"]


def test_names_of_other_agents_for_gemtuis_commands_are_never_sent_to_a_model() -> None:
    assert own_command("/rewind") == own_command("/undo")
    assert own_command("/cost all") == own_command("/stats all")


def _shows(me: Person, kind: type[Screen[Any]]) -> bool:
    return isinstance(me.app.screen, kind)


async def test_commands_lead_to_undo_review_and_other_screens_of_a_run(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    fake_cli(START, says("Done."), END)
    async with runner(home, project) as me:
        for command in ("undo", "review", "retry", "redo"):
            await me.ask(f"/{command}")
        await me.until(lambda: "/review can't be used now." in me.said)
        await me.is_told("/undo can't be used now.")
        await me.ask("begin")
        await me.ended()
        await me.ask("/retry")
        await me.all_ended(2)
        for typed, command, kind, keys in (
            ("/review", "/review", ReviewScreen, ("escape",)),
            ("/them", "/theme", ThemeScreen, ("escape",)),
            ("/stat", "/stats", StatsScreen, ("escape", "2")),
        ):
            await me.type(typed)
            await me.sees(f"{command} ")
            await me.press("enter")
            await me.until(partial(_shows, me, kind))
            await me.press(*keys)
            await me.until(lambda: me.app.screen is me.pane)
            me.pane.prompt.focus()
        await me.ask("/clear")
        await me.until(lambda: me.pane.run_shown is None)
