"""A policy made in the pane by keys, and the real CLI that follows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Select

from gemtui.policy.engine.decide import Explanation, decide
from gemtui.policy.model.rules import Call, Decision
from gemtui.ui.run.live_run import ToolEnd
from gemtui.ui.run.screen import RunScreen
from tests.model_server import ModelServer, answer, call, text
from tests.real_cli import GeminiCli
from tests.ui.planners import Planner, planner

pytestmark = pytest.mark.covers("gemtui/policy", "gemtui/agent")

WHY = "Nothing is removed here."
ALLOWED, DENIED = {"command": "echo hello"}, {"command": "rm -r build"}


async def make_policy(me: Planner) -> None:
    """Two rules, by their forms: echo runs, rm does not."""
    await me.press("a")
    await me.fill(tools="run_shell_command", command_prefixes="echo")
    await me.press("ctrl+s")
    await me.until(lambda: len(me.draft.entries) == 1)
    await me.press("a")
    form = await me.form()
    form.query_one("#decision", Select).focus()
    await me.press("space", "end", "enter")
    await me.fill(tools="run_shell_command", command_prefixes="rm", deny_message=WHY)
    await me.press("ctrl+s")
    await me.until(lambda: len(me.draft.entries) == 2)
    await me.press("ctrl+s")
    await me.sees("Name for the policy")
    await me.press("enter")
    await me.until(lambda: me.draft.opened is not None and not me.draft.changed)


def explained(me: Planner, args: dict[str, str]) -> Explanation:
    made = Call(tool="run_shell_command", args=args)
    return decide(me.draft.policy, made, me.draft.mode, setup=me.draft.setup)


async def test_the_cli_does_what_the_pane_said_and_for_the_same_reason(
    on_loopback: GeminiCli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    turns = [
        answer(call("run_shell_command", **ALLOWED), call("run_shell_command", **DENIED)),
        answer(text("One of them ran.")),
    ]
    with ModelServer(turns) as model:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", model.url)
        async with planner(on_loopback.home, project=on_loopback.project) as me:
            await make_policy(me)
            allowed, denied = explained(me, ALLOWED), explained(me, DENIED)
            assert (allowed.headless, denied.headless) == (Decision.ALLOW, Decision.DENY)
            assert denied.message == WHY
            await me.settled()
            await me.press("r")
            await me.until(lambda: isinstance(me.app.screen, RunScreen))
            await me.type("Try both")
            await me.press("enter")
            await me.sees("✓ run_shell_command", "⊘ run_shell_command", WHY, "One of them ran.")
            screen = me.app.screen
            assert isinstance(screen, RunScreen)
            run = screen.run_shown
            assert run is not None
            await me.until(lambda: run.told is not None)
            assert run.ends() == {ToolEnd.OK: 1, ToolEnd.DENIED: 1}
