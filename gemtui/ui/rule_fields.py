"""A rule as the texts of a form, and back; pure.

A list of names is separated by commas. A command's prefixes may hold commas: one alone stands as it
is, several stand in double quotes with commas between.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from gemtui.policy.rules import Decision, Rule

ANYWHERE, HEADLESS, INTERACTIVE = "anywhere", "headless", "interactive"
UNSET, YES, NO = "unset", "yes", "no"
_INTERACTIVE = {ANYWHERE: None, HEADLESS: False, INTERACTIVE: True}
_REDIRECTION = {UNSET: None, YES: True, NO: False}
MODES = ("default", "autoEdit", "plan", "yolo")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is wrong with one field, by its name."""

    field: str
    message: str


Values = Mapping[str, str]
"""What stands in each field of the form; modes as their names, separated by blanks."""


def values_of(rule: Rule) -> dict[str, str]:
    """The texts of a rule."""
    return {
        "decision": rule.decision.value,
        "priority": f"{rule.priority:g}",
        "tools": ", ".join(rule.tools),
        "command_prefixes": _prefix_text(rule),
        "command_regex": rule.command_regex or "",
        "args_pattern": rule.args_pattern or "",
        "mcp_name": rule.mcp_name or "",
        "subagent": rule.subagent or "",
        "annotations": _annotation_text(rule.annotations or {}),
        "modes": " ".join(rule.modes),
        "interactive": _key(_INTERACTIVE, rule.interactive),
        "allow_redirection": _key(_REDIRECTION, rule.allow_redirection),
        "deny_message": rule.deny_message or "",
    }


def _key(choices: Mapping[str, bool | None], value: bool | None) -> str:
    return next(name for name, each in choices.items() if each is value)


def _prefix_text(rule: Rule) -> str:
    prefixes = rule.command_prefixes
    if len(prefixes) == 1 and not prefixes[0].startswith('"') and prefixes[0].strip():
        return prefixes[0]
    return ", ".join(map(_quoted, prefixes))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _annotation_text(annotations: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} = {tomlkit.item(value).as_string()}" for name, value in annotations.items()
    )


def rule_of(values: Values, base: Rule) -> Rule | Problem:
    """The rule that the form describes, or the first field that can't be read.

    `base`: what was there, for all that the form does not show.
    """
    priority = values["priority"].strip()
    if not re.fullmatch(r"[0-9]{1,3}", priority):
        return Problem(field="priority", message="a whole number from 0 to 999")
    try:
        prefixes = _prefixes(values["command_prefixes"])
    except ValueError as error:
        return Problem(field="command_prefixes", message=str(error))
    try:
        annotations = _annotations(values["annotations"])
    except ValueError as error:
        return Problem(field="annotations", message=str(error))
    tools = names(values["tools"])
    return replace(
        base,
        decision=Decision(values["decision"]),
        priority=int(priority),
        tools=tools,
        tool_list=len(tools) > 1 or (base.tool_list and len(tools) == len(base.tools)),
        command_prefixes=prefixes,
        prefix_list=len(prefixes) > 1 or (base.prefix_list and len(prefixes) == 1),
        command_regex=values["command_regex"] or None,
        args_pattern=values["args_pattern"] or None,
        mcp_name=values["mcp_name"].strip() or None,
        subagent=values["subagent"].strip() or None,
        annotations=annotations or None,
        modes=tuple(values["modes"].split()),
        interactive=_INTERACTIVE[values["interactive"]],
        allow_redirection=_REDIRECTION[values["allow_redirection"]],
        deny_message=values["deny_message"] or None,
    )


def names(text: str) -> tuple[str, ...]:
    """Names with commas between, each once."""
    return tuple(dict.fromkeys(filter(None, (part.strip() for part in text.split(",")))))


_STRING = re.compile(r'\s*"((?:[^"\\]|\\.)*)"\s*(,|$)')


def _prefixes(text: str) -> tuple[str, ...]:
    if not text.lstrip().startswith('"'):
        return (text,) if text.strip() else ()
    found, at = [], 0
    while at < len(text):
        part = _STRING.match(text, at)
        if part is None:
            raise ValueError('several prefixes stand in quotes: "pytest", "ruff check"')
        found.append(re.sub(r"\\(.)", r"\1", part[1]))
        at = part.end()
    return tuple(found)


def _annotations(text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        table = tomlkit.parse(f"value = {{ {text} }}").unwrap()["value"]
    except TOMLKitError:
        raise ValueError("such as readOnlyHint = true, destructiveHint = false") from None
    if not isinstance(table, dict):
        raise ValueError("such as readOnlyHint = true")
    return table
