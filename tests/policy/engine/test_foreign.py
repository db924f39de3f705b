"""Decisions about the calls of other agents, which Gemini CLI's own rules don't concern."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gemtui.agents import Agent
from gemtui.policy.engine.decide import Engine, Setup
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.foreign import spelled
from gemtui.policy.model.rules import ApprovalMode, Call, Decision
from tests.rows import each_row

ALLOW, ASK, DENY = Decision.ALLOW, Decision.ASK_USER, Decision.DENY
WORKSPACE = Path("/work/app")
RULES = """
[[rule]]
toolName = "run_shell_command"
commandPrefix = "rm"
decision = "deny"
priority = 300
denyMessage = "Nothing is removed."

[[rule]]
toolName = "write_file"
decision = "allow"
priority = 200

[[rule]]
toolName = "web_fetch"
decision = "deny"
priority = 100

[[rule]]
mcpName = "git_hub"
toolName = "*"
decision = "deny"
priority = 100

[[rule]]
toolName = "mcp_files_list"
decision = "allow"
priority = 100
"""
SETTINGS = {"tools": {"exclude": ["read_file"], "allowed": ["google_web_search"]}}


def call(tool: str, **args: Any) -> Call:
    return spelled(Agent.CLAUDE, tool, args)


def engine(text: str = RULES, **situation: Any) -> Engine:
    setup = Setup(workspace=WORKSPACE, settings=SETTINGS)
    return Engine(Policy.parse(text, source="w.toml"), setup=setup, **situation)


LONG = "mcp__files__" + "x" * 80
DECIDED = [
    (call("Bash", command="rm -rf /"), DENY, 1),
    (call("Bash", command="ls && rm x"), DENY, 1),
    (call("Bash", command="git status"), ALLOW, 0),
    (call("Bash", command="npm publish"), ASK, 0),
    (call("Write", file_path="package.json", content=""), ALLOW, 2),
    (call("Read", file_path="/a"), ALLOW, 0),
    (call("WebFetch", url="https://x.org", prompt="?"), DENY, 3),
    (call("WebSearch", query="x"), ASK, 0),
    (call("Edit", file_path="a"), ASK, 0),
    (call("Task", prompt="x"), ASK, 0),
    (call("ExitPlanMode"), ASK, 0),
    (call("SendMessage", to="x"), ASK, 0),
    (call("mcp__git_hub__list"), DENY, 4),
    (call("mcp__git__hub_list"), ASK, 0),
    (call("mcp__files__list"), ALLOW, 5),
    (call(LONG), ASK, 0),
]


@each_row("made, decision, rule", DECIDED)
def test_rules_decide_and_everything_else_is_asked(
    made: Call, decision: Decision, rule: int
) -> None:
    for interactive in (True, False):
        outcome = engine(interactive=interactive).outcome(made)
        index = outcome.rule.index if outcome.rule else 0
        assert (outcome.decision, outcome.found, index) == (decision, True, rule), interactive


def test_a_rule_for_a_server_matches_tools_with_long_names() -> None:
    text = '[[rule]]\ntoolName = "mcp_files_*"\ndecision = "deny"\npriority = 1\n'

    assert engine(text).outcome(call(LONG)).decision is DENY


@each_row(
    "mode, tool, decision",
    [
        (ApprovalMode.AUTO_EDIT, "Edit", ALLOW),
        (ApprovalMode.AUTO_EDIT, "Bash", ASK),
        (ApprovalMode.YOLO, "Bash", ALLOW),
        (ApprovalMode.YOLO, "WebFetch", DENY),
        (ApprovalMode.PLAN, "Edit", DENY),
        (ApprovalMode.PLAN, "Read", ALLOW),
    ],
)
def test_the_mode_decides_what_rules_leave_open(
    mode: ApprovalMode, tool: str, decision: Decision
) -> None:
    made = call(tool, command="npm publish")

    assert engine(mode=mode).outcome(made).decision is decision


def test_the_reason_names_gemtui_and_what_headless_means() -> None:
    denied = engine().explain(call("Bash", command="rm x"))
    asked = engine().explain(call("Bash", command="npm publish"))
    read = engine().explain(call("Read", file_path="/a"))

    assert (denied.message, denied.tool_refuses) == ("Nothing is removed.", None)
    assert asked.because == (
        "No rule matches, so you are asked. Headless runs can't ask, so the call is denied."
    )
    assert (asked.headless, asked.interactive) == (DENY, ASK)
    assert read.because == "A built-in rule of gemtui allows it."
