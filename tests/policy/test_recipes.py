"""The policies that `assets/policies.md` offers to copy hold against the known ways around them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from gemtui.policy.check.check_policy import check_text
from gemtui.policy.engine.decide import decide
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.rules import Call, Decision, Severity
from tests.rows import each_row, table

TABLES = table("policy/recipes.json")
PAGE = (Path(__file__).parents[2] / "assets" / "policies.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^`([\w-]+)\.toml`:\n\n```toml\n(.*?)```", PAGE, re.M | re.S))
SHELL = "run_shell_command"

ONLY_BY_ANOTHER_FORM = TABLES["only_by_another_form"]
"""Pushes that a rule against the prefix `git push` lets through."""
NOT_LOCAL = [*ONLY_BY_ANOTHER_FORM, *TABLES["not_local"]]
LOCAL = TABLES["local"]
TESTS = TABLES["tests"]
NOT_TESTS = [*NOT_LOCAL, *LOCAL, *TABLES["not_tests"]]


def decision(recipe: str, tool: str, args: dict[str, Any], mode: str, asks: bool) -> Decision:
    """What becomes of a call in a headless run, or in a session that can ask (`asks`)."""
    answer = decide(Policy.parse(RECIPES[recipe]), Call(tool=tool, args=args), mode, asks)
    if answer.tool_refuses:
        return Decision.DENY
    return answer.decision if asks else answer.headless


def runs(recipe: str, commands: list[str], mode: str, asks: bool) -> dict[str, Decision]:
    """What becomes of each shell command."""
    return {
        command: decision(recipe, SHELL, {"command": command}, mode, asks) for command in commands
    }


each_mode = each_row("mode", ["default", "autoEdit", "yolo", "plan"])
each_kind = each_row("asks", [False, True])


@each_row("name", ["no-push", "tests-only", "read-only"])
def test_a_recipe_has_no_findings(name: str) -> None:
    assert check_text(RECIPES[name], f"{name}.toml") == ()


@each_mode
@each_kind
@each_row(
    "recipe, allowed, denied",
    [("no-push", LOCAL, [*NOT_LOCAL, *TESTS]), ("tests-only", TESTS, NOT_TESTS)],
)
def test_only_the_listed_commands_run(
    recipe: str, allowed: list[str], denied: list[str], mode: str, asks: bool
) -> None:
    expected = Decision.DENY if mode == "plan" else Decision.ALLOW
    assert runs(recipe, allowed, mode, asks) == dict.fromkeys(allowed, expected)
    assert runs(recipe, denied, mode, asks) == dict.fromkeys(denied, Decision.DENY)


@each_mode
@each_kind
def test_read_only_allows_reading_and_nothing_else(mode: str, asks: bool) -> None:
    def name(tool: str, args: dict[str, Any]) -> Decision:
        return decision("read-only", tool, args, mode, asks)

    assert {name(tool, args) for tool, args in TABLES["reads"].items()} == {Decision.ALLOW}
    assert {name(tool, args) for tool, args in TABLES["acts"].items()} == {Decision.DENY}
    commands = [*LOCAL, *TESTS, "ls"]
    assert runs("read-only", commands, mode, asks) == dict.fromkeys(commands, Decision.DENY)


def test_the_obvious_rule_is_bypassed_and_the_check_warns_of_it() -> None:
    pushes = ["git push", "git status && git push", "bash -c 'git push'"]
    assert runs("obvious", pushes, "yolo", False) == dict.fromkeys(pushes, Decision.DENY)
    assert set(runs("obvious", ONLY_BY_ANOTHER_FORM, "yolo", False).values()) == {Decision.ALLOW}
    found = [each.severity for each in check_text(RECIPES["obvious"], "obvious.toml")]
    assert found == [Severity.WARNING]
