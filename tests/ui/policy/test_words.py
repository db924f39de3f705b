"""Rules from sentences, in the policy pane by keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemtui.policy.engine.decide import decide
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.rules import Call, Decision
from tests.ui.people import NARROW, WIDE
from tests.ui.planners import planner

GOAL = "allow edit src/**; allow npm test; deny git push; deny everything else"


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_a_goal_in_one_line_becomes_rules(home: Path, size: tuple[int, int]) -> None:
    async with planner(home, size) as me:
        await me.press("w")
        await me.sees("Rules from sentences", "All other calls, mode default")
        await me.type("permit")
        await me.sees("begin with allow, ask, deny")
        await me.press("enter", *["backspace"] * 6)
        await me.type("allow edit src/**; deny git p")
        await me.sees("deny git push", "✓ allow", "files below src/", "⊘ deny", "git p")
        await me.press("right")
        await me.type("; allow npm test; deny everything else")
        await me.sees('command "npm test"', "deny  run_shell_command, write_file")
        await me.press("enter")
        await me.sees("4 rules", "Added 4 rules, not saved yet.")
        policy: Policy = me.draft.document.policy
        for command, wanted in (("npm test 2>&1", Decision.ALLOW), ("ls", Decision.DENY)):
            call = Call("run_shell_command", {"command": command})
            assert decide(policy, call, "yolo").decision is wanted
        await me.press("w")
        await me.sees("Rules from sentences")
        await me.type("deny git push")
        await me.press("enter")
        await me.until(lambda: "Rules from sentences" not in me.text)
        assert len(me.draft.entries) == 4
