"""Check a single rule for parts that the CLI drops, ignores or never matches.

Most of the checks follow from assets/gemini-cli.md#rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from gemtui.policy.check.name_check import drafts_of, unmatched_names
from gemtui.policy.file.rule_codec import KEYS, MODES, OLD_KEYS, SchemaProblem
from gemtui.policy.match.matching import SHELL, dropped, pattern_sources
from gemtui.policy.match.patterns import slow
from gemtui.policy.model.rules import Decision, FindingDraft, Rule, warned
from gemtui.policy.model.tool_catalog import AGENTS, tool
from gemtui.text import or_list

WHOLE = "Gemini CLI ignores the whole file because of this"
_DECISIONS = {"ask": "ask_user", "prompt": "ask_user", "confirm": "ask_user", "block": "deny"}
_MODES = {"auto_edit": "autoEdit", "autoedit": "autoEdit", "auto-edit": "autoEdit"}
_KEYS = {
    "tool": "toolName",
    "tools": "toolName",
    "prefix": "commandPrefix",
    "regex": "commandRegex",
}


def schema_draft(problem: SchemaProblem, table: Mapping[str, Any]) -> FindingDraft:
    """Describe a value that violates the schema, and what to write instead.

    `table`: the rule's fields, as parsed from TOML.
    """
    field = problem.field
    value = table.get(problem.field)
    match field, value:
        case "decision", str():
            meant = _DECISIONS.get(value.lower(), value.lower().replace("-", "_"))
            way_out = f'write "{meant}"' if meant in tuple(Decision) else ""
            text = f'"{value}" is not a valid decision; use {or_list(Decision)}; {WHOLE}'
            return FindingDraft(field, text, way_out)
        case "modes", list() if value and all(isinstance(mode, str) for mode in value):
            unknown = next(mode for mode in value if mode not in MODES)
            near = _MODES.get(unknown.lower()) or _nearest(unknown, MODES)
            text = f'"{unknown}" is not a valid mode in a rule; use {", ".join(MODES)}; {WHOLE}'
            return FindingDraft(field, text, f'write "{near}"' if near else "")
        case "toolName", None if "mcpName" in table:
            return FindingDraft(field, _missing(field), 'add toolName = "*" to mcpName')
        case "toolName", None:
            return FindingDraft(field, _missing(field), 'write a name, or "*" for any tool')
        case "decision", None:
            return FindingDraft(field, _missing(field), f"write {or_list(Decision)}")
        case "priority", None:
            return FindingDraft(field, _missing(field), "write a number from 0 to 999")
        case "priority", int() | float() if not isinstance(value, bool):
            text = f"priority {value} is not a whole number from 0 to 999; {WHOLE}"
            return FindingDraft(field, text, f"write {_whole(value)}")
    return FindingDraft(field, f"{problem.why}; {WHOLE}")


def _missing(field: str) -> str:
    return f"{field} is missing; {WHOLE}"


def _whole(value: float) -> int:
    """Return the valid priority (an integer from 0 to 999) nearest to a value."""
    return round(min(999, max(0, value))) if value == value else 0


def rule_drafts(table: Mapping[str, Any], rule: Rule) -> Iterator[FindingDraft]:
    """Yield the findings about a rule, except for violations of the schema.

    For those, see `schema_draft`. `table`: the rule's fields, as parsed from TOML. `rule`: the rule
    that these fields define.
    """
    yield from _ends_the_cli(rule)
    yield from _shell_fields(table, rule)
    yield from _empty_conditions(table, rule)
    yield from _patterns(rule)
    yield from drafts_of(unmatched_names(rule))
    yield from _without_effect(table, rule)
    yield from _keys(table)


def _ends_the_cli(rule: Rule) -> Iterator[FindingDraft]:
    for field, empty, way_out in (
        ("toolName", "" in rule.tools and not rule.mcp_name, 'write "*" for any tool'),
        ("mcpName", rule.mcp_name == "", "name a server, or remove the field"),
        ("subagent", rule.subagent == "", "name an agent, or remove the field"),
    ):
        if empty:
            yield FindingDraft(
                field,
                f"{field} is empty: Gemini CLI exits immediately because of such a rule",
                way_out,
            )


# --- conditions on arguments ---------------------------------------------------------------------


def _shell_fields(table: Mapping[str, Any], rule: Rule) -> Iterator[FindingDraft]:
    keys = [key for key in ("commandPrefix", "commandRegex") if key in table]
    if not keys:
        return
    field = keys[0]
    if rule.tool_list or rule.tools != (SHELL,):
        yield FindingDraft(
            field,
            f'{field} works only with toolName = "{SHELL}" alone, not in a list: otherwise Gemini '
            "CLI reports an error and searches for the text in the arguments of all these tools",
            f'write a separate rule for the shell, with toolName = "{SHELL}"',
        )
    if len(keys) == 2:
        yield FindingDraft(
            "commandRegex",
            "commandRegex is ignored because the rule has a commandPrefix",
            "write two rules",
        )
    if "argsPattern" in table:
        yield FindingDraft(
            "argsPattern",
            f"argsPattern is ignored because the rule has a {field}",
            "write two rules",
        )


def _empty_conditions(table: Mapping[str, Any], rule: Rule) -> Iterator[FindingDraft]:
    for key, values, what in (
        ("toolName", rule.tools, "names no tool"),
        ("commandPrefix", rule.command_prefixes, "names no command"),
    ):
        if table.get(key) == [] and not values:
            yield FindingDraft(
                key, f"the list {what}, so the rule never applies", "add a name, or delete the rule"
            )
    for key in ("commandPrefix", "commandRegex", "argsPattern"):
        if table.get(key) == "":
            text = (
                f"an empty {key} is not a condition, so the rule applies to every call of its tools"
            )
            yield FindingDraft(key, text, "describe the calls to match, or remove the field")
    if rule.prefix_list and "" in rule.command_prefixes:
        text = "an empty prefix in a list matches only commands that start with a space or a quote"
        yield warned("commandPrefix", text, "remove it")


def _patterns(rule: Rule) -> Iterator[FindingDraft]:
    if rule.prefix_list or any(rule.command_prefixes):
        yield from _too_long(rule)
        return
    for field, pattern, source in (
        ("commandRegex", rule.command_regex, f'"command":"{rule.command_regex}'),
        ("argsPattern", rule.args_pattern, rule.args_pattern or ""),
    ):
        if not pattern or (field == "argsPattern" and rule.command_regex):
            continue
        why = dropped(source)
        if why:
            yield FindingDraft(field, f"{why}: Gemini CLI ignores the rule", _way_out(pattern))
            continue
        if slow(source):
            text = (
                "this pattern can match the same text in too many ways, so long arguments may "
                "take very long"
            )
            yield warned(field, text, "make it more specific")
        if "\\p{" in pattern or "\\P{" in pattern or "[[:" in pattern:
            text = (
                "\\p{…} and [[:…:]] have no special meaning here; they are matched as plain "
                "characters"
            )
            yield warned(field, text, "write the characters out, such as [A-Za-z]")


def _too_long(rule: Rule) -> Iterator[FindingDraft]:
    for prefix, source in zip(rule.command_prefixes, pattern_sources(rule), strict=False):
        if source and (why := dropped(source)):
            yield FindingDraft(
                "commandPrefix", f'"{prefix[:40]}": {why}: Gemini CLI ignores the rule'
            )


def _way_out(pattern: str) -> str:
    if "(?P<" in pattern:
        return "in JavaScript, write (?<name>…) instead of (?P<name>…)"
    if pattern.startswith("(?i"):
        return "JavaScript has no (?i): write [Aa] to match both cases"
    return ""


# --- fields that do nothing ----------------------------------------------------------------------


def _without_effect(table: Mapping[str, Any], rule: Rule) -> Iterator[FindingDraft]:
    if table.get("modes") == []:
        yield warned(
            "modes",
            "an empty list of modes is the same as no list: the rule applies in all modes",
            "list the modes, or remove the field",
        )
    if rule.deny_message is not None and rule.decision is not Decision.DENY:
        text = (
            "denyMessage is used only in rules that deny, and this rule's decision is "
            f"{rule.decision}"
        )
        yield warned(_spelled("denyMessage", table), text, "remove it")
    if rule.allow_redirection is not None:
        shell = rule.mcp_name is None and (not rule.tools or {SHELL, "*"} & {*rule.tools})
        if not shell or rule.decision is not Decision.ALLOW:
            text = "allowRedirection has an effect only in rules that allow shell commands"
            yield warned(_spelled("allowRedirection", table), text, "remove it")
    for old, new in OLD_KEYS.items():
        if old in table and new in table:
            yield warned(old, f"{old} is ignored because the rule has {new}", "remove it")
    if rule.annotations and _built_in(rule):
        text = "Gemini CLI's own tools have no toolAnnotations, so the rule never applies to them"
        yield warned(
            "toolAnnotations", text, "remove it; toolAnnotations are for tools of MCP servers"
        )
    if rule.priority == 950:
        text = "Gemini CLI ignores rules with priority 950 if security.disableAlwaysAllow is set"
        yield warned("priority", text, "write 949 or 951")
    if rule.subagent == "*":
        text = 'subagent = "*" matches only an agent named "*", so the rule never applies'
        yield warned("subagent", text, "remove it to match every agent, or name one")
    elif rule.subagent and rule.subagent not in AGENTS and (near := _agent(rule.subagent)):
        yield warned("subagent", f'there is no agent "{rule.subagent}"', f'write "{near}"')


def _spelled(key: str, table: Mapping[str, Any]) -> str:
    return next((old for old, new in OLD_KEYS.items() if new == key and key not in table), key)


def _built_in(rule: Rule) -> bool:
    return rule.mcp_name is None and bool(rule.tools) and all(map(tool, rule.tools))


def _keys(table: Mapping[str, Any]) -> Iterator[FindingDraft]:
    for key in table:
        if key in KEYS or key in OLD_KEYS:
            continue
        near = _KEYS.get(key.lower()) or _nearest(key, KEYS)
        text = f'Gemini CLI does not recognise the key "{key}" and ignores it'
        yield warned(key, text, f"write {near}" if near else "remove it")


def _agent(name: str) -> str | None:
    near = get_close_matches(name.lower(), AGENTS, n=1, cutoff=0.8)
    return near[0] if near else None


def _nearest(word: str, words: tuple[str, ...]) -> str | None:
    plain = {name.lower(): name for name in words}
    near = get_close_matches(word.lower().replace("_", ""), plain, n=1)
    return plain[near[0]] if near else None
