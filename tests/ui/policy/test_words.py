"""Rules from sentences, in the policy pane by keys."""

from __future__ import annotations

from pathlib import Path

from gemtui.agent.folder_options import remember_options
from gemtui.agent.options import AgentOptions
from gemtui.policy.engine.decide import decide
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.rules import Call, Decision
from tests.ui.people import BOTH
from tests.ui.planners import WORK, planner, policy

GOAL = "allow edit src/**; allow npm test; deny git push; deny everything else"


async def test_a_goal_in_one_line_becomes_rules(home: Path) -> None:
    async with planner(home, BOTH) as me:
        await me.does("w", "Rules from sentences", "All other calls in mode default")
        await me.does("'wishes", "start with allow, ask, deny")
        await me.press("enter", *["backspace"] * 6)
        await me.type("allow edit src/**; deny git p")
        await me.sees("deny git push", "✓ allow", "files below src/", "⊘ deny", "git p")
        await me.press("right")
        await me.type("; allow npm test; deny everything else")
        await me.sees('command "npm test"', "deny run_shell_command, write_file")
        await me.does("enter", "4 rules", "Added 4 rules, not saved yet.")
        made: Policy = me.draft.document.policy
        for command, wanted in (("npm test 2>&1", Decision.ALLOW), ("ls", Decision.DENY)):
            call = Call("run_shell_command", {"command": command})
            assert decide(made, call, "yolo").decision is wanted
        await me.does("w", "Rules from sentences")
        await me.type("deny git push")
        await me.press("enter")
        await me.lacks("Rules from sentences")
        assert len(me.draft.entries) == 4


async def test_decisions_are_those_of_a_run_that_asks_if_the_next_run_does(home: Path) -> None:
    remember_options(AgentOptions(cwd=home / "project", ask=True))
    async with planner(home, BOTH) as me:
        await me.does("w", "All other calls in mode default, “Ask me” is on", "ask   run_shell")
        await me.does("escape", "asks me")
        await me.does("t", "Try a call", "mode default, interactive")


async def test_examples_are_shown_and_kept_from_a_tried_call(home: Path) -> None:
    policy("work", '# example: allow run_shell_command {"command": "git push"}\n\n' + WORK)
    async with planner(home) as me:
        await me.sees("Examples", "0 of 1 as expected", "got deny: allow run_shell_command")
        await me.does("t", "Try a call")
        await me.press("ctrl+g")
        await me.is_told("Added as an example, not saved yet: deny run_shell")
        await me.does("escape", "1 of 2 as expected", "1 unsaved change")
