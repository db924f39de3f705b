"""Suggest: proposals with what speaks for them; a key chooses, another adds."""

from __future__ import annotations

from pathlib import Path

from gemtui.ui.kit.keys import acting
from gemtui.ui.simulator.suggest import SuggestScreen
from tests.ui.histories import EVIL, call, trier
from tests.ui.people import BOTH, NARROW

READ = "8 calls in 2 sessions"


async def test_rules_are_proposed_with_their_evidence(tmp_path: Path) -> None:
    async with trier(SuggestScreen, tmp_path, BOTH, policy="") as me:
        await me.sees(READ, "files below src/", 'prefix "pytest"', "Left out", "rm")
        await me.until(lambda: "evidence" in me.text and "also allows" in me.text)
        assert "2 calls in 1 session" in me.line("evidence")


async def test_nothing_is_chosen_and_nothing_added_without_a_key(tmp_path: Path) -> None:
    async with trier(SuggestScreen, tmp_path, policy="") as me:
        await me.sees("0 of ", READ)
        assert "[x]" not in me.text
        assert "suggest.add" not in {key.id for key, _ in acting(me.app.screen)}
        await me.press("a")
        assert me.app.screen.is_current
        assert isinstance(me.app.screen, SuggestScreen)
        await me.press("escape")
        await me.until(lambda: me.taken == ())


async def test_chosen_rules_come_back(tmp_path: Path) -> None:
    async with trier(SuggestScreen, tmp_path, BOTH, policy="") as me:
        await me.sees("files below src/")
        while "files below src/" not in me.line("▌"):
            await me.press("down")
        await me.press("space")
        await me.sees("1 of ")
        assert "[x]" in me.line("files below src/")
        await me.press("space", "space", "a")
        await me.until(lambda: me.taken)
        assert me.taken is not None
        (rule,) = me.taken
        assert set(rule.tools) == {"replace", "write_file"}


async def test_all_or_none(tmp_path: Path) -> None:
    async with trier(SuggestScreen, tmp_path, policy="") as me:
        await me.sees("0 of ", READ)
        await me.press("c")
        await me.until(lambda: "[ ]" not in me.text)
        await me.press("c")
        await me.until(lambda: "[x]" not in me.text)


async def test_what_the_policy_allows_already_is_not_proposed(tmp_path: Path) -> None:
    async with trier(SuggestScreen, tmp_path) as me:
        await me.sees("files below src/")
        assert "[ ] run_shell_command" not in me.text


async def test_examples_are_a_key_away(tmp_path: Path) -> None:
    async with trier(SuggestScreen, tmp_path, policy="") as me:
        await me.sees("files below src/")
        while "files below src/" not in me.line("▌"):
            await me.press("down")
        await me.press("enter")
        await me.sees("examples of calls that this rule would allow", "src/moon.py")
        await me.press("enter")
        await me.sees("Call details", "Arguments of write_file")


async def test_nothing_to_propose_is_said(tmp_path: Path) -> None:
    policy = '[[rule]]\ntoolName = "*"\ndecision = "allow"\npriority = 900\n'
    async with trier(SuggestScreen, tmp_path, NARROW, policy=policy) as me:
        await me.sees("no suggestions", "need no rule")


async def test_what_was_left_out_says_why(tmp_path: Path) -> None:
    async with trier(SuggestScreen, tmp_path, policy="") as me:
        await me.sees("Left out")
        await me.press("end")
        await me.sees("left out", "Examples", "rm -rf build")


async def test_hostile_calls_are_proposed_harmlessly(tmp_path: Path) -> None:
    hostile = [
        call(20, f"mcp_x_{EVIL}", **{EVIL: EVIL}),
        call(21, "run_shell_command", command=EVIL),
        call(22, "write_file", file_path=f"src/{EVIL}", content=""),
        call(23, EVIL),
    ]
    async with trier(SuggestScreen, tmp_path, policy="", calls=hostile) as me:
        await me.sees("12 calls in 3 sessions", "Left out", "evil")
        for _ in range(8):
            assert "\x1b" not in me.text
            assert "\u202e" not in me.text
            await me.press("down")
