"""Compile each rule into one rule per tool and pattern, and match them with calls.

The engine sorts the compiled rules by effective priority. Among rules with equal priority, the one
loaded first wins (assets/gemini-cli.md#priorities). Patterns are searched for in `arguments_text`:
JSON as JavaScript writes it, with sorted keys and no whitespace, and with a NUL before and after
every key-value pair of the outermost object (assets/gemini-cli.md#args-text).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any, Final

from gemtui.policy.match.js_regex import PatternError, in_halves
from gemtui.policy.match.patterns import (
    PREFIX_END,
    Pattern,
    compile_pattern,
    slow,
    unsafe,
)
from gemtui.policy.model.mcp_names import MCP_PREFIX, rule_name
from gemtui.policy.model.rules import Decision, Rule
from gemtui.text import or_list

MARK = "\0"
_SURROGATE = re.compile("[\ud800-\udfff]")


def arguments_text(args: Mapping[str, Any]) -> str:
    """Serialise a call's arguments; `args` must be as the model sent them."""
    pairs = [f"{MARK}{json_string(key)}:{_text(args[key])}{MARK}" for key in _sorted(args)]
    return "{" + ",".join(pairs) + "}"


def _text(value: Any) -> str:
    return json_string(value) if isinstance(value, str) else json_text(value)


class _Written(str):
    """A finished piece of the output, to distinguish it from a value not yet written."""

    __slots__ = ()


def json_text(value: Any) -> str:
    """Return a value as JSON as JavaScript writes it, with sorted keys and no NULs.

    Nesting may be arbitrarily deep.
    """
    pieces: list[str] = []
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, _Written):
            pieces.append(item)
        elif isinstance(item, Mapping):
            todo.append(_Written("}"))
            for at, key in reversed(list(enumerate(_sorted(item)))):
                todo += [item[key], _Written(f"{',' if at else ''}{json_string(key)}:")]
            pieces.append("{")
        elif isinstance(item, list | tuple):
            todo.append(_Written("]"))
            for at, inner in reversed(list(enumerate(item))):
                todo += [inner, _Written("," if at else "")]
            pieces.append("[")
        else:
            pieces.append(_plain(item))
    return "".join(pieces)


def _plain(value: Any) -> str:
    """Return the JSON of a value that is neither an object nor an array."""
    if isinstance(value, str):
        return json_string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return _number(value) if isinstance(value, int | float) else "null"


def json_string(text: str) -> str:
    """Return text as a JSON string, with quotes, backslashes and so on escaped.

    Control characters and lone surrogates are escaped as well, as in JavaScript.
    """
    encoded = encode_basestring(text)
    if encoded.isascii():
        return encoded
    return _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", encoded)


def _sorted(table: Mapping[str, Any]) -> list[str]:
    """Return the keys sorted by their UTF-16 code units, as JavaScript sorts strings."""
    keys = list(table)
    if all(map(str.isascii, keys)):
        return sorted(keys)
    return sorted(keys, key=lambda key: key.encode("utf-16-be", "surrogatepass"))


def _number(value: float) -> str:
    """Return a number as JavaScript prints it: as a double, so that 1.0 becomes `1`."""
    try:
        number = float(value)
    except OverflowError:
        return "null"
    if not math.isfinite(number):
        return "null"
    if number == int(number) and abs(number) < 1e21:
        return _whole(number)
    digits, _, exponent = repr(number).partition("e")
    if not exponent:
        return digits
    power = int(exponent)
    if -6 <= power < 0:
        return f"{number:.{len(digits.replace('.', '').lstrip('-')) - 1 - power}f}"
    digits = digits.removesuffix(".0")
    return f"{digits}e{'+' if power > 0 else '-'}{abs(power)}"


def _whole(number: float) -> str:
    """Return an integer below 1e21 in JavaScript's spelling, never with an exponent."""
    digits, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = digits.removesuffix(".0").partition(".")
    zeros = "0" * (int(exponent or 0) - len(fraction))
    return f"{'-' if number < 0 else ''}{whole}{fraction}{zeros}"


SHELL: Final = "run_shell_command"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledRule:
    """A rule reduced to one of its tool names and at most one of its patterns.

    `key`: the rule's effective priority, by which the engine sorts.
    """

    rule: Rule
    tool: str
    pattern: Pattern | None
    key: float

    @property
    def decision(self) -> Decision:
        """The rule's decision."""
        return self.rule.decision

    @property
    def may_hang(self) -> bool:
        """Whether the CLI may hang while it searches for one of the rule's patterns.

        Patterns made from command prefixes are never slow.
        """
        return not _has_prefix(self.rule) and any(
            source and slow(source) for source in pattern_sources(self.rule)
        )

    def matches(self, text: str) -> bool:
        """Return whether the pattern matches a call's serialised arguments.

        Without a pattern, the rule matches any arguments.
        """
        return self.pattern is None or self.pattern.matches(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The facts about a call that rules check before its arguments.

    `names`: every name that rules may use for the tool; the first is the one in the call. `server`:
    the tool's MCP server; None if it has none.
    """

    names: tuple[str, ...]
    server: str | None = None
    annotations: Mapping[str, Any] | None = None
    subagent: str | None = None


def compile_rules(rules: Iterable[Rule]) -> tuple[CompiledRule, ...]:
    """Return the compiled rules in the order in which the engine tries them.

    Rules that the CLI drops because of their patterns are left out.
    """
    every = [one for rule in rules for one in _each(rule)]
    return tuple(sorted(every, key=lambda one: -one.key))


def _each(rule: Rule) -> Iterator[CompiledRule]:
    key = rule.tier + rule.priority / 1000
    for source in pattern_sources(rule):
        if source and dropped(source):
            continue
        for tool in tool_names(rule):
            yield CompiledRule(
                rule=rule, tool=tool, pattern=compile_pattern(source) if source else None, key=key
            )


def dropped(source: str) -> str | None:
    """Return why the CLI drops a rule with this pattern; None if it keeps the rule."""
    try:
        compile_pattern(source)
    except PatternError as error:
        return str(error)
    return unsafe(source)


def kills(rule: Rule) -> str | None:
    """Return the name of an empty field in a rule that keeps the CLI from starting.

    Returns None if there is none.
    """
    kept = [source for source in pattern_sources(rule) if not source or not dropped(source)]
    if not kept or not tool_names(rule):
        return None
    if "" in rule.tools and not rule.mcp_name:
        return "toolName"
    if rule.mcp_name == "":
        return "mcpName"
    return "subagent" if rule.subagent == "" else None


def tool_names(rule: Rule) -> tuple[str, ...]:
    """Return the names of the tools a rule is for, including the MCP server's prefix.

    Returns () if the rule's list of tools is empty, because such a rule never applies.
    """
    tools = rule.tools if rule.tools or rule.tool_list else ("*",)
    if not rule.mcp_name:
        return tools
    return tuple(rule_name(rule.mcp_name, tool) for tool in tools)


def pattern_sources(rule: Rule) -> tuple[str | None, ...]:
    """Return the patterns of a rule; the engine treats each as a rule of its own.

    (None,) means that the rule has no condition, and () that it never applies. A commandPrefix
    overrides a commandRegex, and a commandRegex overrides an argsPattern.
    """
    if _has_prefix(rule):
        return tuple(_prefix_pattern(prefix) for prefix in rule.command_prefixes)
    if rule.command_regex:
        return (f'"command":"{rule.command_regex}',)
    return (rule.args_pattern or None,)


def _has_prefix(rule: Rule) -> bool:
    return rule.prefix_list or any(rule.command_prefixes)


_SPECIAL = re.compile(r'[-\[\]{}()*+?.,\\^$|#\s"]')


@lru_cache(maxsize=4096)
def _prefix_pattern(prefix: str) -> str:
    opened = f'"command":{json_string(prefix)[:-1]}'
    return _SPECIAL.sub(r"\\\g<0>", opened) + PREFIX_END


def mismatch(ready: CompiledRule, subject: Subject, mode: str, interactive: bool) -> str | None:
    """Return why a compiled rule doesn't apply to a tool's calls; None if it does.

    The reason is a clause for the user. Conditions on the arguments are not checked. `ready`: the
    compiled rule. `subject`: the tool and the caller. `mode`: spelled as in rules (`autoEdit`).
    """
    rule = ready.rule
    if rule.modes and mode not in rule.modes:
        return f"it applies only in {or_list(rule.modes)} mode"
    if rule.subagent is not None and rule.subagent != subject.subagent:
        return f"it is for calls of the subagent {rule.subagent}"
    if rule.mcp_name is not None and not _server_matches(rule.mcp_name, subject.server):
        return f"it is for the MCP server {rule.mcp_name}"
    if not is_about(ready, subject):
        return f"it is for {_tools_text(rule)}"
    if rule.annotations is not None and not _annotated(rule.annotations, subject.annotations):
        return "the tool does not have the rule's toolAnnotations"
    if rule.interactive is not None and rule.interactive != interactive:
        return "it applies only in " + (
            "interactive sessions" if rule.interactive else "headless runs"
        )
    return None


def is_about(ready: CompiledRule, subject: Subject) -> bool:
    """Return whether a compiled rule is for the tool of `subject`, even by wildcard."""
    return any(_names(ready, name, subject.server) for name in subject.names)


def _server_matches(wanted: str, server: str | None) -> bool:
    return server is not None if wanted == "*" else server == wanted


def _names(ready: CompiledRule, name: str, server: str | None) -> bool:
    wanted = ready.tool
    if wanted in ("*", name):
        return True
    if wanted == f"{MCP_PREFIX}*":
        return server is not None
    if wanted.startswith(MCP_PREFIX) and wanted.endswith("_*"):
        return wanted[len(MCP_PREFIX) : -2] == server and name.startswith(wanted[:-1])
    if "*" in wanted or not server or not wanted.startswith(MCP_PREFIX):
        return False
    return wanted == rule_name(server, name)


def _annotated(wanted: Mapping[str, Any], annotations: Mapping[str, Any] | None) -> bool:
    return annotations is not None and all(
        key in annotations and _same(value, annotations[key]) for key, value in wanted.items()
    )


def _same(wanted: Any, actual: Any) -> bool:
    """Compare values as JavaScript's `===` does: tables and lists are never equal."""
    if isinstance(wanted, bool) or isinstance(actual, bool):
        return wanted is actual
    if isinstance(wanted, int | float) and isinstance(actual, int | float):
        return float(wanted) == float(actual)
    return isinstance(wanted, str) and wanted == actual


def _tools_text(rule: Rule) -> str:
    tools = or_list(rule.tools) if rule.tools else "no tool"
    return f"{tools} of the MCP server {rule.mcp_name}" if rule.mcp_name else tools


class RuleSequence:
    """The rules that apply to calls to one tool, in the engine's order.

    Optimised for many calls: because few patterns match a call, a single search first finds out
    whether the arguments contain the fixed beginning of any pattern.
    """

    def __init__(self, rules: Sequence[CompiledRule]) -> None:
        self.rules = tuple(rules)
        prefixes = {one.pattern.prefix for one in rules if one.pattern} - {""}
        self._prefixes = re.compile("|".join(map(re.escape, sorted(prefixes))))
        self._others = tuple(one for one in rules if not (one.pattern and one.pattern.prefix))

    def first_match(self, args: Mapping[str, Any]) -> CompiledRule | None:
        """Return the first rule without a pattern or with a matching one; None if none.

        `args`: the call's arguments, as the model sent them. Raises PatternTimeout.
        """
        if not self.rules or self.rules[0].pattern is None:
            return self.rules[0] if self.rules else None
        text = arguments_text(args)
        halves = in_halves(text)
        for ready in self.rules if self._prefixes.search(halves) else self._others:
            pattern = ready.pattern
            if pattern is None or (pattern.prefix in halves and pattern.matches(text)):
                return ready
        return None
