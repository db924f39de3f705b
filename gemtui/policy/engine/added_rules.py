"""Rules that the CLI adds to those of policy files: from settings and flags, and its own.

Settings and flags act like rules (assets/gemini-cli.md#settings-as-rules). The built-in rules have
tier 1, the lowest; they were observed in Gemini CLI 0.61.0 (assets/gemini-cli.md#tools).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gemtui.policy.engine.setup import Setup, names_at, table_at
from gemtui.policy.match.matching import SHELL
from gemtui.policy.model.rules import GEMTUI, Decision, Rule, SafetyChecker, Tier

SHELL_NAMES = (SHELL, "ShellTool")
NOT_PLAN = ("default", "autoEdit", "yolo")
_WITH_ARGUMENTS = re.compile(r"([a-zA-Z0-9_-]+)\((.*)\)")


def setting_rules(setup: Setup, *, interactive: bool) -> tuple[Rule, ...]:
    """Return the rules that settings and flags act like, in the CLI's load order.

    The CLI loads these rules after all files, so a file's rule of equal priority wins.
    """
    return tuple(_setting_rules(setup, interactive))


def _setting_rules(setup: Setup, interactive: bool) -> Iterator[Rule]:
    settings = setup.settings
    for server in names_at(settings, "mcp", "excluded") or ():
        yield _server(server, Decision.DENY, 900, "mcp.excluded", ())
    for tool in names_at(settings, "tools", "exclude") or ():
        yield _rule(tool, Decision.DENY, 400, "tools.exclude")
    flag = tuple(part.strip() for value in setup.allowed_tools for part in value.split(","))
    if setup.allowed_tools:
        yield from _allowed(tuple(filter(None, flag)), "--allowed-tools")
    else:
        yield from _allowed(names_at(settings, "tools", "allowed") or (), "tools.allowed")
    for tool in names_at(settings, "tools", "confirmationRequired") or ():
        yield _rule(_shell(tool), Decision.ASK_USER, 350, "tools.confirmationRequired")
    core = names_at(settings, "tools", "core")
    if core is not None:
        yield from _listed(core, 250, "tools.core", NOT_PLAN)
        yield _rule("*", Decision.DENY, 240, "tools.core", NOT_PLAN)
    yield from _servers(settings, interactive)


def _rule(
    tool: str, decision: Decision, priority: float, source: str, modes: tuple[str, ...] = ()
) -> Rule:
    return Rule(tools=(tool,), decision=decision, priority=priority, modes=modes, source=source)


def _server(
    server: str, decision: Decision, priority: float, source: str, modes: tuple[str, ...]
) -> Rule:
    return Rule(
        tools=("*",),
        mcp_name=server,
        decision=decision,
        priority=priority,
        modes=modes,
        source=source,
    )


def _shell(tool: str) -> str:
    return SHELL if tool in SHELL_NAMES else tool


def _allowed(tools: tuple[str, ...], source: str) -> Iterator[Rule]:
    """Yield rules that allow the given tools.

    If any entry allows only some shell commands, a rule that denies all others is added. `source`:
    the setting or flag that lists the tools.
    """
    yield from _listed(tools, 300, source, ())
    if any(_narrowed(tool) is not None for tool in tools):
        yield _rule(SHELL, Decision.DENY, 290, source)


def _narrowed(tool: str) -> str | None:
    """Return PREFIX if a tool is given as `run_shell_command(PREFIX)`, otherwise None."""
    match = _WITH_ARGUMENTS.fullmatch(tool)
    return match[2] if match and match[1] in SHELL_NAMES else None


def _listed(
    tools: tuple[str, ...], priority: float, source: str, modes: tuple[str, ...]
) -> Iterator[Rule]:
    for tool in tools:
        prefix = _narrowed(tool)
        if prefix is None:
            match = _WITH_ARGUMENTS.fullmatch(tool)
            yield _rule(
                _shell(match[1] if match else tool), Decision.ALLOW, priority, source, modes
            )
        elif prefix:
            yield Rule(
                tools=(SHELL,),
                command_prefixes=(prefix,),
                decision=Decision.ALLOW,
                priority=priority,
                modes=modes,
                source=source,
            )


def _servers(settings: Mapping[str, Any], interactive: bool) -> Iterator[Rule]:
    servers = table_at(settings, "mcpServers")
    trusted = [name for name in servers if table_at(servers, name).get("trust")]
    for server in trusted:
        yield _server(server, Decision.ALLOW, 200, f"mcpServers.{server}.trust", NOT_PLAN)
    allowed = names_at(settings, "mcp", "allowed") or ()
    for server in allowed:
        yield _server(server, Decision.ALLOW, 100, "mcp.allowed", NOT_PLAN)
    if interactive or not table_at(settings, "mcp").get("autoAllowInHeadless"):
        return
    for server in servers:
        if server not in trusted and server not in allowed and "*" not in allowed:
            yield _server(server, Decision.ALLOW, 100, "mcp.autoAllowInHeadless", NOT_PLAN)


ALLOW, DENY, ASK = Decision.ALLOW, Decision.DENY, Decision.ASK_USER
SOURCE = "built-in"

READ_ONLY = (
    "glob",
    "grep_search",
    "list_directory",
    "read_file",
    "google_web_search",
    "codebase_investigator",
    "cli_help",
    "get_internal_docs",
    "tracker_create_task",
    "tracker_update_task",
    "tracker_get_task",
    "tracker_list_tasks",
    "tracker_add_dependency",
    "tracker_visualize",
    "update_topic",
    "complete_task",
    "read_mcp_resource",
    "list_mcp_resources",
)
EDITS = ("write_file", "replace")
CHANGING = ("replace", "run_shell_command", "write_file", "activate_skill", "web_fetch")

PLAN_NO_EDIT = (
    "You are in Plan Mode and cannot modify source code. You may ONLY use write_file or replace "
    "to save plans to the designated plans directory as .md files."
)
PLAN_READ_ONLY = (
    "You are in Plan Mode with access to read-only tools. Execution of scripts (including those "
    "from skills) is blocked."
)
"""Like `PLAN_NO_EDIT`, the exact message by which the CLI denies a call."""

_SLASH = r"[\\/]+"
_NAME = r"[\w-]+"
_PLAN_NAME = rf"{_NAME}\.md"


def _plan_paths() -> Iterator[str]:
    """Yield patterns for the paths to which plans may be written in plan mode.

    These are files in `.gemini/tmp/PROJECT[/SESSION]/plans/` or `plans/`, and names without a
    folder. Only letters, digits, `_` and `-` are allowed in a plan's name
    (assets/gemini-cli.md#plan-mode).
    """
    for session in (rf"{_NAME}{_SLASH}", ""):
        kept = rf"\.gemini{_SLASH}tmp{_SLASH}{_NAME}{_SLASH}{session}plans{_SLASH}{_PLAN_NAME}"
        for start in (rf"[^\"]+{_SLASH}", "", rf"\.{_SLASH}"):
            yield start + kept
    for folder in ("", rf"plans{_SLASH}"):
        for start in ("", rf"\.{_SLASH}"):
            yield start + folder + _PLAN_NAME


def _plan_files() -> str:
    return rf'\x00"file_path":"(?:{"|".join(_plan_paths())})"\x00'


def _builtin(
    tools: str | tuple[str, ...],
    decision: Decision,
    priority: int,
    *modes: str,
    source: str = SOURCE,
    interactive: bool | None = None,
    **more: object,
) -> Rule:
    names = (tools,) if isinstance(tools, str) else tools
    return Rule(
        tools=names,
        tool_list=len(names) > 1,
        decision=decision,
        priority=priority,
        modes=modes,
        interactive=interactive,
        tier=Tier.BUILTIN,
        source=source,
        **more,  # type: ignore[arg-type]
    )


def _builtin_rules() -> Iterator[Rule]:
    rule = _builtin
    yield rule("invoke_agent", ALLOW, 50, "default", "autoEdit", "yolo")
    yield rule("discovered_tool_*", ASK, 10, interactive=True)
    yield rule("discovered_tool_*", DENY, 10, interactive=False)
    yield rule("ask_user", DENY, 999, interactive=False)
    yield rule("enter_plan_mode", ASK, 50, interactive=True)
    yield rule("enter_plan_mode", ALLOW, 50, interactive=False)
    yield rule("enter_plan_mode", DENY, 70, "plan")
    yield rule("exit_plan_mode", ASK, 70, "plan", interactive=True)
    yield rule("exit_plan_mode", ALLOW, 70, "plan", interactive=False)
    yield rule("exit_plan_mode", DENY, 50)
    yield rule("*", DENY, 40, "plan", deny_message=PLAN_READ_ONLY)
    yield rule(
        "*", ASK, 50, "plan", interactive=True, mcp_name="*", annotations={"readOnlyHint": True}
    )
    yield rule(
        "invoke_agent",
        ALLOW,
        50,
        "plan",
        args_pattern=r'"agent_name":\s*"(codebase_investigator|cli_help)"',
    )
    yield rule(("ask_user", "web_fetch", "activate_skill"), ASK, 50, "plan", interactive=True)
    yield rule(EDITS, ALLOW, 70, "plan", args_pattern=_plan_files())
    yield rule(EDITS, DENY, 65, "plan", deny_message=PLAN_NO_EDIT)
    yield rule(READ_ONLY, ALLOW, 50)
    yield rule("replace", ASK, 10, interactive=True)
    yield rule("replace", ALLOW, 15, "autoEdit")
    yield rule("run_shell_command", ASK, 10, interactive=True)
    yield rule("write_file", ASK, 10, interactive=True)
    yield rule("activate_skill", ASK, 10, interactive=True)
    yield rule("write_file", ALLOW, 15, "autoEdit")
    yield rule("web_fetch", ALLOW, 15, "autoEdit")
    yield rule("web_fetch", ASK, 10, interactive=True)
    yield rule(CHANGING, DENY, 10, interactive=False)
    yield rule("ask_user", ASK, 999, "yolo", interactive=True)
    yield rule(("enter_plan_mode", "exit_plan_mode"), DENY, 999, "yolo", interactive=True)
    yield rule("*", ALLOW, 998, "yolo", allow_redirection=True)


BUILTIN: tuple[Rule, ...] = tuple(_builtin_rules())
BUILTIN_CHECKERS = (
    SafetyChecker(
        rule=Rule(
            tools=EDITS,
            decision=DENY,
            priority=15,
            modes=("autoEdit",),
            tier=Tier.BUILTIN,
            source="built-in",
        ),
        name="allowed-path",
    ),
)
"""The CLI's built-in checkers that are active without any setting."""

_FOREIGN_READING = (
    "glob",
    "grep_search",
    "list_directory",
    "read_background_output",
    "read_file",
    "read_many_files",
    "tool_search",
    "write_todos",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskUpdate",
    "ToolSearch",
)
"""Tools of other agents that only read, or only keep notes of their own."""

FOREIGN: tuple[Rule, ...] = (
    _builtin(_FOREIGN_READING, ALLOW, 50, source=GEMTUI),
    _builtin("*", DENY, 40, "plan", source=GEMTUI, deny_message=PLAN_READ_ONLY),
    _builtin(EDITS, ALLOW, 15, "autoEdit", source=GEMTUI),
)
"""gemtui's own rules for calls of other agents, in place of those of Gemini CLI.

What they and the policy leave open is asked, but for safe commands.
"""
