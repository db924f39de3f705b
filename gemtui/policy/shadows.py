"""Rules that can never apply, since another is always asked first; and rules of equal priority.

A rule is taken apart into the cases it is for: one tool, one pattern, one mode, headless or not.
It never applies when each case is covered by a rule that the engine asks earlier.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from gemtui.policy.known import AGENTS
from gemtui.policy.matching import ALIASES, MCP_PREFIX, pattern_sources, tool_names
from gemtui.policy.rules import Rule
from gemtui.policy.saying import Said, listed, warned
from gemtui.policy.schema import MODES


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """One of the things that a rule is for; `prefix` and `pattern`: None = no such condition."""

    tool: str
    prefix: str | None
    pattern: str | None
    modes: frozenset[str]
    interactive: frozenset[bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranked:
    """A rule, its place in load order, and its cases."""

    rule: Rule
    place: int
    cases: tuple[_Case, ...]

    @property
    def rank(self) -> tuple[float, int]:
        """The engine asks the lowest first."""
        return (-self.rule.effective, self.place)


def shadows(rules: Sequence[Rule]) -> Iterator[tuple[int, Said]]:
    """Findings about rules in load order, each with the place of its rule in that order."""
    ranked = [_Ranked(rule=rule, place=at, cases=_cases(rule)) for at, rule in enumerate(rules)]
    earlier = _ByTool()
    for one in sorted(ranked, key=lambda each: each.rank):
        if one.cases:
            by = _covering(one, earlier)
            if by:
                yield one.place, _never_applies(one.rule, by)
            elif tie := _tie(one, earlier):
                yield one.place, tie
            earlier.add(one)


class _ByTool:
    """Rules found by the tools that they name."""

    def __init__(self) -> None:
        self._rules: defaultdict[str, list[_Ranked]] = defaultdict(list)

    def add(self, ranked: _Ranked) -> None:
        """Take a rule in."""
        for tool in dict.fromkeys(case.tool for case in ranked.cases):
            self._rules[tool].append(ranked)

    def about(self, tool: str) -> Iterator[_Ranked]:
        """Every rule that is for this tool, or for more than it."""
        for name in _covering_names(tool):
            yield from self._rules.get(name, ())

    def touching(self, tool: str) -> Iterator[_Ranked]:
        """Every rule that is for a tool which this name is for as well."""
        if "*" not in tool:
            yield from self.about(tool)
            return
        for name, ranked in self._rules.items():
            if tool == "*" or name == "*" or name.startswith(tool[:-1]) or name == f"{MCP_PREFIX}*":
                yield from ranked


def _covering_names(tool: str) -> tuple[str, ...]:
    """The names whose rules are asked for every call that a rule on this one is asked for.

    An older name is not among them: only a rule on the present name can hide its tool.
    """
    names = [tool, "*"]
    if tool.startswith(MCP_PREFIX):
        parts = tool.removeprefix(MCP_PREFIX).split("_")
        names += [f"{MCP_PREFIX}{'_'.join(parts[:at])}_*" for at in range(1, len(parts))]
        names.append(f"{MCP_PREFIX}*")
    if tool in AGENTS:
        names.append("invoke_agent")
    return tuple(dict.fromkeys((*names, ALIASES.get(tool, tool))))


def _cases(rule: Rule) -> tuple[_Case, ...]:
    modes = frozenset(rule.modes or MODES)
    interactive = frozenset((True, False) if rule.interactive is None else (rule.interactive,))
    prefixes = (
        rule.command_prefixes if rule.prefix_list else tuple(filter(None, rule.command_prefixes))
    )
    conditions: list[tuple[str | None, str | None]] = [(prefix, None) for prefix in prefixes]
    conditions = conditions or [(None, source) for source in pattern_sources(rule)]
    return tuple(
        _Case(tool=tool, prefix=prefix, pattern=pattern, modes=modes, interactive=interactive)
        for tool, (prefix, pattern) in product(dict.fromkeys(tool_names(rule)), conditions)
    )


# --- one rule over another -----------------------------------------------------------------------


def _covering(one: _Ranked, earlier: _ByTool) -> tuple[Rule, ...]:
    """The rules that are asked first in every case; () = in some case none is."""
    by: dict[int, Rule] = {}
    for case in one.cases:
        left = set(product(case.modes, case.interactive))
        for other in earlier.about(case.tool):
            if not _wider(other.rule, one.rule):
                continue
            for its in other.cases:
                taken = left & set(product(its.modes, its.interactive))
                if taken and its.tool in _covering_names(case.tool) and _implies(case, its):
                    left -= taken
                    by[other.place] = other.rule
        if left:
            return ()
    return tuple(by.values())


def _wider(one: Rule, other: Rule) -> bool:
    """Whether one rule is for every agent, server and annotation that the other is for."""
    return (
        one.subagent in (None, other.subagent)
        and one.mcp_name in (None, "*", other.mcp_name)
        and not (one.annotations and dict(one.annotations) != dict(other.annotations or {}))
    )


def _implies(case: _Case, wider: _Case) -> bool:
    """Whether a call in this case meets the other's condition on arguments as well."""
    if wider.prefix is None and wider.pattern is None:
        return True
    if wider.prefix is not None and case.prefix is not None:
        return _longer(case.prefix, wider.prefix)
    return wider.pattern is not None and wider.pattern == case.pattern


def _longer(prefix: str, of: str) -> bool:
    """Whether every command that begins with `prefix` begins with `of`, as the engine matches."""
    return prefix == of or prefix.startswith((f"{of} ", f'{of}"'))


def _never_applies(rule: Rule, by: Sequence[Rule]) -> Said:
    names = listed(_named(each, rule) for each in by[:3])
    more = f" and {len(by) - 3} more" if len(by) > 3 else ""
    verb = "is" if len(by) == 1 else "are"
    equal = all(each.effective == rule.effective for each in by)
    why = "loaded first, at the same priority" if equal else "asked first"
    said = f"it never applies: {names.replace(' or ', ' and ')}{more} {verb} {why}"
    return warned("", said, "delete it, or give it a higher priority")


def _named(rule: Rule, beside: Rule) -> str:
    place = "" if rule.source == beside.source else f" of {rule.source}"
    return f"rule {rule.index}{place} (priority {rule.priority:g}, {rule.decision})"


# --- equal priorities ----------------------------------------------------------------------------


def _tie(one: _Ranked, earlier: _ByTool) -> Said | None:
    """A rule of equal priority that decides otherwise and is for some of the same calls."""
    for case in one.cases:
        for other in earlier.touching(case.tool):
            if (
                other.rule.effective == one.rule.effective
                and other.rule.decision is not one.rule.decision
                and any(_meet(case, its) for its in other.cases)
                and _same_callers(one.rule, other.rule)
            ):
                first = _named(other.rule, one.rule)
                said = f"{first} has the same priority and goes first: order decides"
                way_out = "give the one that should win a higher priority"
                return warned("priority", said, way_out)
    return None


def _same_callers(one: Rule, other: Rule) -> bool:
    return one.subagent is None or other.subagent is None or one.subagent == other.subagent


def _meet(one: _Case, other: _Case) -> bool:
    """Whether some call is surely in both; two different patterns may or may not meet."""
    if not (one.modes & other.modes and one.interactive & other.interactive):
        return False
    return _implies(one, other) or _implies(other, one)


def related(rules: Sequence[Rule]) -> Mapping[int, tuple[Said, ...]]:
    """The findings by the place of their rule in load order."""
    found: defaultdict[int, tuple[Said, ...]] = defaultdict(tuple)
    for place, said in shadows(rules):
        found[place] += (said,)
    return found
