"""Calls of Claude Code and Qwen Code as rules see them."""

from __future__ import annotations

from typing import Any

import pytest

from gemtui.agents import Agent
from gemtui.errors import OptionError
from gemtui.policy.model.foreign import call_of, in_folder, spelled
from gemtui.policy.model.tool_catalog import tool as known_tool
from tests.rows import each_row

CLAUDE, QWEN = Agent.CLAUDE, Agent.QWEN
Args = dict[str, Any]

SPELLED: list[tuple[Agent, str, Args, str, Args]] = [
    (CLAUDE, "Bash", {"command": "ls"}, "run_shell_command", {"command": "ls"}),
    (
        CLAUDE,
        "Bash",
        {"command": "ls", "run_in_background": True, "timeout": 5},
        "run_shell_command",
        {"command": "ls", "is_background": True, "timeout": 5},
    ),
    (CLAUDE, "Monitor", {"command": "tail x"}, "run_shell_command", {"command": "tail x"}),
    (CLAUDE, "Monitor", {"ws": {"url": "u"}}, "Monitor", {"ws": {"url": "u"}}),
    (
        CLAUDE,
        "Write",
        {"file_path": "/a", "content": "x"},
        "write_file",
        {"file_path": "/a", "content": "x"},
    ),
    (
        CLAUDE,
        "Edit",
        {"file_path": "/a", "old_string": "x", "new_string": "y", "replace_all": True},
        "replace",
        {"file_path": "/a", "old_string": "x", "new_string": "y", "allow_multiple": True},
    ),
    (
        CLAUDE,
        "MultiEdit",
        {"file_path": "/a", "edits": []},
        "replace",
        {"file_path": "/a", "edits": []},
    ),
    (
        CLAUDE,
        "NotebookEdit",
        {"file_path": "/other", "notebook_path": "/a.ipynb", "new_source": "y"},
        "replace",
        {"file_path": "/a.ipynb", "new_string": "y"},
    ),
    (CLAUDE, "Read", {"file_path": "/a"}, "read_file", {"file_path": "/a"}),
    (CLAUDE, "NotebookRead", {"notebook_path": "/a"}, "read_file", {"file_path": "/a"}),
    (
        CLAUDE,
        "Grep",
        {"pattern": "x", "path": "src", "glob": "*.py"},
        "grep_search",
        {"pattern": "x", "dir_path": "src", "include_pattern": "*.py"},
    ),
    (CLAUDE, "Glob", {"pattern": "*", "path": "src"}, "glob", {"pattern": "*", "dir_path": "src"}),
    (CLAUDE, "LS", {"path": "/a"}, "list_directory", {"dir_path": "/a"}),
    (
        CLAUDE,
        "WebFetch",
        {"url": "https://evil.org", "prompt": "https://docs.org"},
        "web_fetch",
        {"prompt": "https://evil.org"},
    ),
    (CLAUDE, "WebSearch", {"query": "x"}, "google_web_search", {"query": "x"}),
    (
        CLAUDE,
        "Task",
        {"subagent_type": "Explore", "prompt": "look"},
        "invoke_agent",
        {"agent_name": "Explore", "prompt": "look"},
    ),
    (
        CLAUDE,
        "Agent",
        {"prompt": "look"},
        "invoke_agent",
        {"prompt": "look", "agent_name": "general-purpose"},
    ),
    (CLAUDE, "Skill", {"skill": "pdf"}, "activate_skill", {"name": "pdf"}),
    (CLAUDE, "mcp__git_hub__list_prs", {"path": "x"}, "mcp_git_hub_list_prs", {"path": "x"}),
    (CLAUDE, "mcp__git", {}, "mcp__git", {}),
    (CLAUDE, "SendMessage", {"to": "x"}, "SendMessage", {"to": "x"}),
    (QWEN, "edit", {"file_path": "/a"}, "replace", {"file_path": "/a"}),
    (
        QWEN,
        "run_shell_command",
        {"command": "ls", "directory": "/a", "is_background": False},
        "run_shell_command",
        {"command": "ls", "dir_path": "/a", "is_background": False},
    ),
    (QWEN, "list_directory", {"path": "/a"}, "list_directory", {"dir_path": "/a"}),
    (QWEN, "agent", {"subagent_type": "x"}, "invoke_agent", {"agent_name": "x"}),
    (QWEN, "web_fetch", {"url": "u", "prompt": "p"}, "web_fetch", {"prompt": "u"}),
    (
        Agent.GEMINI,
        "run_shell_command",
        {"directory": "/a"},
        "run_shell_command",
        {"directory": "/a"},
    ),
    (Agent.GEMINI, "mcp__s__t", {}, "mcp__s__t", {}),
]


@each_row("agent, own, args, tool, translated", SPELLED)
def test_a_call_has_the_names_that_rules_use(
    agent: Agent, own: str, args: Args, tool: str, translated: Args
) -> None:
    call = spelled(agent, own, args, "helper")

    assert (call.tool, call.args, call.subagent) == (tool, translated, "helper")
    assert (call.agent, call.own) == (agent, own if agent is not Agent.GEMINI else "")


def test_a_translated_argument_is_one_of_the_tool_that_rules_name() -> None:
    for agent, own, args, tool, translated in SPELLED:
        known = known_tool(tool)
        if agent is not Agent.GEMINI and known is not None:
            renamed = set(translated) - set(args)
            assert renamed <= set(known.arguments), own


def test_a_command_names_its_folder_unless_it_names_another() -> None:
    call = spelled(CLAUDE, "Bash", {"command": "ls"})
    other = spelled(QWEN, "run_shell_command", {"command": "ls", "directory": "/b"})

    assert in_folder(call, "/a").args == {"command": "ls", "dir_path": "/a"}
    assert in_folder(other, "/a").args["dir_path"] == "/b"
    assert in_folder(spelled(CLAUDE, "Read", {}), "/a").args == {}


def test_a_mapping_may_be_a_call_of_another_agent_translated_or_not() -> None:
    args = {"url": "u", "prompt": "p"}
    call = call_of({"agent": "claude", "tool": "WebFetch", "args": args, "subagent": "x"})
    reported = {"agent": "claude", "tool": call.tool, "own": call.own, "args": call.args}

    assert call == spelled(CLAUDE, "WebFetch", args, "x")
    assert call_of(reported) == spelled(CLAUDE, "WebFetch", args)
    assert call_of({"tool": "glob", "own": None}).agent is Agent.GEMINI
    assert call_of(call) is call
    with pytest.raises(OptionError, match="gemini, qwen or claude"):
        call_of({"agent": "nobody", "tool": "glob"})


@each_row("agent, own, args, tool, translated", SPELLED)
def test_a_translated_call_is_not_translated_again(
    agent: Agent, own: str, args: Args, tool: str, translated: Args
) -> None:
    again = spelled(agent, own, translated)

    assert (again.tool, again.args) == (tool, translated), (args, own)
