"""What the policy pane says of a rule, and what it asks before it acts."""

from __future__ import annotations

from pathlib import Path

from gemtui.agent.options import AgentOptions
from gemtui.policy.check.pitfalls import mode_findings
from gemtui.policy.engine.decide import Setup, decide
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.rules import ApprovalMode, Call, Decision
from gemtui.ui.run.screen import RunScreen
from tests.fake_cli import INIT, OK, FakeCli
from tests.ui.planners import planner, policy

LEAKY = """\
[[rule]]
toolName = "run_shell_command"
commandPrefix = "git push" # never
decision = "deny"
priority = 300

[[rule]]
toolName = "run_shell_command"
commandPrefix = "rm"
decision = "allow"
priority = 200
modes = ["default"]
"""
BELOW_SRC = """\
[[rule]]
toolName = "write_file"
argsPattern = '\\x00"file_path":"(\\./|)src/'
decision = "allow"
priority = 100
"""


async def test_the_key_for_a_fix_stands_only_where_it_fixes(home: Path) -> None:
    path = policy("work", LEAKY)
    async with planner(home) as me:
        await me.sees("x to fix", "x to apply:")
        await me.press("j")
        await me.lacks("x to fix")
        await me.does("k x", 'contains the words "git')
        await me.press("J")
        await me.until(lambda: "the allow rule above it now takes precedence" in me.said[-1])
        await me.press("u", "ctrl+s")
        await me.until(lambda: "# never" in path.read_text() and "argsPattern" in path.read_text())


async def test_a_run_asks_before_it_saves(home: Path) -> None:
    path = policy("work", LEAKY)
    async with planner(home) as me:
        await me.does("d r", "work has unsaved changes", "Save and run")
        await me.press("escape")
        assert path.read_text() == LEAKY
        assert me.draft.changed
        await me.does("r", "Save and run")
        await me.press("enter")
        await me.on(RunScreen)
        assert path.read_text() != LEAKY


async def test_a_level_that_denies_does_so_wherever_somebody_can_be_asked(home: Path) -> None:
    async with planner(home) as me:
        await me.press("l", "down", "down", "left")
        await me.until(lambda: len(me.draft.entries) == 2)
        rules = me.draft.document.policy
        for mode in ApprovalMode:
            for asked in (False, True):
                call = Call("web_fetch", {"prompt": "x"})
                assert decide(rules, call, mode, asked).decision is Decision.DENY
        await me.sees("Denied in every mode")
        await me.press("right")
        await me.until(lambda: not me.draft.entries)


def test_a_rule_that_narrows_nothing_in_a_mode_is_a_finding() -> None:
    alone = Policy.parse(BELOW_SRC)
    found = mode_findings(alone, ApprovalMode.AUTO_EDIT, Setup())
    assert [each.rule for each in found] == [1]
    assert "every call of write_file is allowed anyway" in found[0].message
    assert mode_findings(alone, ApprovalMode.DEFAULT, Setup()) == ()
    rest = '\n[[rule]]\ntoolName = "write_file"\ndecision = "deny"\npriority = 1\n'
    assert mode_findings(Policy.parse(BELOW_SRC + rest), ApprovalMode.AUTO_EDIT, Setup()) == ()


async def test_the_policy_of_the_last_run_here_is_opened(home: Path, fake_cli: FakeCli) -> None:
    policy("a", LEAKY)
    last = policy("b", BELOW_SRC)
    fake_cli(f"print:{INIT}", f"print:{OK}")
    async with planner(home) as me:
        options = AgentOptions(cwd=home / "project", policies=(last,))
        async for _ in me.app.adapter.run("Go", options):
            pass
    async with planner(home) as me:
        await me.sees("b.toml", "1 rule")
