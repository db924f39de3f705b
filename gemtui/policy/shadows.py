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
    situations: frozenset[tuple[str, bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranked:
    """A rule, its place in load order, the order in which it is asked, and its cases."""

    rule: Rule
    place: int
    rank: int
    cases: tuple[_Case, ...]


def shadows(rules: Sequence[Rule]) -> Iterator[tuple[int, Said]]:
    """Findings about rules in load order, each with the place of its rule in that order."""
    earlier = _Earlier()
    order = sorted(range(len(rules)), key=lambda place: (-rules[place].effective, place))
    for rank, place in enumerate(order):
        rule = rules[place]
        one = _Ranked(rule=rule, place=place, rank=rank, cases=_cases(rule))
        if one.cases:
            if by := _covering(one, earlier):
                yield place, _never_applies(rule, by)
            elif tie := _tie(one, earlier):
                yield place, tie
            earlier.add(one)


class _Earlier:
    """Rules that are asked earlier, found by what they are for."""

    def __init__(self) -> None:
        self._cases: defaultdict[tuple[str, str | None, str | None], list[tuple[_Ranked, _Case]]]
        self._cases = defaultdict(list)
        self._equal: defaultdict[float, list[_Ranked]] = defaultdict(list)

    def add(self, ranked: _Ranked) -> None:
        """Take a rule in."""
        self._equal[ranked.rule.effective].append(ranked)
        for case in ranked.cases:
            self._cases[case.tool, case.prefix, case.pattern].append((ranked, case))

    def around(self, case: _Case) -> list[tuple[_Ranked, _Case]]:
        """Every case of a rule that every call in this case is in, but for its situations."""
        found = [
            one
            for name in _covering_names(case.tool)
            for prefix, pattern in _covering_conditions(case)
            for one in self._cases.get((name, prefix, pattern), ())
        ]
        return sorted(found, key=lambda one: one[0].rank)

    def equal(self, rule: Rule) -> Sequence[_Ranked]:
        """Every rule of the same priority."""
        return self._equal.get(rule.effective, ())


def _covering_conditions(case: _Case) -> Iterator[tuple[str | None, str | None]]:
    yield None, None
    if case.pattern is not None:
        yield None, case.pattern
    if case.prefix is not None:
        ends = (at for at, char in enumerate(case.prefix) if char in ' "')
        for end in (*ends, len(case.prefix)):
            yield case.prefix[:end], None


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
    interactive = (True, False) if rule.interactive is None else (rule.interactive,)
    situations = frozenset(product(rule.modes or MODES, interactive))
    prefixes = rule.command_prefixes
    if not rule.prefix_list:
        prefixes = tuple(filter(None, prefixes))
    conditions: list[tuple[str | None, str | None]] = [(prefix, None) for prefix in prefixes]
    if not prefixes:
        conditions = [(None, source) for source in pattern_sources(rule)]
    return tuple(
        _Case(tool=tool, prefix=prefix, pattern=pattern, situations=situations)
        for tool, (prefix, pattern) in product(dict.fromkeys(tool_names(rule)), conditions)
    )


# --- one rule over another -----------------------------------------------------------------------


def _covering(one: _Ranked, earlier: _Earlier) -> tuple[Rule, ...]:
    """The rules that are asked first in every case; () = in some case none is."""
    by: dict[int, Rule] = {}
    for case in one.cases:
        left = case.situations
        for other, its in earlier.around(case):
            if left & its.situations and _wider(other.rule, one.rule):
                left -= its.situations
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


def _tie(one: _Ranked, earlier: _Earlier) -> Said | None:
    """A rule of equal priority that decides otherwise and is for some of the same calls."""
    for other in earlier.equal(one.rule):
        if other.rule.decision is one.rule.decision or not _same_callers(one.rule, other.rule):
            continue
        if any(_meet(case, its) for case in one.cases for its in other.cases):
            first = _named(other.rule, one.rule)
            said = f"{first} has the same priority and goes first: order decides"
            return warned("priority", said, "give the one that should win a higher priority")
    return None


def _same_callers(one: Rule, other: Rule) -> bool:
    return one.subagent is None or other.subagent is None or one.subagent == other.subagent


def _meet(one: _Case, other: _Case) -> bool:
    """Whether some call is surely in both; two different patterns may or may not meet."""
    return bool(one.situations & other.situations) and (_inside(one, other) or _inside(other, one))


def _inside(one: _Case, other: _Case) -> bool:
    """Whether every call of one that the tool of the other may be is in both."""
    conditions = (other.prefix, other.pattern) in _covering_conditions(one)
    tools = one.tool in _covering_names(other.tool) or other.tool in _covering_names(one.tool)
    return conditions and tools


def related(rules: Sequence[Rule]) -> Mapping[int, tuple[Said, ...]]:
    """The findings by the place of their rule in load order."""
    found: defaultdict[int, tuple[Said, ...]] = defaultdict(tuple)
    for place, said in shadows(rules):
        found[place] += (said,)
    return found
