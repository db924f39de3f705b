"""From yesterday's sessions to a policy, by keys alone, in the policy pane."""

from __future__ import annotations

from pathlib import Path

from gemtui.policy.engine.decide import Engine
from gemtui.policy.model.rules import Call, Decision
from gemtui.ui.kit.row_list import RowList
from gemtui.ui.policy.screen import PolicyScreen
from gemtui.ui.simulator.calls import CallScreen, MatchingCallsScreen
from gemtui.ui.simulator.history import PolicyHistoryScreen
from tests.ui.histories import Trier, write_history
from tests.ui.people import BOTH, WIDE, person


async def choose(me: Trier, text: str) -> None:
    """Put the cursor on the row that holds a text, from the first one down."""
    rows = me.app.screen.query_one(RowList)
    await me.press("home")
    for _ in rows.items:
        if text in me.line("▌"):
            return
        await me.press("down")
    raise AssertionError(f"no row with {text}:\n{me.text}")


async def test_the_tests_and_src_and_nothing_else(tmp_path: Path) -> None:
    home, project = write_history(tmp_path)
    async with person(home, BOTH, project=project) as somebody:
        me = Trier(somebody.app, somebody.pilot)
        await me.does("3", "No policy yet.")
        await me.does("s", "History", "files below src/", "8 calls in 2 sessions")
        await me.does("w down enter", "since yesterday", "7 calls in 1 session", "files below src/")
        await choose(me, "files below src/")
        await me.press("a")
        await me.is_told("Added, not saved: allow replace, write_file")
        await choose(me, '+ run_shell_command  prefix "pytest"')
        await me.press("a")
        await me.is_told("Added, not saved: allow run_shell_command")
        await me.press("escape")
        pane = await me.on(PolicyScreen)
        await me.until(lambda: len(pane.draft.entries) == 2)
        assert pane.draft.changed

        engine = Engine(pane.draft.policy)

        def decided(tool: str, **args: str) -> Decision:
            return engine.outcome(Call(tool=tool, args=args)).decision

        assert decided("run_shell_command", command="pytest -x") is Decision.ALLOW
        assert decided("write_file", file_path="src/new.py", content="") is Decision.ALLOW
        assert decided("write_file", file_path="docs/new.md", content="") is Decision.DENY
        assert decided("run_shell_command", command="npm publish") is Decision.DENY

        await me.does("h", "History", "8 calls in 2 sessions")
        await choose(me, "deny")
        await me.press("enter")
        await me.on(MatchingCallsScreen)
        await me.sees("rm -rf build", "npm test")
        await choose(me, "rm -rf build")
        await me.does("enter", "Call details", "⊘ deny", "the call succeeded")
        await me.does("o", "[1 Sessions]", "rm -rf build")
        await me.until(lambda: getattr(me.view.page.block, "id", None) == "call-6")
        await me.press("3")
        assert isinstance(me.app.screen, CallScreen)
        await me.press("escape", "escape", "escape")
        await me.until(lambda: me.app.screen is pane)
        await me.press("u")
        assert not pane.draft.entries


async def test_nothing_is_added_by_leaving(tmp_path: Path) -> None:
    home, project = write_history(tmp_path)
    async with person(home, WIDE, project=project) as somebody:
        me = Trier(somebody.app, somebody.pilot)
        await me.press("3", "s")
        await me.on(PolicyHistoryScreen)
        await me.sees("files below src/")
        await me.press("escape")
        pane = await me.on(PolicyScreen)
        assert not pane.draft.changed
