"""What is said before a run about settings and variables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gemtui.agent.options import AgentOptions
from gemtui.agents import Agent
from gemtui.policy.engine.decide import Setup
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.rules import ApprovalMode, Call
from gemtui.runs.before_run import Report, before_run_report
from gemtui.runs.gate.policy import GatePolicy
from tests.rows import table


def test_what_is_done_without_a_question_is_said_with_its_file(home: Path, tmp_path: Path) -> None:
    project = tmp_path / "above/project"
    own = project / ".gemini/settings.json"
    own.parent.mkdir(parents=True)
    environ = {"GEMINI_CLI_HOME": str(home)}
    options = AgentOptions(cwd=project)
    assert list(before_run_report(options, environ).lines()) == []
    before_run_report(options, environ).remember()
    settings = {
        "general": {"defaultApprovalMode": "auto_edit"},
        "mcpServers": {"m": {"command": "serve", "args": ["x"]}},
    }
    own.write_text(json.dumps(settings))
    env = project.parent / ".env"
    env.write_text("TOKEN=secret\nGIT_EXTERNAL_DIFF=./x\nGOOGLE_GEMINI_BASE_URL=http://far.example")
    told = before_run_report(options, environ)
    changed, *lines = told.lines()
    assert changed.startswith("changed since the last run: general.defaultApprovalMode in")
    assert "secret" not in str(lines)
    assert ".; " not in told.message
    assert [line.split(": ", 1) for line in lines] == [
        [f"general.defaultApprovalMode in {own}", lines[0].split(": ", 1)[1]],
        [f"mcpServers.m in {own}", "Each run starts `serve x` before asking anything."],
        [
            f"GOOGLE_GEMINI_BASE_URL in {env}",
            "The conversation or its telemetry is sent to far.example.",
        ],
        [f"GIT_EXTERNAL_DIFF in {env}", "This variable can make programs run without asking."],
        [
            f".env in {env}",
            "Runs load variables from this file: TOKEN, GIT_EXTERNAL_DIFF, GOOGLE_GEMINI_BASE_URL.",
        ],
    ]
    told.remember()
    assert before_run_report(options, environ).changed == ()
    named = AgentOptions(cwd=project, approval_mode=ApprovalMode.DEFAULT)
    report = before_run_report(named, environ)
    assert "defaultApprovalMode" not in str(report.notices)
    assert report.changed == ()
    report.remember()
    assert before_run_report(options, environ).changed == ()


def test_a_setting_counts_with_the_value_of_its_variable(home: Path, tmp_path: Path) -> None:
    own = tmp_path / ".gemini/settings.json"
    own.parent.mkdir()
    settings = {
        "general": {"defaultApprovalMode": "$MODE"},
        "mcpServers": {"m": {"command": "serve", "args": ["$TOKEN"]}},
    }
    own.write_text(json.dumps(settings))
    environ = {"GEMINI_CLI_HOME": str(home), "MODE": "auto_edit", "TOKEN": "secret"}
    lines = list(before_run_report(AgentOptions(cwd=tmp_path), environ).lines())
    assert lines == [
        (
            f"general.defaultApprovalMode in {own}: Runs without an approval mode write files "
            "without "
            "asking."
        ),
        f"mcpServers.m in {own}: Each run starts `serve $TOKEN` before asking anything.",
    ]


def test_changed_rules_are_news_like_the_setting_that_names_them(
    home: Path, tmp_path: Path
) -> None:
    own = tmp_path / ".gemini/settings.json"
    own.parent.mkdir()
    own.write_text('{"policyPaths": ["rules.toml", "more", "none.toml"]}')
    (tmp_path / "more").mkdir()
    (tmp_path / "rules.toml").write_text("")

    def report() -> Report:
        return before_run_report(AgentOptions(cwd=tmp_path), {"GEMINI_CLI_HOME": str(home)})

    report().remember()
    assert not report().is_news
    for name in ("rules.toml", "more/a.toml", "none.toml"):
        (tmp_path / name).write_text("[[rule]]\n")
        assert report().is_news
        report().remember()
        assert not report().is_news


def test_settings_that_widen_what_may_be_done_are_said(home: Path, tmp_path: Path) -> None:
    own = tmp_path / ".gemini/settings.json"
    own.parent.mkdir()
    widening = table("runs/before_run.json")
    own.write_text(json.dumps(widening["settings"]))
    told = before_run_report(AgentOptions(cwd=tmp_path), {"GEMINI_CLI_HOME": str(home)})
    assert {notice.setting: notice.kind for notice in told.notices} == widening["kinds"]


def test_agents_that_start_programs_are_named_and_asked_about(home: Path, tmp_path: Path) -> None:
    own = tmp_path / ".gemini/settings.json"
    remote = tmp_path / ".gemini/agents/far.md"
    remote.parent.mkdir(parents=True)
    environ = {"GEMINI_CLI_HOME": str(home)}
    call = Call("invoke_agent", {"agent_name": "browser_agent", "prompt": "go"})

    def told_and_asked(settings: dict[str, Any]) -> tuple[list[str], str]:
        own.write_text(json.dumps(settings))
        setup = Setup(workspace=tmp_path, settings=settings)
        judgement = GatePolicy(Policy(), setup, ApprovalMode.DEFAULT, environ).judge(call)
        return list(before_run_report(AgentOptions(cwd=tmp_path), environ).lines()), judgement.why

    assert told_and_asked({}) == ([], "")
    browses = {"agents": {"overrides": {"browser_agent": {"enabled": True}}}}
    (told,), why = told_and_asked(browses)
    assert told.endswith("The agent `browser_agent` starts a browser when it is used.")
    assert "starts a browser" in why
    remote.write_text("---\nname: far\nagent_card_url: http://x\nauth: {key: '!make key'}\n---\n")
    (told,), why = told_and_asked({})
    assert told == f"agent in {remote}: This subagent may start programs, such as MCP servers."
    assert why == f"{remote} may start programs."


def test_what_a_trusted_project_starts_in_claude_code_is_said_apart_from_gemini_cli(
    home: Path, tmp_path: Path
) -> None:
    environ = {"HOME": str(home), "GEMINI_CLI_HOME": str(home)}
    options = AgentOptions(cwd=tmp_path, agent=Agent.CLAUDE)
    servers = tmp_path / ".mcp.json"
    servers.write_text("{}")
    assert not list(before_run_report(options, environ).lines())
    trusted = {"projects": {str(tmp_path): {"hasTrustDialogAccepted": True}}}
    (home / ".claude.json").write_text(json.dumps(trusted))
    report = before_run_report(options, environ)
    assert report.is_news
    (line,) = report.lines()
    assert f"mcpServers in {servers}" in line
    report.remember()
    assert not before_run_report(options, environ).is_news
    assert not before_run_report(AgentOptions(cwd=tmp_path), environ).changed
    servers.write_text('{"mcpServers": {"a": {"command": "b"}}}')
    assert before_run_report(options, environ).is_news
