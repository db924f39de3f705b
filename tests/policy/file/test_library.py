"""What a program gets that knows the public names alone."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from gemtui import (
    ApprovalMode,
    Call,
    Decision,
    Level,
    OptionError,
    PermissionPolicy,
    Policy,
    Setup,
    decide,
)
from tests.rows import each_row

WORK = """
[[rule]]
toolName = "run_shell_command"
commandPrefix = "git push"
decision = "deny"
priority = 300
denyMessage = "ask first"

[[rule]]
toolName = "run_shell_command"
commandPrefix = "git"
decision = "allow"
priority = 200

[[rule]]
toolName = "write_file"
decision = "deny"
priority = 1
modes = ["autoEdit"]
"""
PUSH = {"command": "git push"}
TOOLS = {
    "file_write": ("replace", "write_file"),
    "shell_execute": ("run_shell_command",),
    "network_access": ("google_web_search", "web_fetch"),
}


@pytest.fixture
def work(tmp_path: Path) -> Policy:
    path = tmp_path / "work.toml"
    path.write_text(WORK)
    return Policy.load(path)


@each_row(
    "call",
    [
        Call("run_shell_command", PUSH),
        Call(tool="run_shell_command", args=PUSH),
        {"tool": "run_shell_command", "args": PUSH},
        {"tool": "run_shell_command", "args": PUSH, "subagent": None, "id": 1},
    ],
)
def test_a_call_is_a_call_or_a_mapping(work: Policy, call: Call | dict[str, Any]) -> None:
    said = decide(work, call)
    assert (said.decision, said.message) == (Decision.DENY, "ask first")
    assert (said.call.tool, said.call.args) == ("run_shell_command", PUSH)
    assert said.rule is not None
    assert said.rule.index == 1


def test_arguments_may_be_left_out(work: Policy) -> None:
    for call in (Call("glob"), {"tool": "glob"}, {"tool": "glob", "args": None}):
        assert decide(work, call).headless is Decision.ALLOW


@each_row(
    "call, said",
    [
        ({}, "no tool is named"),
        ({"tool": ""}, "no tool is named"),
        ({"tool": 3}, "no tool is named"),
        ({"tool": "glob", "args": "*"}, "args"),
        ({"tool": "glob", "subagent": 1}, "subagent"),
    ],
)
def test_what_is_no_call_is_refused(call: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        decide(Policy(), call)


@each_row("mode", [ApprovalMode.AUTO_EDIT, "auto_edit", "autoEdit"])
def test_a_mode_may_be_spelled_as_in_rules(work: Policy, mode: str) -> None:
    call = Call("write_file", {"file_path": "a.txt", "content": ""})
    assert decide(work, call, "default", True).decision is Decision.ASK_USER
    said = decide(work, call, mode, True)
    assert (said.decision, said.mode) == (Decision.DENY, ApprovalMode.AUTO_EDIT)


def test_settings_and_flags_come_by_the_setup(work: Policy) -> None:
    call = Call("web_fetch", {"prompt": "x"})
    assert decide(work, call).headless is Decision.DENY
    for setup in (
        Setup(settings={"tools": {"allowed": ["web_fetch"]}}),
        Setup(allowed_tools=("web_fetch",)),
    ):
        assert decide(work, call, setup=setup).headless is Decision.ALLOW


@each_row("words", itertools.product(("allow", "ask", "deny"), repeat=3))
def test_levels_are_words_too_and_make_a_policy(words: tuple[str, str, str]) -> None:
    levels = dict(zip(TOOLS, words, strict=True))
    policy = PermissionPolicy(**levels)
    assert policy == PermissionPolicy(**{name: Level(word) for name, word in levels.items()})
    expected = {"allow": Decision.ALLOW, "ask": Decision.DENY, "deny": Decision.DENY}
    for name, word in levels.items():
        for tool in TOOLS[name]:
            said = decide(policy.policy(), Call(tool, {}))
            assert (said.decision is Decision.ASK_USER) == (word == "ask")
            assert said.headless is expected[word]


def test_a_policy_of_levels_minds_the_mode() -> None:
    levels = PermissionPolicy(file_write="allow", shell_execute="deny")
    assert [rule.tools for rule in levels.policy("plan").rules if rule.decision == "allow"] == []
    assert levels.policy("autoEdit").rules == tuple(
        rule for rule in levels.policy().rules if rule.decision != "ask_user"
    )


def test_a_word_that_is_no_level_is_refused() -> None:
    with pytest.raises(OptionError, match="shell_execute must be one of allow, ask, deny"):
        PermissionPolicy(shell_execute="never")
