"""What decides beside policy files: the setup, and the rules that the CLI adds to them.

Settings and flags act like rules (assets/gemini-cli.md#settings-as-rules). The built-in rules have
tier 1, the lowest; they were observed in Gemini CLI 0.61.0 (assets/gemini-cli.md#tools).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gemtui.policy.match.matching import SHELL, CompiledRule
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, Rule, SafetyChecker, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTool:
    """A tool of an MCP server.

    `name`: the name that the server gives it in `tools/list`. In the CLI's name for the tool, this
    is preceded by `mcp_` and the server's name.
    """

    server: str
    name: str
    annotations: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Everything a decision depends on, apart from the policy files and the mode.

    * `settings`: the merged settings.
    * `allowed_tools`: the values of `--allowed-tools`.
    * `mcp_tools`: the known MCP tools. For any other tool name of the form `mcp_<server>_<tool>`,
      the server names in the settings determine where the server part ends.
    * `workspace`: the run's folder; None leaves paths in commands unresolved.
    * `include_directories`: the values of `--include-directories`.
    * `stopped`: why the CLI doesn't start on this machine; None if it starts.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    allowed_tools: tuple[str, ...] = ()
    mcp_tools: tuple[McpTool, ...] = ()
    workspace: Path | None = None
    include_directories: tuple[Path, ...] = ()
    stopped: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A decision, with notes on how the engine made it.

    * `ready`: the rule that decided; None if no rule did, or if anything besides a rule was
      involved.
    * `matched`: the rule that matched first, if the engine then decided differently.
    * `note`: why the engine decided differently, as a clause.
    * `message`: the CLI's message to the model about a denial, unless it is the rule's own.
    * `stuck`: whether matching a pattern took too long, so the CLI would hang; `note` names the
      pattern.
    """

    decision: Decision
    ready: CompiledRule | None = None
    matched: CompiledRule | None = None
    note: str = ""
    message: str | None = None
    stuck: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A decision without reasons.

    `offered`: whether the model sees the tool. `rule`: None if no rule matched, so that the mode's
    default decided. `found`: whether the CLI recognises the tool; if not, the call fails as not
    found, whatever the rules say, and the decision is deny. A tool called by a former name is found
    although that name is not offered.
    """

    decision: Decision
    offered: bool
    rule: Rule | None
    found: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Considered:
    """A rule that was tried for a call.

    `matches`: whether the rule matched. `why`: why it did or didn't, as a clause.
    """

    rule: Rule
    matches: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The decision for a call, with its reasons.

    * `decision`: the decision in the given kind of run, headless or interactive. In headless runs,
      `ask_user` acts as a denial.
    * `offered`: whether the model sees the tool in that kind of run.
    * `found`: whether the CLI recognises the tool; if not, the call fails as not found. A tool that
      is called by a former name is found although that name is not offered.
    * `headless`: the decision if the run is headless: allow or deny.
    * `interactive`: the decision if the run is interactive: allow, deny or ask_user.
    * `because`: the reason, in one or more sentences.
    * `message`: the message to the model about a denial, usually a rule's denyMessage.
    * `considered`: the rules in the order in which they are tried.
    * `tool_refuses`: why the tool itself refuses the call, whatever the policy says; None if it
      doesn't.
    """

    call: Call
    mode: ApprovalMode
    decision: Decision
    offered: bool
    headless: Decision
    interactive: Decision
    rule: Rule | None
    because: str
    message: str | None
    considered: tuple[Considered, ...]
    found: bool = True
    tool_refuses: str | None = None


SHELL_NAMES = (SHELL, "ShellTool")
NOT_PLAN = ("default", "autoEdit", "yolo")
_WITH_ARGUMENTS = re.compile(r"([a-zA-Z0-9_-]+)\((.*)\)")


def table_at(settings: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """Return the table under successive keys of the settings; {} if there is none."""
    here: Any = settings
    for name in path:
        here = here.get(name) if isinstance(here, Mapping) else None
    return here if isinstance(here, Mapping) else {}


def names_at(settings: Mapping[str, Any], *path: str) -> tuple[str, ...] | None:
    """Return the list of names under successive keys of the settings; None if not set."""
    *groups, last = path
    value = table_at(settings, *groups).get(last)
    if not isinstance(value, list | tuple):
        return None
    return tuple(item for item in value if isinstance(item, str))


def always_allow_off(settings: Mapping[str, Any]) -> bool:
    """Return whether the settings drop all rules with priority 950, even deny rules.

    The CLI itself writes rules with this priority when the user answers "always".
    """
    return bool(
        table_at(settings, "security").get("disableAlwaysAllow") or table_at(settings, "admin").get("secureModeEnabled")
    )


def fatal(setup: Setup, mode: ApprovalMode) -> str | None:
    """Return why the CLI would not start with this setup and mode; None if it starts."""
    off = table_at(setup.settings, "security").get("disableYoloMode")
    if mode is ApprovalMode.YOLO and (off or table_at(setup.settings, "admin").get("secureModeEnabled")):
        return "the settings disable yolo mode, so Gemini CLI exits immediately"
    return setup.stopped


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


def _rule(tool: str, decision: Decision, priority: float, source: str, modes: tuple[str, ...] = ()) -> Rule:
    return Rule(tools=(tool,), decision=decision, priority=priority, modes=modes, source=source)


def _server(server: str, decision: Decision, priority: float, source: str, modes: tuple[str, ...]) -> Rule:
    return Rule(tools=("*",), mcp_name=server, decision=decision, priority=priority, modes=modes, source=source)


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
    found = _WITH_ARGUMENTS.fullmatch(tool)
    return found[2] if found and found[1] in SHELL_NAMES else None


def _listed(tools: tuple[str, ...], priority: float, source: str, modes: tuple[str, ...]) -> Iterator[Rule]:
    for tool in tools:
        prefix = _narrowed(tool)
        if prefix is None:
            found = _WITH_ARGUMENTS.fullmatch(tool)
            yield _rule(_shell(found[1] if found else tool), Decision.ALLOW, priority, source, modes)
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


def _builtin_rules() -> Iterator[Rule]:
    def rule(
        tools: str | tuple[str, ...],
        decision: Decision,
        priority: int,
        *modes: str,
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
            source=SOURCE,
            **more,  # type: ignore[arg-type]
        )

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
    yield rule("*", ASK, 50, "plan", interactive=True, mcp_name="*", annotations={"readOnlyHint": True})
    yield rule("invoke_agent", ALLOW, 50, "plan", args_pattern=r'"agent_name":\s*"(codebase_investigator|cli_help)"')
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
        rule=Rule(tools=EDITS, decision=DENY, priority=15, modes=("autoEdit",), tier=Tier.BUILTIN, source="built-in"),
        name="allowed-path",
    ),
)
"""The CLI's built-in checkers that are active without any setting."""
