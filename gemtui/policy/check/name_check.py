"""Find rules that can match no tool because of how they name it (assets/gemini-cli.md#tool-names).

Such a rule that denies or asks is an error, because the calls that it is about run.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gemtui.policy.engine.setup import names_at, table_at
from gemtui.policy.file.rule_codec import value_to_toml
from gemtui.policy.model.mcp_names import (
    LONGEST_NAME,
    MCP_PREFIX,
    cli_name,
    is_name_of_server,
    longest_in_wildcard,
    matches_some_tool,
    rule_name,
    tool_prefix,
    valid_name,
    wildcard_works,
)
from gemtui.policy.model.rules import Decision, FindingDraft, FindingKind, Rule, Severity
from gemtui.policy.model.tool_catalog import (
    AGENTS,
    DISCOVERED,
    FORMER,
    GONE,
    current_name,
    nearest,
    tool,
)
from gemtui.text import or_list

NameFinding = tuple[FindingDraft, Rule | None]
"""A finding, and a corrected rule; None if no correction can be derived."""
_AGENT_NAME = re.compile(r"[a-z0-9_-]+")
"""The names that Gemini CLI accepts for agents; rules may use them instead of a tool's name."""
_ELSEWHERE = re.compile(
    r"mcp__([A-Za-z0-9-][A-Za-z0-9.-]*(?:_[A-Za-z0-9.-]+)*)__(\*|[A-Za-z0-9].*)"
)
_RENAME_SERVER = (
    "rename the server in the settings of Gemini CLI, with at most 25 letters, "
    'digits, "-" and ".", or name each tool'
)


def unmatched_names(rule: Rule) -> Iterator[NameFinding]:
    """Yield a finding for each name in a rule that no tool can have."""
    for name in dict.fromkeys(rule.tools):
        if rule.mcp_name is None:
            yield from _full_name(name, rule)
        elif rule.mcp_name:
            yield from _short_name(rule.mcp_name, name, rule)
    if rule.mcp_name == "*" and (named := [name for name in rule.tools if name not in ("*", "")]):
        text = f'mcpName = "*" together with a tool ({or_list(named)}) matches nothing'
        yield _never("mcpName", text, 'name the server, or write toolName = "*"'), None


def _never(
    field: str, text: str, way_out: str, severity: Severity = Severity.ERROR
) -> FindingDraft:
    return FindingDraft(field, text, way_out, severity, kind=FindingKind.NEVER_MATCHES)


def _write(name: str) -> str:
    return f'write "{name}"'


def _renamed(rule: Rule, old: str, new: str, mcp_name: str | None) -> Rule:
    """Return a rule with one of its tools' names replaced.

    `mcp_name`: the server's name in the result. If it is None, all other tools of the rule's server
    get their full names.
    """
    names = (new if name == old else name for name in rule.tools)
    if rule.mcp_name and mcp_name is None:
        names = (new if name == old else _full(rule.mcp_name, name) for name in rule.tools)
    return replace(rule, tools=tuple(dict.fromkeys(names)), mcp_name=mcp_name)


def _full(server: str, name: str) -> str:
    return rule_name(server, name) if name == "*" else cli_name(server, name)


# --- full names -----------------------------------------------------------------------------------


def _full_name(name: str, rule: Rule) -> Iterator[NameFinding]:
    if name in ("", "*"):
        return
    elsewhere = _ELSEWHERE.fullmatch(name)
    if elsewhere:
        yield _as_elsewhere(name, elsewhere[1], elsewhere[2], rule)
    elif "*" in name:
        yield from _wildcard(name, rule)
    elif name.startswith(MCP_PREFIX):
        yield from _mcp_name(name, rule)
    elif "__" in name:
        meant = current_name(name) or ""
        text = f'"{name}" is the format of older versions and no longer matches anything'
        yield _never("toolName", text, _write(meant)), _renamed(rule, name, meant, None)
    elif tool(name) is None and name not in AGENTS and not name.startswith(DISCOVERED):
        yield from _unknown_name(name, rule)


def _as_elsewhere(name: str, server: str, short: str, rule: Rule) -> NameFinding:
    """Return the finding for a name such as `mcp__server__tool`, as other programs write it."""
    meant = _full(server, short)
    text = f'"{name}" matches no tool of the server "{server}"'
    return _never("toolName", text, _write(meant)), _renamed(rule, name, meant, None)


def _mcp_name(name: str, rule: Rule) -> Iterator[NameFinding]:
    if "_" not in name.removeprefix(MCP_PREFIX):
        text = f'"{name}" names an MCP server but no tool, so it matches nothing'
        yield _never("toolName", text, f'write "{name}_*" to match all of its tools'), None
    elif not matches_some_tool(name):
        meant = valid_name(name)
        text = (
            f'no tool has the name "{name}", because Gemini CLI calls it {meant}, so the rule '
            "never matches"
        )
        yield _never("toolName", text, _write(meant)), _renamed(rule, name, meant, None)


def _unknown_name(name: str, rule: Rule) -> Iterator[NameFinding]:
    near = nearest(name)
    text = f'there is no tool "{name}", so the rule matches nothing'
    mistake = near is not None or not _AGENT_NAME.fullmatch(name)
    if name in FORMER:
        text = f'"{name}" is not a tool name that rules can use, so it matches nothing'
    elif not mistake:
        text = (
            f'there is no tool "{name}", so the rule matches nothing unless an agent has this name'
        )
    opens = rule.decision is not Decision.ALLOW and mistake and name not in GONE
    severity = Severity.ERROR if opens else Severity.WARNING
    fixed = _renamed(rule, name, near, None) if near else None
    yield _never("toolName", text, _write(near) if near else "check the name", severity), fixed


def _wildcard(name: str, rule: Rule) -> Iterator[NameFinding]:
    server = name.removeprefix(MCP_PREFIX).removesuffix("_*")
    if name == f"{MCP_PREFIX}*":
        return
    if name == rule_name(server, "*") and "*" not in server:
        yield from _all_of_server("toolName", server, name, rule)
        return
    if name.startswith(f"{MCP_PREFIX}*_"):
        way_out = "name each server in its own rule or in the list, or write mcp_*"
    elif name.startswith(MCP_PREFIX):
        way_out = f'write "{MCP_PREFIX}*" for all servers or "mcp_<server>_*" for one'
    else:
        way_out = "list the names one by one"
    text = f'"{name}" matches nothing, because * can replace only a whole name'
    yield _never("toolName", text, way_out), None


# --- a server and its tools -----------------------------------------------------------------------


def _short_name(server: str, name: str, rule: Rule) -> Iterator[NameFinding]:
    if server == "*" or name == "":
        if server != "*":
            text = "an empty tool name for a server matches nothing"
            yield _never("toolName", text, 'write "*" to match all of its tools'), None
    elif name == "*":
        yield from _all_of_server("mcpName", server, name, rule)
    elif "*" in name:
        text = (
            f'the server tool name "{name}" matches nothing: * is allowed only alone, to match '
            "all tools of the server"
        )
        yield _never("toolName", text, 'write "*", or list the tool names'), None
    else:
        yield from _tool_of_server(server, name, rule)


def _tool_of_server(server: str, name: str, rule: Rule) -> Iterator[NameFinding]:
    compared = rule_name(server, name)
    short = name.removeprefix(rule_name(server, ""))
    meant = cli_name(server, short)
    if "*" not in compared and (compared == meant or is_name_of_server(name, server)):
        return
    text = (
        f'the rule never matches the tool "{short}" of the server "{server}", because Gemini CLI '
        "calls it "
        f'{meant}, and compares that with "{compared}"'
    )
    if wildcard_works(server) and len(rule_name(server, short)) <= LONGEST_NAME:
        kept = meant.removeprefix(rule_name(server, ""))
        yield _never("toolName", text, _write(kept)), _renamed(rule, name, kept, server)
    else:
        prefix = tool_prefix(server)
        # Without its server, a name that starts with mcp__ may look like one of another program.
        keeps_server = prefix.startswith(f"{MCP_PREFIX}_") and "*" not in server
        alone = prefix != MCP_PREFIX and not keeps_server
        way_out = f'write toolName = "{meant}"{" without mcpName" if alone else ""}'
        fixed: Rule | None = _renamed(rule, name, meant, None if alone else server)
        if alone and fixed and any(map(_ELSEWHERE.fullmatch, fixed.tools)):
            way_out = _RENAME_SERVER
            fixed = None
        yield _never("toolName", text, way_out), fixed


def _all_of_server(field: str, server: str, name: str, rule: Rule) -> Iterator[NameFinding]:
    """Yield a finding if the wildcard for all tools of a server doesn't match all of them.

    `field`: the field that names the server. `name`: the wildcard, as the rule spells it.
    """
    longest = longest_in_wildcard(server)
    works = wildcard_works(server)
    if works and longest is None:
        return
    fixed = _by_server(server, name, rule)
    way_out = _RENAME_SERVER
    if fixed is not None:
        way_out = (
            f'write toolName = "*" and toolAnnotations = {{ _serverName = '
            f"{value_to_toml(server)} }} without mcpName"
        )
    if not works:
        text = (
            f'the rule never matches a tool of the server "{server}", because Gemini CLI calls '
            "these tools "
            f"{valid_name(tool_prefix(server))}..., and compares that with "
            f'"{rule_name(server, "")}..."'
        )
        yield _never(field, text, way_out), fixed
        return
    severity = Severity.WARNING if rule.decision is Decision.ALLOW else Severity.ERROR
    text = (
        f'the rule misses tools of the server "{server}" whose own names have more than {longest} '
        f"characters, because Gemini CLI cuts full names of more than {LONGEST_NAME}"
    )
    yield FindingDraft(field, text, way_out, severity), fixed


def _by_server(server: str, name: str, rule: Rule) -> Rule | None:
    """Return a rule that hides all tools of a server, whatever their names are; None if none can.

    While it decides which tools to hide, and only then, Gemini CLI gives each tool an annotation
    with the server's plain name. Rules with conditions, and those for one subagent, hide no tools.
    """
    if rule.decision is not Decision.DENY or rule.conditional or rule.subagent or rule.annotations:
        return None
    if rule.tools != (name,):
        return None
    return replace(
        rule, tools=("*",), tool_list=False, mcp_name=None, annotations={"_serverName": server}
    )


# --- several tools with one name ------------------------------------------------------------------


def same_names(
    rules: Sequence[Rule], settings: Mapping[str, Any]
) -> Mapping[int, tuple[FindingDraft, ...]]:
    """Find rules for tools that get the same name as another tool.

    Known tools are those that the rules name with their server, and those that the servers in
    Gemini CLI's settings include or exclude by name. Returns a mapping from each rule's index in
    `rules` to its findings.
    """
    drafts_by_rule: defaultdict[int, list[FindingDraft]] = defaultdict(list)
    tools: defaultdict[str, dict[tuple[str, str], None]] = defaultdict(dict)
    servers: defaultdict[str, dict[str, None]] = defaultdict(dict)
    known_tools = list(_tools_in_settings(settings))
    for rule in rules:
        known_tools += _tools_in_rule(rule)
    for pair in known_tools:
        tools[cli_name(*pair)][pair] = None
    for server in table_at(settings, "mcpServers"):
        servers[tool_prefix(server)][server] = None
    for index, rule in enumerate(rules):
        cases = [*_other_cases(rule, table_at(settings, "mcpServers"))]
        if cases:
            drafts_by_rule[index] += cases
        for pair in _tools_in_rule(rule):
            for other in tools[cli_name(*pair)]:
                if other != pair:
                    drafts_by_rule[index].append(_same_tool(pair, other))
                    break
        for server in servers[tool_prefix(rule.mcp_name)] if rule.mcp_name else ():
            if rule.mcp_name and server != rule.mcp_name:
                drafts_by_rule[index].append(_same_server(rule.mcp_name, server))
                break
    return {index: tuple(drafts) for index, drafts in drafts_by_rule.items()}


def _other_cases(rule: Rule, servers: Iterable[str]) -> Iterator[FindingDraft]:
    """Yield a finding for each server that a rule names in another case than the settings."""
    names = [rule.mcp_name] if rule.mcp_name else []
    names += [name for name in rule.tools if not names and name.startswith(MCP_PREFIX)]
    starts = {server: server if rule.mcp_name else tool_prefix(server) for server in servers}
    for name in names:
        if any(name.startswith(start) for start in starts.values()):
            continue
        for server, start in starts.items():
            if name[: len(start)].casefold() == start.casefold():
                field = "mcpName" if rule.mcp_name else "toolName"
                text = f'"{name}" doesn\'t match the server "{server}" of the settings'
                yield _never(field, text, f'write "{server}" in the same case', Severity.WARNING)


def _tools_in_rule(rule: Rule) -> Iterator[tuple[str, str]]:
    """Yield the servers and names of the tools that a rule names one by one."""
    server = rule.mcp_name
    if not server or server == "*":
        return
    for name in rule.tools:
        if "*" not in name and not is_name_of_server(name, server):
            yield server, name.removeprefix(rule_name(server, ""))


def _tools_in_settings(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for server in table_at(settings, "mcpServers"):
        for setting in ("includeTools", "excludeTools"):
            for item in names_at(settings, "mcpServers", server, setting) or ():
                yield server, item.partition("(")[0]


def _same(text: str) -> FindingDraft:
    way_out = (
        "rename one of them; until then, Gemini CLI offers only one of them, and rules "
        "can't tell which"
    )
    return FindingDraft("toolName", text, way_out, Severity.WARNING, kind=FindingKind.SAME_NAME)


def _same_tool(pair: tuple[str, str], other: tuple[str, str]) -> FindingDraft:
    pairs = f'"{pair[1]}" of the server "{pair[0]}" and "{other[1]}" of the server "{other[0]}"'
    return _same(f"two tools have the same name for Gemini CLI, {cli_name(*pair)}: {pairs}")


def _same_server(server: str, other: str) -> FindingDraft:
    start = valid_name(tool_prefix(server))
    return _same(
        f'tools of the servers "{server}" and "{other}" get the same names for Gemini CLI, which '
        f"start with {start}"
    )


def drafts_of(found: Iterable[NameFinding]) -> Iterator[FindingDraft]:
    """Yield the findings without the corrected rules."""
    for draft, _fixed in found:
        yield draft
