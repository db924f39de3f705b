"""Convert the CLI's settings and flags to the rules they act like.

See assets/gemini-cli.md#settings-as-rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gemtui.policy.engine.results import Setup
from gemtui.policy.match.matching import SHELL
from gemtui.policy.model.rules import ApprovalMode, Decision, Rule

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
    return tuple(_rules(setup, interactive))


def _rules(setup: Setup, interactive: bool) -> Iterator[Rule]:
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
