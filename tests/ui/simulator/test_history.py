"""History against a policy: numbers, the calls behind them, rules that would change them, and a
screen that stays awake meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import TextArea

from gemtui.runs.call_history import ScanStep, recorded_calls
from gemtui.sessions.catalog.summary import Summary
from gemtui.ui.kit.keys import acting
from gemtui.ui.simulator import call_scan
from gemtui.ui.simulator.call_scan import CallHistory
from gemtui.ui.simulator.calls import PickCallScreen
from gemtui.ui.simulator.history import PolicyHistoryScreen
from gemtui.ui.simulator.try_call import TryScreen
from tests.sessions.agents import claude_calls
from tests.sessions.stores import uuid
from tests.ui.histories import EVIL, Trier, call, trier
from tests.ui.people import BOTH, NARROW

READ = "8 calls in 2 sessions"


def acts(me: Trier, key: str) -> bool:
    """Whether a key of this id acts on the screen."""
    return key in {shown.id for shown, _ in acting(me.app.screen)}


async def test_behind_a_number_are_its_calls_and_behind_a_call_its_reasons(tmp_path: Path) -> None:
    async with trier(PolicyHistoryScreen, tmp_path, BOTH) as me:
        await me.sees(READ)
        words = ("✓ allow ", "? ask ", "⊘ deny ", "◌ not offered ")
        counted = [me.line(word).partition(word)[2].split()[:2] for word in words]
        assert counted == [["4", "50%"], ["0", "0%"], ["2", "25%"], ["2", "25%"]]
        await me.sees("By rule", 'prefix "pytest" or', "built-in")
        await me.does("enter", "Calls  that would be allowed", "4 calls")
        assert not acts(me, "call.allow")
        await me.does("enter", "Call details", "✓ allow")
        assert not acts(me, "call.allow")
        await me.does("escape", "4 calls")
        await me.does("escape", "By rule")
        await me.press("down", "enter")  # nothing is asked about
        await me.on(PolicyHistoryScreen)

        await me.does("down enter", "Calls  that would be denied", "2 calls", "rm -rf build")
        await me.sees("npm test")
        await me.does("/ 'rm down", "1 of 2 calls")
        await me.does("enter", "Call details", "the call succeeded", "⊘ deny  by rule 1")
        await me.sees('"command": "rm -rf build"', "Nothing is removed here.")
        await me.does("escape escape", "npm test")
        await me.does("escape", "By rule")


async def test_a_rule_for_a_denied_call_mode_and_situation_change_the_numbers(
    tmp_path: Path,
) -> None:
    async with trier(PolicyHistoryScreen, tmp_path) as me:
        await me.sees(READ)
        await me.does("i", "mode default, interactive")
        await me.until(lambda: "3" in me.line("? ask ").split())
        await me.does("m", "mode auto_edit, interactive")
        await me.until(lambda: "1" in me.line("? ask ").split())
    async with trier(PolicyHistoryScreen, tmp_path / "again") as me:
        await me.sees(READ)
        await me.does("down down enter", "npm test")
        await me.does("/ 'npm down a", "A new rule", "npm test")
        await me.does("ctrl+s", "1 new rule, not saved", "By rule", 'prefix "npm test"', READ)
        assert "5" in me.line("✓ allow ").split()
        await me.press("escape")
        await me.until(lambda: me.taken)
        assert me.taken is not None
        assert [rule.command_prefixes for rule in me.taken] == [("npm test",)]


async def test_whose_calls_are_counted_is_asked(tmp_path: Path) -> None:
    async with trier(PolicyHistoryScreen, tmp_path) as me:
        await me.sees(READ, "project ")
        await me.does("w", "This project, since yesterday")
        await me.does("down enter", "7 calls in 1 session", "since yesterday")
        await me.does("w", "Choose the calls")  # the cursor is on those that are shown
        await me.press("down", "enter")
        await me.lacks("Choose the calls")
        await me.sees(", the last 7 days")
        await me.does("w", "Choose the calls")
        await me.does("end enter", "Choose a session", "Look around", "Read a page")
        await me.does("/ 'look enter", 'session "Look around"', "1 call in 1 session")


async def test_without_a_project_all_calls_count(tmp_path: Path) -> None:
    async with trier(PolicyHistoryScreen, tmp_path, project=False) as me:
        await me.sees("9 calls in 3 sessions", "all projects")


async def test_a_project_without_calls_begins_with_all_of_them(tmp_path: Path) -> None:
    async with trier(PolicyHistoryScreen, tmp_path, project=tmp_path / "elsewhere") as me:
        await me.sees("9 calls in 3 sessions", "all projects")


async def test_a_list_without_calls_says_so(tmp_path: Path, home: Path) -> None:
    async with trier(PolicyHistoryScreen, tmp_path) as me:
        me.app.push_screen(PickCallScreen(CallHistory(home / ".gemini", cache=None)))
        await me.sees("No recorded calls here. Press w to choose other sessions.")
        assert "reading" not in me.text


class Gate:
    """Steps that wait, one after the other, until somebody lets them come."""

    def __init__(self, steps: Callable[..., Iterator[ScanStep]]) -> None:
        self._steps = steps
        self.open = threading.Semaphore(0)

    def __call__(
        self, sessions: Sequence[Summary], *, cancelled: Callable[[], bool], **more: Any
    ) -> Iterator[ScanStep]:
        for step in self._steps(sessions, cancelled=cancelled, **more):
            while not self.open.acquire(timeout=0.01):
                if cancelled():
                    return
            yield step


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    gate = Gate(recorded_calls)
    monkeypatch.setattr(call_scan, "recorded_calls", gate)
    monkeypatch.setattr(call_scan, "UPDATE_PAUSE", 0.0)
    return gate


async def test_numbers_grow_while_the_keys_go_on_working(tmp_path: Path, gate: Gate) -> None:
    async with trier(PolicyHistoryScreen, tmp_path) as me:
        gate.open.release(2)
        await me.sees("reading 1 of 2 sessions, 7 calls", "By rule")
        await me.does("down down enter", "2 calls")
        gate.open.release(9)
        await me.does("escape", READ)


async def test_reading_is_stopped_and_what_was_counted_stays(tmp_path: Path, gate: Gate) -> None:
    async with trier(PolicyHistoryScreen, tmp_path) as me:
        gate.open.release(2)
        await me.sees("reading 1 of 2 sessions")
        assert "policy_history.stop" in {key.id for key, _ in acting(me.app.screen)}
        await me.does("ctrl+c", "stopped: 7 calls in 1 of 2 sessions", "By rule")
        assert "policy_history.stop" not in {key.id for key, _ in acting(me.app.screen)}
        gate.open.release(9)
        await me.does("r", READ)


async def test_who_leaves_ends_the_reading(tmp_path: Path, gate: Gate) -> None:
    async with trier(PolicyHistoryScreen, tmp_path) as me:
        await me.press("escape")
        await me.until(lambda: me.taken == ())


async def test_sessions_that_cannot_be_read_or_are_gone_are_said(tmp_path: Path) -> None:
    chats = tmp_path / ".gemini/tmp/tide/chats"
    async with trier(PolicyHistoryScreen, tmp_path) as me:
        await me.sees(READ)
        (broken,) = chats.glob("*00000002*")
        broken.unlink()
        await me.does("i", "7 calls in 2 sessions, 1 not fully readable")
        await me.does("i r", "7 calls in 1 session", "headless")
        await me.does("home down down enter", "rm -rf build")
        for path in chats.iterdir():
            path.unlink()
        await me.press("enter")
        await me.is_told("no longer exists")


async def choose(me: Trier, text: str) -> None:
    """Move the cursor to the first row with this text."""
    await me.press("home")
    while text not in me.line("▌"):
        await me.press("down")


async def test_rules_are_suggested_with_their_evidence(tmp_path: Path) -> None:
    async with trier(PolicyHistoryScreen, tmp_path, BOTH, policy="", at_rules=True) as me:
        await me.sees(READ, "files below src/", "+ run_shell_command", "need no rule")
        assert "+ " in me.line("▌")
        await choose(me, "files below src/")
        await me.until(lambda: "evidence" in me.text and "also allows" in me.text)
        assert "2 calls in 1 session" in me.line("evidence")
        await me.does("enter", "examples of calls that this rule would allow", "src/moon.py")
        await me.does("enter", "Call details", "Arguments of write_file")


async def test_one_key_adds_the_rule_under_the_cursor_and_the_numbers_change(
    tmp_path: Path,
) -> None:
    async with trier(PolicyHistoryScreen, tmp_path, BOTH, policy="") as me:
        await me.sees(READ, "files below src/")
        before = me.line("✓ allow ").split()
        assert "policy_history.add" not in {key.id for key, _ in acting(me.app.screen)}
        await me.press("a")
        assert me.simulation.taken == ()
        await choose(me, "files below src/")
        await me.press("a")
        await me.is_told("Added, not saved: allow replace, write_file")
        await me.until(lambda: me.line("✓ allow ").split() != before)
        await me.lacks("+ replace")
        await me.press("escape")
        await me.until(lambda: me.taken)
        assert me.taken is not None
        (rule,) = me.taken
        assert set(rule.tools) == {"replace", "write_file"}


async def test_rules_can_be_added_while_the_numbers_are_read_anew(
    tmp_path: Path, gate: Gate
) -> None:
    async with trier(PolicyHistoryScreen, tmp_path, policy="", at_rules=True) as me:
        gate.open.release(4)
        await me.sees(READ, "files below src/")
        await choose(me, "files below src/")
        await me.does("a", "1 new rule, not saved", "reading")
        await choose(me, 'prefix "pytest"')
        await me.does("a", "2 new rules, not saved")
        assert '+ run_shell_command  prefix "pytest"' not in me.text
        gate.open.release(9)
        await me.sees(READ)


async def test_another_mode_takes_the_suggestions_of_the_last_one_away(
    tmp_path: Path, gate: Gate
) -> None:
    async with trier(PolicyHistoryScreen, tmp_path, policy="") as me:
        gate.open.release(4)
        await me.sees(READ, "files below src/")
        await me.does("m", "mode auto_edit", "Rules that would allow more  reading")
        assert "+ " not in me.text


async def test_nothing_to_suggest_is_said(tmp_path: Path) -> None:
    policy = '[[rule]]\ntoolName = "*"\ndecision = "allow"\npriority = 900\n'
    async with trier(PolicyHistoryScreen, tmp_path, NARROW, policy=policy) as me:
        await me.sees("none (", "need no rule")


async def test_what_was_left_out_says_why(tmp_path: Path) -> None:
    async with trier(PolicyHistoryScreen, tmp_path, policy="") as me:
        await me.sees(READ)
        await me.does("end", "left out", "Examples", "rm -rf build")


async def test_hostile_calls_are_shown_harmlessly(tmp_path: Path) -> None:
    hostile = [
        call(20, f"mcp_x_{EVIL}", **{EVIL: EVIL}),
        call(21, "run_shell_command", command=EVIL),
        call(22, EVIL),
        call(23, "write_file", file_path=f"src/{EVIL}", content=""),
    ]
    async with trier(PolicyHistoryScreen, tmp_path, calls=hostile) as me:

        def harmless() -> bool:
            return "\x1b" not in me.text and "\u202e" not in me.text

        await me.sees("12 calls in 3 sessions")
        await me.does("end", "Tools of other versions", "evil")
        await me.press("home")
        for _ in range(12):
            assert harmless()
            await me.press("down")
        await me.does("home down down enter", "Calls  that would be denied", "evil")
        assert harmless()
        await me.does("/ 'evil enter", "Call details", "Arguments of", "evil")
        assert harmless()


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claude Code has made one call in the project of the history."""
    for name in ("HOME", "GEMINI_CLI_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    claude_calls(tmp_path, uuid(9), tmp_path / "tide", ("Bash", {"command": "rm -rf dist"}, {}))


@pytest.mark.usefixtures("claude")
async def test_calls_of_another_agent_are_translated_and_that_is_said(
    tmp_path: Path,
) -> None:
    async with trier(PolicyHistoryScreen, tmp_path, BOTH) as me:
        await me.sees("9 calls in 3 sessions", "By rule")
        await me.does("end", "Calls of other agents")
        await me.sees("1  Claude Code's Bash as run_shell_command")
        await me.does("home down down enter", "3 calls", "rm -rf build", "rm -rf dist")
        await me.does("/ 'dist down", "1 of 3 calls")
        await me.does("enter", "Call details", "⊘ deny  by rule 1", "Nothing is removed here.")
        await me.sees("Translated for the rules: Claude Code's Bash as run_shell_command")


@pytest.mark.usefixtures("claude")
async def test_arguments_of_another_agents_call_stay_its_own_while_they_are_edited(
    tmp_path: Path,
) -> None:
    async with trier(TryScreen, tmp_path, BOTH) as me:
        await me.does("ctrl+l", "Choose a recorded call", "rm -rf dist")
        await me.does("/ 'dist down", "1 of ")
        await me.does("enter", "⊘ deny  by rule 1")
        me.app.screen.query_one(TextArea).text = '{"command": "make"}'
        await me.sees(
            "Claude Code's Bash as run_shell_command", "No rule matches, so you are asked"
        )
