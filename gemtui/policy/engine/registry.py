"""The tools that exist in a setup; only these can be offered, hidden or called.

A call to any other tool fails as not found, whatever the rules say
(assets/gemini-cli.md#settings-as-rules).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gemtui.policy.engine.setup import McpTool, Setup, names_at, table_at
from gemtui.policy.match.matching import MCP_PREFIX
from gemtui.policy.model.rules import ApprovalMode
from gemtui.policy.model.tool_catalog import ALIASES, CLASSES

MCP_CLASS = "DiscoveredMCPTool"
"""The class name that all MCP tools share in the CLI, for use in settings."""
TRACKER = {
    "tracker_create_task": "TrackerCreateTaskTool",
    "tracker_update_task": "TrackerUpdateTaskTool",
    "tracker_get_task": "TrackerGetTaskTool",
    "tracker_list_tasks": "TrackerListTasksTool",
    "tracker_add_dependency": "TrackerAddDependencyTool",
    "tracker_visualize": "TrackerVisualizeTool",
}
ENDING = "complete_task"
LONGEST_NAME = 63
_FOREIGN = re.compile(r"[^a-zA-Z0-9_\-.:]")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredTool:
    """The tool named in a call, which may not exist.

    `absent`: why the CLI doesn't find the tool; "" if it exists. `short`: an MCP tool's name
    without its server. `also`: other names by which settings can exclude the tool.
    """

    name: str
    server: str | None = None
    short: str = ""
    annotations: Mapping[str, Any] = field(default_factory=dict)
    absent: str = ""
    also: tuple[str, ...] = ()


class Registry:
    """The tools of one setup in one mode, by name."""

    def __init__(self, setup: Setup, mode: ApprovalMode) -> None:
        self._settings, self._mode = setup.settings, mode
        self._mcp = {qualified(tool): tool for tool in setup.mcp_tools}
        self._servers = tuple(
            sorted(
                {*table_at(setup.settings, "mcpServers"), *(tool.server for tool in setup.mcp_tools)},
                key=len,
                reverse=True,
            )
        )
        self._core = names_at(setup.settings, "tools", "core")
        excluded = names_at(setup.settings, "tools", "exclude") or ()
        old = [alias for alias, name in ALIASES.items() if name in excluded]
        self._excluded = {*excluded, *old, *(ALIASES[name] for name in excluded if name in ALIASES)}

    def known(self, name: str, *, subagent: bool = False) -> RegisteredTool:
        """Return the facts about the tool that a call names; aliases are resolved.

        `subagent`: whether a subagent makes the call. Subagents have an additional tool, with which
        they end their work.
        """
        if subagent and name == ENDING:
            return RegisteredTool(name=name)
        name = ALIASES.get(name, name)
        found = self._of_server(name) if name.startswith(MCP_PREFIX) else self._own(name)
        if not found.absent and self._excluded.intersection((found.name, *found.also)):
            return _absent(found, "tools.exclude in the settings disables it")
        return found

    def _own(self, name: str) -> RegisteredTool:
        found = RegisteredTool(name=name, also=(CLASSES.get(name, name),))
        if name not in CLASSES and not (name in TRACKER and self._tracker()):
            return _absent(found, "this version of Gemini CLI does not have the tool here")
        if not self._in_core(name):
            return _absent(found, "tools.core in the settings does not include it")
        if name == "update_topic" and not self._topics():
            return _absent(found, "the settings disable it")
        if name.endswith("_plan_mode") and not self._plans():
            return _absent(found, "general.plan in the settings disables plan mode")
        planning = self._mode is ApprovalMode.PLAN
        if name == ("enter_plan_mode" if planning else "exit_plan_mode"):
            where = "inside" if planning else "outside"
            return _absent(found, f"it does not exist {where} plan mode")
        return found

    def _in_core(self, name: str) -> bool:
        """Return whether the setting `tools.core` permits the tool.

        It always permits `activate_skill`.
        """
        if self._core is None or name == "activate_skill":
            return True
        own = (name, CLASSES.get(name) or TRACKER[name])
        return any(item in own or item.partition("(")[0] in own for item in self._core)

    def _tracker(self) -> bool:
        return bool(table_at(self._settings, "experimental").get("taskTracker"))

    def _plans(self) -> bool:
        return table_at(self._settings, "general", "plan").get("enabled", True) is not False

    def _topics(self) -> bool:
        return table_at(self._settings, "general").get("topicUpdateNarration", True) is not False

    def _of_server(self, name: str) -> RegisteredTool:
        tool = self._mcp.get(name)
        server, short = (tool.server, tool.name) if tool else self._split(name)
        found = RegisteredTool(
            name=name, server=server, short=short, annotations=tool.annotations if tool else {}, also=(MCP_CLASS, short)
        )
        return _absent(found, self._why_not(server, short))

    def _split(self, name: str) -> tuple[str | None, str]:
        """Split an MCP tool's full name into the server and the tool's short name.

        The name is split after the name of a known server, or else at the first `_`.
        """
        for server in self._servers:
            prefix = valid_name(f"{server}_")
            if name.startswith(prefix):
                return server, name[len(prefix) :]
        server, _, short = name[len(MCP_PREFIX) :].partition("_")
        return (server, short) if server and short else (None, "")

    def _why_not(self, server: str | None, short: str) -> str:
        if server is None:
            return "its name does not include a server"
        if table_at(self._settings, "admin", "mcp").get("enabled") is False:
            return "the administrator's settings disable MCP"
        if self._servers and server not in self._servers:
            return "there is no MCP server with that name"
        allowed = names_at(self._settings, "mcp", "allowed")
        if allowed and server not in allowed:
            return "mcp.allowed in the settings does not include its server"
        if server in (names_at(self._settings, "mcp", "excluded") or ()):
            return "mcp.excluded in the settings includes its server"
        if short in (names_at(self._settings, "mcpServers", server, "excludeTools") or ()):
            return "excludeTools of its server disables it"
        wanted = names_at(self._settings, "mcpServers", server, "includeTools")
        if wanted is not None and not any(item.partition("(")[0] == short for item in wanted):
            return "the includeTools setting of its server does not list it"
        return ""


def _absent(known: RegisteredTool, why: str) -> RegisteredTool:
    return RegisteredTool(
        name=known.name,
        server=known.server,
        short=known.short,
        annotations=known.annotations,
        absent=why,
        also=known.also,
    )


def qualified(tool: McpTool) -> str:
    """Return the full name by which the model calls an MCP server's tool."""
    return valid_name(f"{tool.server}_{tool.name}")


def valid_name(name: str) -> str:
    """Turn a name into a valid full name of an MCP tool, as the CLI does.

    The prefix `mcp_` is added, invalid characters become `_`, and the middle of a long name is cut
    out.
    """
    name = _FOREIGN.sub("_", name if name.startswith(MCP_PREFIX) else MCP_PREFIX + name)
    return name if len(name) <= LONGEST_NAME else f"{name[:30]}...{name[-30:]}"
