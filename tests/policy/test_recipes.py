"""The policies that `assets/policies.md` offers to copy hold against the known ways around them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gemtui.policy.check.check_policy import check_text
from gemtui.policy.engine.decide import decide
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.rules import Call, Decision, Severity

PAGE = (Path(__file__).parents[2] / "assets" / "policies.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^`([\w-]+)\.toml`:\n\n```toml\n(.*?)```", PAGE, re.M | re.S))
MODES = ["default", "autoEdit", "yolo", "plan"]
SHELL = "run_shell_command"

ONLY_BY_ANOTHER_FORM = ["git  push", "git -C . push", "env git push", "git -c alias.p=push p", "/usr/bin/git push"]
"""Pushes that a rule against the prefix `git push` lets through."""
NOT_LOCAL = [
    *ONLY_BY_ANOTHER_FORM,
    "git push",
    "git add . && git status",
    "git\tpush",
    "git p",
    "git config alias.p push",
    "git 'push'",
    "git g''push",
    "X=1 git push",
    "sudo git push",
    "command git push",
    "bash -c 'git push'",
    "bash -lc 'git push'",
    "git status && git push",
    "git status; git push",
    "git status\ngit push",
    "git status & git push",
    "git diff | git push",
    'git commit -m "x"; git push',
    'git commit -m "$(git push)"',
    'git commit -m "`git push`"',
    "git add `git push`",
    'git commit -m "${PS4@P}"',
    "git diff --outpu=x",
    "git log --output=.git/config",
    'git log --out""put=.git/config',
    "git log > .git/config",
    'git commit -m "x" > .git/config',
    "git difftool --extcmd=git-push",
    "(git push)",
]
LOCAL = [
    "git status",
    "git add -A src/a.py",
    "git diff HEAD~1 -- src/a.py",
    "git log --oneline -3",
    "git show HEAD",
    'git commit -am "Fix the parser; it lost a line"',
]
TESTS = ["python -m pytest", "python -m pytest -q tests/test_a.py::test_b", "npm test"]
NOT_TESTS = [
    *NOT_LOCAL,
    *LOCAL,
    "python -m pytester",
    "python -m pytest; git push",
    "python -m pytest > x",
    "python -m  pytest -c x",
    "npm test && rm -rf src",
    "npm tests",
    "env npm test",
]
READS = {
    "read_file": {"file_path": "a.py"},
    "list_directory": {"dir_path": "."},
    "glob": {"pattern": "*"},
    "grep_search": {"pattern": "x"},
}
ACTS = {
    "write_file": {"file_path": "a.py", "content": ""},
    "replace": {"file_path": "a.py", "old_string": "a", "new_string": "b"},
    "web_fetch": {"prompt": "https://example.org"},
    "google_web_search": {"query": "x"},
    "invoke_agent": {"agent_name": "generalist", "prompt": "x"},
    "mcp_server_tool": {},
    "save_memory": {"fact": "x"},
}


def decision(recipe: str, tool: str, args: dict[str, Any], mode: str, asks: bool) -> Decision:
    """What becomes of a call in a headless run, or in a session that can ask (`asks`)."""
    answer = decide(Policy.parse(RECIPES[recipe]), Call(tool=tool, args=args), mode, asks)
    if answer.tool_refuses:
        return Decision.DENY
    return answer.decision if asks else answer.headless


def runs(recipe: str, command: str, mode: str, asks: bool) -> Decision:
    """What becomes of a shell command."""
    return decision(recipe, SHELL, {"command": command}, mode, asks)


each_mode = pytest.mark.parametrize("mode", MODES)
each_kind = pytest.mark.parametrize("asks", [False, True], ids=["headless", "interactive"])


@pytest.mark.parametrize("name", ["no-push", "tests-only", "read-only"])
def test_a_recipe_has_no_findings(name: str) -> None:
    assert check_text(RECIPES[name], f"{name}.toml") == ()


@each_mode
@each_kind
@pytest.mark.parametrize(
    ("recipe", "allowed", "denied"),
    [("no-push", LOCAL, [*NOT_LOCAL, *TESTS]), ("tests-only", TESTS, NOT_TESTS)],
    ids=["no-push", "tests-only"],
)
def test_only_the_listed_commands_run(
    recipe: str, allowed: list[str], denied: list[str], mode: str, asks: bool
) -> None:
    expected = Decision.DENY if mode == "plan" else Decision.ALLOW
    assert [each for each in allowed if runs(recipe, each, mode, asks) is not expected] == []
    assert [each for each in denied if runs(recipe, each, mode, asks) is not Decision.DENY] == []


@each_mode
@each_kind
def test_read_only_allows_reading_and_nothing_else(mode: str, asks: bool) -> None:
    def name(tool: str, args: dict[str, Any]) -> Decision:
        return decision("read-only", tool, args, mode, asks)

    assert {name(tool, args) for tool, args in READS.items()} == {Decision.ALLOW}
    assert {name(tool, args) for tool, args in ACTS.items()} == {Decision.DENY}
    assert {runs("read-only", each, mode, asks) for each in [*LOCAL, *TESTS, "ls"]} == {Decision.DENY}


def test_the_obvious_rule_is_bypassed_and_the_check_warns_of_it() -> None:
    for command in ("git push", "git status && git push", "bash -c 'git push'"):
        assert runs("obvious", command, "yolo", False) is Decision.DENY
    for command in ONLY_BY_ANOTHER_FORM:
        assert runs("obvious", command, "yolo", False) is Decision.ALLOW
    found = [each.severity for each in check_text(RECIPES["obvious"], "obvious.toml")]
    assert found == [Severity.WARNING]
