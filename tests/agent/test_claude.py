"""The command of a run of Claude Code, and what a project's files would start in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gemtui.agent.claude import LEFT_OUT, ClaudeDriver, added_folders
from gemtui.agent.claude_settings import starts_of, trusts, variables
from gemtui.agent.command import DENIES, Command
from gemtui.agent.options import AgentOptions
from gemtui.agents import Agent
from gemtui.errors import OptionError
from gemtui.policy.file.levels import PermissionPolicy

DRIVER = ClaudeDriver()


@pytest.fixture
def environ(tmp_path: Path) -> Mapping[str, str]:
    (tmp_path / "home/.claude").mkdir(parents=True)
    (tmp_path / "project/.claude").mkdir(parents=True)
    return {"HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "bin")}


def write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value))


def trust(tmp_path: Path, folder: Path, *, accepted: object = True) -> None:
    projects = {str(folder): {"hasTrustDialogAccepted": accepted}}
    write(tmp_path / "home/.claude.json", {"projects": projects})


def command(tmp_path: Path, environ: Mapping[str, str], **options: Any) -> Command:
    machine = DRIVER.machine(
        Path("/bin/claude"), DRIVER.newest, None, environ=environ, cwd=tmp_path, runs=tmp_path
    )
    chosen = AgentOptions(agent=Agent.CLAUDE, cwd=tmp_path / "project", **options)
    return DRIVER.command("Hello", chosen, machine, folder=tmp_path, session_id="1-2")


def test_each_run_asks_gemtui_and_runs_no_hook_of_others(
    tmp_path: Path, environ: Mapping[str, str]
) -> None:
    for options in ({}, {"approval_mode": "yolo"}, {"ask": True}):
        argv = command(tmp_path, environ, **options).argv
        assert "--permission-mode=default" in argv
        assert "--permission-prompt-tool=stdio" in argv
        (settings,) = (word for word in argv if word.startswith("--settings="))
        assert json.loads(settings.partition("=")[2]) == {
            "disableAllHooks": True,
            "disableSkillShellExecution": True,
        }


def test_options_become_flags_and_policies(tmp_path: Path, environ: Mapping[str, str]) -> None:
    made = command(
        tmp_path,
        environ,
        model="opus",
        max_turns=3,
        include_directories=[tmp_path],
        permissions=PermissionPolicy(shell_execute="deny"),
    )
    assert {"--model=opus", "--session-id=1-2", "--max-turns=3", f"--add-dir={tmp_path}"} <= {
        *made.argv
    }
    assert [*added_folders(made.argv)] == [tmp_path]
    assert "run_shell_command" in made.files[DENIES]
    assert (made.pipe, made.session_id) == (True, "1-2")
    again = command(tmp_path, environ, resume="3-4")
    assert "--resume=3-4" in again.argv
    assert again.session_id == "3-4"


@pytest.mark.parametrize("option", [{"sandbox": True}, {"extensions": ["a"]}, {"max_turns": 0}])
def test_an_option_that_claude_code_has_not_is_refused(
    option: Mapping[str, Any], tmp_path: Path, environ: Mapping[str, str]
) -> None:
    with pytest.raises(OptionError, match=r"has no such option|at least 1"):
        command(tmp_path, environ, **option)


@pytest.mark.parametrize(
    ("folder", "accepted", "trusted"),
    [
        ("project", True, True),
        (".", True, True),
        ("project", "true", False),
        ("project/below", True, False),
        ("home", True, False),
    ],
)
def test_a_folder_is_trusted_as_claude_code_says(
    folder: str, accepted: object, trusted: bool, tmp_path: Path, environ: Mapping[str, str]
) -> None:
    trust(tmp_path, tmp_path / folder, accepted=accepted)
    assert trusts(tmp_path / "project", environ) == trusted
    made = command(tmp_path, environ)
    assert ("--setting-sources=user" in made.argv) != trusted
    assert ("--strict-mcp-config" in made.argv) != trusted
    assert (LEFT_OUT in made.notes) != trusted


def test_without_readable_trust_nothing_is_trusted(
    tmp_path: Path, environ: Mapping[str, str]
) -> None:
    assert not trusts(tmp_path, environ)
    (tmp_path / "home/.claude.json").write_text("no JSON")
    assert not trusts(tmp_path, environ)


def test_what_a_project_may_start_is_told(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".claude").mkdir(parents=True)
    assert list(starts_of(project)) == []
    settings = {"model": "x", "hooks": {}, "env": {"BASH_ENV": "a", "B": "c"}, "newThing": 1}
    write(project / ".claude/settings.json", settings)
    (project / ".claude/settings.local.json").write_text("no JSON")
    (project / ".mcp.json").symlink_to("nowhere")
    told = {setting: follows for _, setting, follows in starts_of(project)}
    assert set(told) == {"env", "newThing", "the file", "mcpServers"}
    assert "BASH_ENV, B" in told["env"]


def test_variables_of_a_project_count_only_in_a_trusted_folder(
    tmp_path: Path, environ: Mapping[str, str]
) -> None:
    write(tmp_path / "home/.claude/settings.json", {"env": {"A": "user", "B": "user"}})
    write(tmp_path / "project/.claude/settings.json", {"env": {"B": "project"}})
    assert variables(tmp_path / "project", environ) == {"A": "user", "B": "user"}
    trust(tmp_path, tmp_path / "project")
    assert variables(tmp_path / "project", environ) == {"A": "user", "B": "project"}


@pytest.mark.parametrize(
    ("prints", "version", "fits"),
    [
        ("2.1.332 (Claude Code)", "2.1.332", True),
        ("1.9.0 (Claude Code)", "1.9.0", False),
        ("?", None, False),
    ],
)
def test_the_program_is_found_with_its_version(
    prints: str, version: str | None, fits: bool, tmp_path: Path, environ: Mapping[str, str]
) -> None:
    assert DRIVER.detect(environ, None).problem == DRIVER.not_found
    program = tmp_path / "bin/claude"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{prints}'\n")
    program.chmod(0o755)
    found = DRIVER.detect(environ, None)
    assert (found.version, found.problem is None) == (version, fits)
