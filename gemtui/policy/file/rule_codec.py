"""Convert a `[[rule]]` table's fields to a rule, and a rule to TOML; check the fields.

A rule with mistakes is still a rule that can be shown and corrected. `schema_problems` finds what
violates the CLI's schema: a single invalid field makes the CLI drop the whole file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Array

from gemtui.errors import PolicyError
from gemtui.policy.model.rules import Decision, Rule, SafetyChecker

KEYS = (
    "toolName",
    "mcpName",
    "subagent",
    "commandPrefix",
    "commandRegex",
    "argsPattern",
    "toolAnnotations",
    "decision",
    "priority",
    "modes",
    "interactive",
    "allowRedirection",
    "denyMessage",
)
"""The keys the CLI recognises in a rule, in the order in which gemtui writes them."""

OLD_KEYS = {"allow_redirection": "allowRedirection", "deny_message": "denyMessage"}
"""Maps old spellings of keys to the new ones.

The CLI still reads an old spelling if the new one is missing.
"""

_TEXTS = {
    "mcpName": "mcp_name",
    "subagent": "subagent",
    "commandRegex": "command_regex",
    "argsPattern": "args_pattern",
    "denyMessage": "deny_message",
}
_SWITCHES = {"interactive": "interactive", "allowRedirection": "allow_redirection"}
_LISTS = {"toolName": ("tools", "tool_list"), "commandPrefix": ("command_prefixes", "prefix_list")}


def readable(table: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """Return the arguments for `Rule` in a `[[rule]]` table, and its unreadable keys."""
    table = {OLD_KEYS.get(key, key): value for key, value in table.items() if key in OLD_KEYS} | {
        key: value for key, value in table.items() if key not in OLD_KEYS
    }
    fields: dict[str, Any] = {}
    unread: set[str] = set()
    for key, value in table.items():
        if key in KEYS:
            arguments = _argument(key, value)
            fields.update(arguments)
            unread |= set() if arguments else {key}
    fields["more"] = {key: value for key, value in table.items() if key not in KEYS}
    return fields, unread


def read_rule(table: Mapping[str, Any]) -> Rule | None:
    """Return the readable parts of a `[[rule]]` table as a rule.

    The rule has no source or index yet. Returns None if the decision or priority can't be read.
    """
    arguments, _unread = readable(table)
    return Rule(**arguments) if {"decision", "priority"} <= arguments.keys() else None


def read_checker(table: Mapping[str, Any]) -> SafetyChecker:
    """Return the checker that a valid `[[safety_checker]]` table defines."""
    arguments, _unread = readable({"priority": 0, **table, "decision": Decision.DENY.value})
    checker = table["checker"]
    context = checker.get("required_context")
    return SafetyChecker(
        rule=Rule(**arguments),
        name=checker["name"],
        external=checker["type"] == "external",
        config=checker.get("config", {}),
        context=None if context is None else tuple(context),
    )


def _argument(key: str, value: Any) -> dict[str, Any]:
    """Return a field as arguments for `Rule`; {} if its value has an invalid type."""
    match key, value:
        case (("toolName" | "commandPrefix"), str()):
            return {_LISTS[key][0]: (value,), _LISTS[key][1]: False}
        case (("toolName" | "commandPrefix"), list()) if _all_text(value):
            return {_LISTS[key][0]: tuple(value), _LISTS[key][1]: True}
        case "modes", list() if _all_text(value):
            return {"modes": tuple(value)}
        case "toolAnnotations", Mapping():
            return {"annotations": value}
        case "decision", str() if value in tuple(Decision):
            return {"decision": Decision(value)}
        case "priority", int() | float() if not isinstance(value, bool) and abs(value) < 2**53:
            return {"priority": int(value) if value == int(value) else value}
        case _, str() if key in _TEXTS:
            return {_TEXTS[key]: value}
        case _, bool() if key in _SWITCHES:
            return {_SWITCHES[key]: value}
    return {}


def _all_text(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def explicit_fields(rule: Rule) -> dict[str, Any]:
    """Return a rule's fields that differ from the defaults, by their names in files.

    The result always includes toolName, because the CLI drops a file in which it is missing.
    """
    values: dict[str, Any] = {
        "toolName": _one_or_list(rule.tools, rule.tool_list, "*"),
        "mcpName": rule.mcp_name,
        "subagent": rule.subagent,
        "commandPrefix": _one_or_list(rule.command_prefixes, rule.prefix_list, None),
        "commandRegex": rule.command_regex,
        "argsPattern": rule.args_pattern,
        "toolAnnotations": None if rule.annotations is None else dict(rule.annotations),
        "decision": rule.decision.value,
        "priority": int(rule.priority) if rule.priority == int(rule.priority) else rule.priority,
        "modes": list(rule.modes) or None,
        "interactive": rule.interactive,
        "allowRedirection": rule.allow_redirection,
        "denyMessage": rule.deny_message,
        **rule.more,
    }
    return {key: value for key, value in values.items() if value is not None}


def _one_or_list(values: tuple[str, ...], is_list: bool, without: str | None) -> Any:
    if is_list or len(values) > 1:
        return list(values)
    return values[0] if values else without


# --- values as text ------------------------------------------------------------------------------

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_HIDDEN = re.compile('[\x00-\x1f"\\\\\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]')


def value_to_toml(value: Any) -> str:
    """Return a value as TOML on one line, with all invisible characters escaped.

    Raises PolicyError for values that TOML can't hold, such as lone surrogates and lists of mixed
    types.
    """
    match value:
        case bool():
            return str(value).lower()
        case str():
            return _quoted(value)
        case int() | float():
            return repr(value)
        case Mapping():
            inner = ", ".join(
                f"{key_text(key)} = {value_to_toml(inner)}" for key, inner in value.items()
            )
            return f"{{ {inner} }}" if inner else "{}"
        case list() | tuple():
            if len({type(item) for item in value}) > 1:
                raise PolicyError(
                    "a list of mixed types can't be written, because Gemini CLI ignores a file "
                    "that contains one"
                )
            return f"[{', '.join(map(value_to_toml, value))}]"
    raise PolicyError(f"a value of type {type(value).__name__} can't be written to a policy file")


def key_text(key: str) -> str:
    """Return a key as it is written in TOML, quoted if necessary."""
    return key if re.fullmatch("[A-Za-z0-9_-]+", key) else _quoted(key)


def _quoted(text: str) -> str:
    if re.search("[\ud800-\udfff]", text):
        raise PolicyError(
            f"{text!r} contains an incomplete character (a lone surrogate), so it can't be saved"
        )
    if not _HIDDEN.search(text):
        return f'"{text}"'
    if "'" not in text and not _HIDDEN.search(text.replace('"', "").replace("\\", "")):
        return f"'{text}'"  # keeps patterns readable
    return f'"{_HIDDEN.sub(_escaped, text)}"'


def _escaped(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04x}"


def rules_to_toml(rules: Iterable[Rule]) -> str:
    """Return the rules as the contents of a policy file.

    The CLI reads them back unchanged. Raises PolicyError for values that a file can't hold: lone
    surrogates and fractional priorities.
    """
    return "\n".join(rule_text(rule) for rule in rules)


def rule_text(rule: Rule) -> str:
    """Return one rule as a `[[rule]]` table with a final newline. Raises PolicyError."""
    if rule.priority != int(rule.priority):
        raise PolicyError(
            f"the priority {rule.priority:g} can't be written, because Gemini CLI ignores a file "
            "that contains it"
        )
    lines = (
        f"{key_text(key)} = {value_to_toml(value)}\n"
        for key, value in explicit_fields(rule).items()
    )
    return f"[[rule]]\n{''.join(lines)}"


def list_text(old: str, values: Sequence[str]) -> str:
    """Return a list's TOML text with its items replaced by `values`.

    `old`: the list's current text. Items that stay keep their lines and comments.
    """
    try:
        array = tomlkit.parse(f"list = {old}\n")["list"]
        assert isinstance(array, Array)
        for item in [item for item in array if item not in values]:
            array.remove(item)
        for item in [item for item in values if item not in array]:
            array.append(item)
    except (TOMLKitError, ValueError):
        return value_to_toml(values)
    return array.as_string() if list(array) == list(values) else value_to_toml(values)


MODES = ("default", "autoEdit", "yolo", "plan")
CHECKERS = ("allowed-path", "conseca")


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaProblem:
    """A field that violates the schema.

    `rule`: the rule's 1-based number; 0 means no particular rule.
    """

    rule: int
    field: str
    why: str


def schema_problems(document: Mapping[str, Any]) -> tuple[SchemaProblem, ...]:
    """Return all violations of the schema; () if the CLI would load the file.

    `document`: the file's contents, parsed. Unknown keys are no violation.
    """
    return (
        *_tables(document, "rule", _RULE, ("toolName", "decision", "priority")),
        *_tables(document, "safety_checker", _CHECKER, ("toolName", "checker")),
    )


def _tables(
    document: Mapping[str, Any],
    name: str,
    fields: Mapping[str, tuple[Callable[[Any], bool], str]],
    required: tuple[str, ...],
) -> Iterator[SchemaProblem]:
    tables = document.get(name, [])
    if not isinstance(tables, list):
        yield SchemaProblem(rule=0, field=name, why=f"{name} must be written as [[{name}]]")
        return
    for index, table in enumerate(tables, start=1):
        number = index if name == "rule" else 0
        if not isinstance(table, Mapping):
            yield SchemaProblem(rule=number, field="", why=f"a {name} must be a table")
            continue
        for field in required:
            if field not in table:
                yield SchemaProblem(rule=number, field=field, why=f"{field} is missing")
        for field, (fits, wanted) in fields.items():
            if field in table and not fits(table[field]):
                yield SchemaProblem(rule=number, field=field, why=f"{field} must be {wanted}")


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _text_or_texts(value: Any) -> bool:
    return _text(value) or _texts(value)


def _switch(value: Any) -> bool:
    return isinstance(value, bool)


def _table(value: Any) -> bool:
    return isinstance(value, Mapping)


def _decision(value: Any) -> bool:
    return _text(value) and value in tuple(Decision)


def _whole_number(value: Any) -> bool:
    """Return whether JavaScript considers a value an integer.

    1.0 is an integer. From 2**53 on, the CLI's TOML reader accepts no integers.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value.is_integer() if isinstance(value, float) else abs(value) < 2**53


def _priority(value: Any) -> bool:
    return _whole_number(value) and 0 <= value <= 999


def _modes(value: Any) -> bool:
    return _texts(value) and all(mode in MODES for mode in value)


def _checker(value: Any) -> bool:
    if not _table(value):
        return False
    inside = value.get("type") == "in-process" and value.get("name") in CHECKERS
    outside = value.get("type") == "external" and _text(value.get("name"))
    context, config = value.get("required_context", []), value.get("config", {})
    return (inside or outside) and _texts(context) and _table(config)


_CONDITIONS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "toolName": (_text_or_texts, "a name or a list of names"),
    "mcpName": (_text, "a name"),
    "argsPattern": (_text, "a pattern"),
    "commandPrefix": (_text_or_texts, "a string or a list of strings"),
    "commandRegex": (_text, "a pattern"),
    "modes": (_modes, f"a list of {', '.join(MODES)}"),
    "toolAnnotations": (_table, "a table"),
}
_RULE = {
    **_CONDITIONS,
    "subagent": (_text, "a name"),
    "decision": (_decision, f"one of {', '.join(Decision)}"),
    "priority": (_priority, "a whole number from 0 to 999"),
    "interactive": (_switch, "true or false"),
    "allowRedirection": (_switch, "true or false"),
    "allow_redirection": (_switch, "true or false"),
    "denyMessage": (_text, "a string"),
    "deny_message": (_text, "a string"),
}
_CHECKER = {
    **_CONDITIONS,
    "priority": (_whole_number, "a whole number"),
    "checker": (_checker, "an in-process or external checker"),
}
