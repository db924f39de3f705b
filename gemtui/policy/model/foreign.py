"""The calls of other agents in the spelling of policies (assets/agents.md#policies).

Rules name the tools and arguments of Gemini CLI. So that one policy decides the calls of all
agents, a call of another one is translated to the tool that does the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from gemtui.agents import Agent
from gemtui.errors import OptionError
from gemtui.policy.model.mcp_names import rule_name
from gemtui.policy.model.rules import Call
from gemtui.policy.model.tool_catalog import AGENT_TOOL
from gemtui.text import or_list

_SHELL: Final = "run_shell_command"
_TOOLS = {
    "Agent": AGENT_TOOL,
    "AskUserQuestion": "ask_user",
    "Bash": _SHELL,
    "BashOutput": "read_background_output",
    "Edit": "replace",
    "EnterPlanMode": "enter_plan_mode",
    "ExitPlanMode": "exit_plan_mode",
    "Glob": "glob",
    "Grep": "grep_search",
    "LS": "list_directory",
    "ListMcpResourcesTool": "list_mcp_resources",
    "MultiEdit": "replace",
    "NotebookEdit": "replace",
    "NotebookRead": "read_file",
    "Read": "read_file",
    "ReadMcpResourceTool": "read_mcp_resource",
    "Skill": "activate_skill",
    "Task": AGENT_TOOL,
    "TodoWrite": "write_todos",
    "WebFetch": "web_fetch",
    "WebSearch": "google_web_search",
    "Write": "write_file",
    "agent": AGENT_TOOL,
    "ask_user_question": "ask_user",
    "edit": "replace",
    "notebook_edit": "replace",
    "skill": "activate_skill",
    "task": AGENT_TOOL,
    "todo_write": "write_todos",
    "web_search": "google_web_search",
}
"""The tool of Gemini CLI that does what a tool of Claude Code or Qwen Code does."""

_COMMANDS = ("Monitor", "monitor")
"""Tools that run a command if they have the argument `command`."""

_ARGUMENTS = {
    _SHELL: {"directory": "dir_path", "run_in_background": "is_background"},
    "activate_skill": {"skill": "name"},
    "glob": {"path": "dir_path"},
    "grep_search": {"path": "dir_path", "glob": "include_pattern"},
    AGENT_TOOL: {"subagent_type": "agent_name"},
    "list_directory": {"path": "dir_path"},
    "read_file": {"notebook_path": "file_path"},
    "replace": {
        "notebook_path": "file_path",
        "new_source": "new_string",
        "replace_all": "allow_multiple",
    },
    "web_fetch": {"url": "prompt"},
}
"""The arguments that have another name in Gemini CLI, by its tool."""

UNSANDBOXED = "dangerouslyDisableSandbox"
"""The argument by which a command runs outside of the agent's sandbox."""
_USUAL_AGENT = "general-purpose"
"""The subagent that is meant if a call names none."""


def spelled(agent: Agent, tool: str, args: Mapping[str, Any], subagent: str | None = None) -> Call:
    """Return an agent's call as rules see it; a call of Gemini CLI is not changed.

    Arguments that Gemini CLI's tool doesn't have keep their names. What a fetched page is to be
    asked is left out, because `web_fetch` has its address in the argument of that name.
    """
    call = Call(tool, args, subagent)
    if agent is Agent.GEMINI:
        return call
    call = replace(call, agent=agent, own=tool, server=_server(tool))
    if call.server is not None:
        return replace(call, tool=rule_name(call.server, tool_of_server(call)))
    known = _SHELL if tool in _COMMANDS and "command" in args else _TOOLS.get(tool, tool)
    names = _ARGUMENTS.get(known, {})
    translated = {name: value for name, value in args.items() if name not in names}
    translated |= {names[name]: value for name, value in args.items() if name in names}
    if known == AGENT_TOOL:
        translated.setdefault("agent_name", _USUAL_AGENT)
    return replace(call, tool=known, args=translated)


def call_of(value: Call | Mapping[str, Any]) -> Call:
    """Return a call unchanged, or create one from a mapping, as `Call.of` does.

    In a mapping, `agent` is whose call it is ("gemini" if missing), and `own`, if it is there, the
    name by which this agent calls the tool. So a call of a report can be passed. Raises OptionError
    for an invalid value.
    """
    call = Call.of(value)
    if isinstance(value, Call):
        return call
    agent = value.get("agent", Agent.GEMINI)
    if agent not in list(Agent):
        raise OptionError(f"call: agent must be {or_list([each.value for each in Agent])}")
    own = value.get("own")
    return spelled(
        Agent(agent), own if isinstance(own, str) else call.tool, call.args, call.subagent
    )


def _server(tool: str) -> str | None:
    """Return the MCP server of a tool such as `mcp__server__tool`; None for any other name."""
    parts = tool.split("__", 2)
    return parts[1] if parts[0] == "mcp" and len(parts) == 3 and all(parts) else None


def tool_of_server(call: Call) -> str:
    """Return the name that an MCP server gives its tool: `tool` of `mcp__server__tool`."""
    return call.own.split("__", 2)[2]


def in_folder(call: Call, folder: str) -> Call:
    """Return a command as if it named the folder in which the agent's shell is."""
    if call.tool != _SHELL or call.args.get("dir_path"):
        return call
    return replace(call, args={**call.args, "dir_path": folder})
