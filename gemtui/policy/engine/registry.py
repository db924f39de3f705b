"""The tools that exist in a setup; only these can be offered, hidden or called.

A call to any other tool fails as not found, whatever the rules say
(assets/gemini-cli.md#settings-as-rules).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gemtui.policy.engine.setup import Setup, names_at, table_at
from gemtui.policy.model.mcp_names import (
    MCP_PREFIX,
    cli_name,
    is_name_of_server,
    tool_prefix,
    valid_name,
)
from gemtui.policy.model.rules import ApprovalMode
from gemtui.policy.model.tool_catalog import ALIASES, CLASSES, can_exist

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredTool:
    """The tool named in a call, which may not exist.

    `absent`: why the CLI doesn't find the tool; "" if it exists. `setting`: the setting that says
    which tools exist, if that is why. `impossible`: whether no tool can
    ever have this name. `short`: an MCP tool's full name without its server's part. `also`: other
    names by which settings can exclude the tool.
    """

    name: str
    server: str | None = None
    short: str = ""
    annotations: Mapping[str, Any] = field(default_factory=dict)
    absent: str = ""
    setting: str = ""
    impossible: bool = False
    also: tuple[str, ...] = ()


class Registry:
    """The tools of one setup in one mode, by name."""

    def __init__(self, setup: Setup, mode: ApprovalMode) -> None:
        self._settings, self._mode = setup.settings, mode
        self._mcp = {cli_name(tool.server, tool.name): tool for tool in setup.mcp_tools}
        servers = {tool.server for tool in setup.mcp_tools}
        servers.update(table_at(setup.settings, "mcpServers"))
        self._servers = tuple(sorted(servers, key=len, reverse=True))
        self._core = names_at(setup.settings, "tools", "core")
        excluded = names_at(setup.settings, "tools", "exclude") or ()
        self._excluded = set(excluded)
        for old, new in ALIASES.items():
            if old in excluded or new in excluded:
                self._excluded |= {old, new}

    def known(self, name: str, *, subagent: bool = False) -> RegisteredTool:
        """Return the facts about the tool that a call names; aliases are resolved.

        `subagent`: whether a subagent makes the call. Subagents have an additional tool, with which
        they end their work.
        """
        if subagent and name == ENDING:
            return RegisteredTool(name=name)
        if not can_exist(name):
            return RegisteredTool(name=name, absent="no tool can have this name", impossible=True)
        name = ALIASES.get(name, name)
        tool = self._of_server(name) if name.startswith(MCP_PREFIX) else self._own(name)
        if not tool.absent and self._excluded.intersection((tool.name, *tool.also)):
            return _absent(tool, "tools.exclude in the settings disables it", "tools.exclude")
        return tool

    def _own(self, name: str) -> RegisteredTool:
        tool = RegisteredTool(name=name, also=(CLASSES.get(name, name),))
        if name not in CLASSES and not (name in TRACKER and self._tracker()):
            return _absent(tool, "this version of Gemini CLI does not have the tool here")
        if not self._in_core(name):
            return _absent(tool, "tools.core in the settings does not include it", "tools.core")
        if name == "update_topic" and not self._topics():
            return _absent(tool, "the settings disable it")
        if name.endswith("_plan_mode") and not self._plans():
            return _absent(tool, "general.plan in the settings disables plan mode")
        planning = self._mode is ApprovalMode.PLAN
        if name == ("enter_plan_mode" if planning else "exit_plan_mode"):
            where = "inside" if planning else "outside"
            return _absent(tool, f"it does not exist {where} plan mode")
        return tool

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
        server = tool.server if tool else self._server_of(name)
        prefix = valid_name(tool_prefix(server or ""))
        short = name.removeprefix(prefix) if name.startswith(prefix) else prefix + name
        registered = RegisteredTool(
            name=name,
            server=server,
            short=short,
            annotations=tool.annotations if tool else {},
            also=(MCP_CLASS, short),
        )
        return _absent(registered, self._why_not(server, name))

    def _server_of(self, name: str) -> str | None:
        """Return the server of an MCP tool with this full name; None if the name includes none.

        It is a known server whose tools can have this name, or else what is before the first `_`.
        """
        registered = next(
            (server for server in self._servers if is_name_of_server(name, server)), None
        )
        server, _, short = name[len(MCP_PREFIX) :].partition("_")
        return registered or (server if server and short else None)

    def _why_not(self, server: str | None, name: str) -> str:
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
        unwanted = names_at(self._settings, "mcpServers", server, "excludeTools") or ()
        if any(cli_name(server, item) == name for item in unwanted):
            return "excludeTools of its server disables it"
        wanted = names_at(self._settings, "mcpServers", server, "includeTools")
        if wanted is not None and not any(
            cli_name(server, item.partition("(")[0]) == name for item in wanted
        ):
            return "the includeTools setting of its server does not list it"
        return ""


def _absent(tool: RegisteredTool, why: str, setting: str = "") -> RegisteredTool:
    return replace(tool, absent=why, setting=setting)
