"""The command of a run of Qwen Code, and what is its own in the stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gemtui.agent.command import Command
from gemtui.agent.events import ResultStatus, ToolResult
from gemtui.agent.options import AgentOptions
from gemtui.agent.output import Parsed
from gemtui.agent.qwen import OWN_RULES, QwenDriver, QwenStream
from gemtui.agents import Agent
from tests.agent.test_claude_stream import INIT, result, use

DEFAULTS = "QWEN_CODE_SYSTEM_DEFAULTS_PATH"
DRIVER = QwenDriver()


def command(folder: Path, **options: Any) -> Command:
    """Return the command of a run on a machine whose settings for all users are in `folder`."""
    environ = {"QWEN_CODE_SYSTEM_SETTINGS_PATH": str(folder / "settings.json")}
    machine = DRIVER.machine(
        Path("/bin/qwen"), DRIVER.newest, None, environ=environ, cwd=folder, runs=folder
    )
    chosen = AgentOptions(agent=Agent.QWEN, cwd=folder, **options)
    return DRIVER.command("Hello", chosen, machine, folder=folder, session_id="1-2")


def test_each_run_is_told_to_ask_about_tools_that_change_something(tmp_path: Path) -> None:
    for options in ({}, {"approval_mode": "yolo"}, {"ask": True}):
        made = command(tmp_path, **options)
        assert "--approval-mode=default" in made.argv
        assert OWN_RULES in made.notes
        file = Path(made.environ[DEFAULTS])
        assert file.parent == tmp_path
        asked = json.loads(made.files[file.name])["permissions"]["ask"]
        assert {"edit", "write_file", "run_shell_command", "mcp__*"} <= set(asked)


@pytest.mark.parametrize("by", ["variable", "file"])
def test_defaults_of_the_machine_are_not_replaced(by: str, tmp_path: Path) -> None:
    if by == "file":
        (tmp_path / "system-defaults.json").write_text("{}")
        made = command(tmp_path)
    else:
        made = command(tmp_path, environment={DEFAULTS: "/theirs.json"})
    assert made.environ.get(DEFAULTS) == ("/theirs.json" if by == "variable" else None)
    assert made.files == {}


def test_a_call_that_was_refused_is_denied_and_others_fail() -> None:
    stream = QwenStream(cwd="/project", resumed=None)
    lines = (
        INIT,
        {"type": "assistant", "message": {"content": [use("a", "edit"), use("b", "edit")]}},
        result("a", "[Operation Cancelled] Reason: use tabs", fails=True),
        result("b", "no such file", fails=True),
    )
    events = [event for line in lines for event in stream.feed(Parsed(data=line))]
    results = [event.payload for event in events if isinstance(event.payload, ToolResult)]
    assert [result.status for result in results] == [ResultStatus.DENIED, ResultStatus.ERROR]
