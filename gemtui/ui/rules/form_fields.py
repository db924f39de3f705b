"""Convert a rule to the values of a form's text fields, and back (pure functions).

Names are separated by commas. Because a command prefix may contain commas, a single prefix is
written as it is, but several are put in double quotes and separated by commas. A pattern that
matches exactly the files under one folder is shown as that folder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from gemtui.policy.match.path_patterns import describe_files, folder_pattern
from gemtui.policy.model.rules import Decision, Rule
from gemtui.text import visible

_WORDS = "files below "
_FRONT = folder_pattern("", ()).partition("/(?!")[0]
"""How a folder's pattern starts if it accepts no project folder before the path."""
_NO_PART = re.compile(r'["\\\x00-\x1f\x7f*?]')


def pattern_folder(pattern: str) -> str:
    """Return the folder, such as "src/", whose files are what a pattern matches.

    This includes files in its subfolders. Returns "" if the pattern matches anything else.
    """
    words = describe_files(pattern) or ""
    return words.removeprefix(_WORDS) if words.startswith(_WORDS) else ""


def pattern_for_folder(folder: str, project: str, before: str = "") -> str:
    """Return a pattern for the files under a folder of the project.

    `folder`: as typed by the user. `project`: the project's path; "" if unknown. `before`: the
    rule's current pattern; if that matches a folder, too, the new pattern stays limited to the same
    projects. Raises ValueError if `folder` isn't a folder of the project.
    """
    name = _name(folder, project.rstrip("/"))
    if old := pattern_folder(before).rstrip("/"):
        end = folder_pattern(old, ()).removeprefix(_FRONT)
        return before.removesuffix(end) + folder_pattern(name, ()).removeprefix(_FRONT)
    return folder_pattern(name, [f"{project.rstrip('/')}/"] if project.rstrip("/") else [])


def _name(folder: str, project: str) -> str:
    text = re.sub(r"(/\*{1,2})?/*$", "", folder.strip())
    if project:
        text = text.removeprefix(f"{project}/")
    name = text.removeprefix("./")
    if not name or name.startswith(("/", "~")) or {".", "..", ""} & {*name.split("/")}:
        raise ValueError("enter a folder of the project, such as src/")
    if _NO_PART.search(name):
        raise ValueError("enter one folder, without quotes, backslashes, * or ?")
    return name


ANYWHERE, HEADLESS, INTERACTIVE = "anywhere", "headless", "interactive"
UNSET, YES, NO = "unset", "yes", "no"
_INTERACTIVE = {ANYWHERE: None, HEADLESS: False, INTERACTIVE: True}
_REDIRECTION = {UNSET: None, YES: True, NO: False}
MODES = ("default", "autoEdit", "plan", "yolo")


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldProblem:
    """What is wrong with a field of the form.

    `field`: the field's name.
    """

    field: str
    message: str


Values = Mapping[str, str]
"""The contents of the form, by field; modes are names separated by spaces."""


def values_of(rule: Rule) -> dict[str, str]:
    """Return the values of a form's fields, with control characters made visible."""
    return {name: _SPACE.sub(" ", visible(text)) for name, text in _texts(rule).items()}


_SPACE = re.compile(r"[\n\t]")


def _texts(rule: Rule) -> dict[str, str]:
    return {
        "decision": rule.decision.value,
        "priority": f"{rule.priority:g}",
        "tools": ", ".join(rule.tools),
        "command_prefixes": _prefix_text(rule),
        "command_regex": rule.command_regex or "",
        **_pattern_texts(rule.args_pattern or ""),
        "mcp_name": rule.mcp_name or "",
        "subagent": rule.subagent or "",
        "annotations": _annotation_text(rule.annotations or {}),
        "modes": " ".join(rule.modes),
        "interactive": _key(_INTERACTIVE, rule.interactive),
        "allow_redirection": _key(_REDIRECTION, rule.allow_redirection),
        "deny_message": rule.deny_message or "",
    }


def _pattern_texts(pattern: str) -> dict[str, str]:
    folder = pattern_folder(pattern)
    return {"folder": folder, "args_pattern": "" if folder else pattern}


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
    return ", ".join(f"{name} = {tomlkit.item(value).as_string()}" for name, value in annotations.items())


def rule_of(values: Values, base: Rule, project: str = "") -> Rule | FieldProblem:
    """Return the rule that the form describes, or the first problem with a field.

    `base`: the rule that the form was opened with. Whatever the user hasn't changed is taken from
    it, including characters that can't be shown and everything for which the form has no field.
    `project`: the folder that the path in the folder field is relative to; "" if unknown.
    """
    before = values_of(base)
    changed = {name: text for name, text in values.items() if text != before[name]}
    made: dict[str, Any] = {}
    for name, text in changed.items():
        try:
            made |= _READERS[name](text)
        except ValueError as error:
            return FieldProblem(field=name, message=str(error))
    if "folder" in changed or "args_pattern" in changed:
        try:
            made |= _pattern(values["folder"], values["args_pattern"], base, project)
        except ValueError as error:
            return FieldProblem(field="folder", message=str(error))
    return replace(base, **made)


def _pattern(folder: str, pattern: str, base: Rule, project: str) -> dict[str, Any]:
    if not folder.strip():
        return {"args_pattern": pattern or None}
    if pattern:
        raise ValueError("use either this or an argument pattern")
    return {"args_pattern": pattern_for_folder(folder, project, base.args_pattern or "")}


def _priority(text: str) -> dict[str, Any]:
    if not re.fullmatch(r"\s*[0-9]{1,3}\s*", text):
        raise ValueError("enter a whole number from 0 to 999")
    return {"priority": int(text)}


def _tools(text: str) -> dict[str, Any]:
    found = split_names(text)
    return {"tools": found, "tool_list": len(found) > 1}


def _command_prefixes(text: str) -> dict[str, Any]:
    found = _prefixes(text)
    return {"command_prefixes": found, "prefix_list": len(found) > 1}


def _plain(name: str) -> Callable[[str], dict[str, Any]]:
    """Return a function that converts a field's text to the value `name` of a rule.

    The text is used as it is; an empty one becomes None.
    """
    return lambda text: {name: text or None}


_READERS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "decision": lambda text: {"decision": Decision(text)},
    "priority": _priority,
    "tools": _tools,
    "command_prefixes": _command_prefixes,
    "command_regex": _plain("command_regex"),
    "folder": lambda _: {},
    "args_pattern": lambda _: {},
    "mcp_name": lambda text: {"mcp_name": text.strip() or None},
    "subagent": lambda text: {"subagent": text.strip() or None},
    "annotations": lambda text: {"annotations": _annotations(text) or None},
    "modes": lambda text: {"modes": tuple(text.split())},
    "interactive": lambda text: {"interactive": _INTERACTIVE[text]},
    "allow_redirection": lambda text: {"allow_redirection": _REDIRECTION[text]},
    "deny_message": _plain("deny_message"),
}


def split_names(text: str) -> tuple[str, ...]:
    """Split text at commas into names; duplicates and empty names are left out."""
    return tuple(dict.fromkeys(filter(None, (part.strip() for part in text.split(",")))))


_STRING = re.compile(r'\s*"((?:[^"\\]|\\.)*)"\s*(,|$)')


def _prefixes(text: str) -> tuple[str, ...]:
    if not text.lstrip().startswith('"'):
        return (text,) if text.strip() else ()
    found, at = [], 0
    while at < len(text):
        part = _STRING.match(text, at)
        if part is None:
            raise ValueError('put several prefixes in quotes: "pytest", "ruff check"')
        found.append(re.sub(r"\\(.)", r"\1", part[1]))
        at = part.end()
    return tuple(found)


def _annotations(text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        table = tomlkit.parse(f"value = {{ {text} }}").unwrap()["value"]
    except TOMLKitError:
        raise ValueError("use the form readOnlyHint = true, destructiveHint = false") from None
    if not isinstance(table, dict):
        raise ValueError("use the form readOnlyHint = true")
    return table
