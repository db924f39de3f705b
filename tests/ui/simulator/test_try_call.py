"""Try a call: what somebody types, takes from a past session, and is told."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Event

import pytest
from textual.widgets import Input, TextArea

from gemtui.policy.engine.decide import Engine
from gemtui.policy.engine.setup import Explanation
from gemtui.policy.model.rules import Call, Decision
from gemtui.policy.suggest.replay import POWERSHELL
from gemtui.ui.kit.keys import acting
from gemtui.ui.simulator.try_call import CallForm, TryScreen
from tests.hostile import ATTACK
from tests.patience import PATIENCE
from tests.sessions import stores
from tests.ui.histories import YESTERDAY, call, session, trier
from tests.ui.people import BOTH, Person


def args_of(me: Person) -> str:
    return me.app.screen.query_one("#args", TextArea).text


async def test_the_answer_comes_while_one_types_and_every_rule_that_was_looked_at_says_why(
    tmp_path: Path,
) -> None:
    async with trier(TryScreen, tmp_path, BOTH) as me:
        await me.sees("run_shell_command", '"command": ""', "also accepts")
        await me.does(
            "'rm space 'x", '"command": "rm x"', "⊘ deny  by rule 1", "Nothing is removed here."
        )
        assert "⊘ deny" in me.line(" headless  ")
        assert "⊘ deny" in me.line(" interactive  ")
        await me.press(*["backspace"] * 4)
        await me.does("'pytest", "✓ allow  by rule 2", "yes, the model sees")
        assert "try.allow" not in {key.id for key, _ in acting(me.app.screen)}

        await me.sees("Rules considered", "4.300  no")
        await me.does("tab end", "4.200  decides")
        await me.press("y")
        await me.until(lambda: "Rules considered" in me.app.clipboard)


async def test_what_is_wrong_with_the_arguments_is_said_and_what_somebody_wrote_stays(
    tmp_path: Path,
) -> None:
    async with trier(TryScreen, tmp_path) as me:
        await me.does("end ',", "line 3, column 1", "not valid JSON yet")
        await me.does("backspace", "also accepts", "Fill in the arguments first")

        arguments, tool = (
            me.app.screen.query_one("#args", TextArea),
            me.app.screen.query_one("#tool", Input),
        )
        tool.value = "mcp_github_search"
        await me.until(lambda: args_of(me) == "{}")
        await me.sees("Rules considered")
        tool.value = "reed_file"
        await me.sees("Not a built-in tool")
        arguments.text = "[1]"
        await me.sees("the arguments must be an object")
        tool.value = "read_file"
        await me.pilot.pause()
        assert args_of(me) == "[1]"


async def test_a_tool_is_chosen_from_those_there_are(tmp_path: Path) -> None:
    async with trier(TryScreen, tmp_path) as me:
        await me.press("shift+tab")
        me.app.screen.query_one("#tool", Input).value = ""
        await me.does("'write_f", "write_file")
        await me.press("enter")
        await me.until(lambda: '"file_path": ""' in args_of(me))
        await me.does("'src/a.py", '"file_path": "src/a.py"', '"content": ""', "interactive  ? ask")


async def test_a_call_of_a_past_session_is_searched_and_tried(tmp_path: Path) -> None:
    async with trier(TryScreen, tmp_path, BOTH) as me:
        await me.does("ctrl+l", "Choose a recorded call", "8 calls in 2 sessions", "rm -rf build")
        assert "web_fetch" not in me.text
        await me.does("/ 'zzz", "No matches.")
        await me.does("down escape", "rm -rf build")
        await me.does("escape", "Try a call")

        await me.does("ctrl+l w", "Choose the calls", "All projects", "since yesterday")
        await me.does("down down down enter", "9 calls in 3 sessions", "web_fetch")
        await me.does("/ 'rm space 'build", "1 of 9 calls")
        await me.does("enter", "Try a call", '"command": "rm -rf build"', "⊘ deny  by rule 1")


async def test_a_command_recorded_on_windows_is_not_explained_as_one_of_bash(
    tmp_path: Path,
) -> None:
    home = tmp_path / ".gemini"
    stores.marker(home, "win", r"C:\work")
    calls = [call(10, "run_shell_command", command="rm -rf dist")]
    session(home, 5, "Tidy up", calls, key="win", seconds=YESTERDAY)
    async with trier(TryScreen, tmp_path, BOTH, project=False) as me:
        await me.does("ctrl+l", "Choose a recorded call", "rm -rf dist")
        await me.does("/ 'dist", "1 of 10 calls")
        await me.does("enter", "Try a call", "rm -rf dist", f"Not checked: {POWERSHELL}"[:40])
        assert "⊘ deny" not in me.text
        me.app.screen.query_one("#args", TextArea).text = '{"command": "rm -rf dist "}'
        await me.sees("⊘ deny  by rule 1")


async def test_a_late_answer_to_earlier_arguments_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, decided, explain = Event(), Event(), Engine.explain

    def slowly(engine: Engine, call: Call) -> Explanation:
        if call.args.get("command") == "pytest":
            asked.set()
            decided.wait(PATIENCE)
        return explain(engine, call)

    monkeypatch.setattr(Engine, "explain", slowly)
    async with trier(TryScreen, tmp_path) as me:
        await me.type("pytest")
        await asyncio.to_thread(asked.wait, PATIENCE)
        await me.does("end ',", "not valid JSON yet")
        decided.set()
        await me.until(lambda: not [each for each in me.app.workers if each.group == "answer"])
        await me.sees("not valid JSON yet")


async def test_mode_and_situation_turn_the_answer_and_so_does_the_rule_that_would_allow_it(
    tmp_path: Path,
) -> None:
    async with trier(TryScreen, tmp_path) as me:
        await me.does("'npm space 'test", "mode default, headless", "⊘ deny  by built-in")
        await me.does("ctrl+t", "mode default, interactive", "? ask  by built-in")
        await me.does("ctrl+o ctrl+o ctrl+o", "mode yolo, interactive", "✓ allow  by built-in")
        await me.does("ctrl+o ctrl+t", "mode default, headless", "⊘ deny  by built-in")

        await me.does("ctrl+n", "A new rule", "npm test")
        await me.does("ctrl+s", "✓ allow  by rule 3", "1 new rule, not saved")
        await me.press("escape")
        await me.until(lambda: me.taken is not None)
        assert me.taken is not None
        (rule,) = me.taken
        assert rule.decision is Decision.ALLOW
        assert rule.command_prefixes == ("npm test",)


async def test_a_rule_against_a_deny_is_stronger_than_that(tmp_path: Path) -> None:
    async with trier(TryScreen, tmp_path) as me:
        await me.does("'rm space 'build.log", "⊘ deny  by rule 1")
        await me.does("ctrl+n", "A new rule")
        await me.does("ctrl+s", "✓ allow  by rule 3", "4.301")


async def test_a_tool_alone_begins_with_its_arguments(tmp_path: Path) -> None:
    async with trier(TryScreen, tmp_path, call=Call(tool="glob")) as me:
        await me.sees('"pattern": ""', "Fill in the arguments first")
        await me.does("'**", '"pattern": "**"', "✓ allow  by built-in")
        await me.press("enter")
        await me.until(lambda: '"**\n' in args_of(me))
        form = me.app.screen.query_one(CallForm)
        assert form.call == Call(tool="glob", args={"pattern": "**\n"})


async def test_a_long_recorded_call_is_decided_whole_and_shown_in_part(tmp_path: Path) -> None:
    content = "x" * 300_000 + "needle"
    policy = """
[[rule]]
toolName = "write_file"
argsPattern = "needle"
decision = "allow"
priority = 100
"""
    call = Call(tool="write_file", args={"file_path": "a", "content": content})
    async with trier(TryScreen, tmp_path, policy=policy, call=call) as me:
        await me.sees("of a longer call", "✓ allow  by rule 1")
        assert len(args_of(me)) < 30_000
        me.app.screen.query_one("#tool", Input).value = "replace"
        await me.until(lambda: not me.app.screen.query_one("#args", TextArea).read_only)
        assert "xxx" not in args_of(me)


async def test_a_hostile_call_is_shown_harmlessly_and_decided_as_it_is(tmp_path: Path) -> None:
    call = Call(tool=f"mcp_a_{ATTACK}", args={ATTACK: ATTACK})
    async with trier(TryScreen, tmp_path, call=call) as me:
        await me.sees("evil")
        assert me.app.screen.query_one(CallForm).call is call
        assert "\x1b" not in me.text
        assert "\u202e" not in me.text
