"""Find violations of the CLI's schema for policy files.

A single invalid field makes the CLI drop the whole file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gemtui.policy.model.rules import Decision

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
