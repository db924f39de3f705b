"""Rules that can never apply, since another is always asked first; and rules of equal priority.

A rule is taken apart into the cases it is for: one tool, one pattern, one mode, headless or not.
It never applies when each case is covered by a rule that the engine asks earlier.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from gemtui.policy.known import AGENTS, ALIASES
from gemtui.policy.matching import MCP_PREFIX, pattern_sources, tool_names
from gemtui.policy.rules import Decision, Rule
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
            else:
                if tie := _tie(one, earlier):
                    yield place, tie
                earlier.add(one)
            earlier.add_equal(one)


_Callers = tuple[Decision, str | None, frozenset[tuple[str, bool]]]
"""What a rule decides, for which subagent, in which situations."""
_Key = tuple[bool, bool, str, str | None, str | None]


class _Earlier:
    """Rules that are asked earlier, found by what they are for."""

    def __init__(self) -> None:
        self._cases: defaultdict[tuple[str, str | None, str | None], list[tuple[_Ranked, _Case]]]
        self._cases = defaultdict(list)
        self._equal: dict[tuple[float, _Key], dict[_Callers, _Ranked]] = {}

    def add(self, ranked: _Ranked) -> None:
        """Take in a rule that may cover others; what covers it covers them as well."""
        for case in ranked.cases:
            self._cases[case.tool, case.prefix, case.pattern].append((ranked, case))

    def add_equal(self, ranked: _Ranked) -> None:
        """Take in a rule that others of its priority may meet."""
        rule = ranked.rule
        for case in ranked.cases:
            callers = rule.decision, rule.subagent, case.situations
            for key in _keys(case, earlier=True):
                found = self._equal.setdefault((rule.effective, key), {})
                found.setdefault(callers, ranked)

    def around(self, case: _Case) -> list[tuple[_Ranked, _Case]]:
        """Every case of a rule that every call in this case is in, but for its situations."""
        found = [
            one
            for name in _covering_names(case.tool)
            for prefix, pattern in _covering_conditions(case)
            for one in self._cases.get((name, prefix, pattern), ())
        ]
        return sorted(found, key=lambda one: one[0].rank)

    def met(self, rule: Rule, case: _Case) -> Iterator[_Ranked]:
        """Rules of the same priority that decide otherwise on some calls in this case."""
        for key in _keys(case, earlier=False):
            for callers, ranked in self._equal.get((rule.effective, key), {}).items():
                decision, subagent, situations = callers
                same = None in (rule.subagent, subagent) or rule.subagent == subagent
                if same and decision is not rule.decision and situations & case.situations:
                    yield ranked


_LONGEST = 2048
"""Characters of a prefix that are looked at; the CLI drops a rule with a longer pattern."""


def _covering_conditions(case: _Case) -> Iterator[tuple[str | None, str | None]]:
    yield None, None
    if case.pattern is not None:
        yield None, case.pattern
    if case.prefix is not None:
        ends = (at for at, char in enumerate(case.prefix[:_LONGEST]) if char in ' "')
        for end in (*ends, len(case.prefix)):
            yield case.prefix[:end], None


_MOST_PARTS = 50
"""Underscores of a tool's name of which each may end the name of its MCP server."""


def _covering_names(tool: str) -> tuple[str, ...]:
    """The names whose rules are asked for every call that a rule on this one is asked for.

    An older name is not among them: only a rule on the present name can hide its tool.
    """
    names = [tool, "*"]
    if tool.startswith(MCP_PREFIX):
        parts = tool.removeprefix(MCP_PREFIX).split("_", _MOST_PARTS)
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
            if not left:
                break
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
    met = (other for case in one.cases for other in earlier.met(one.rule, case))
    other = min(met, key=lambda other: other.rank, default=None)
    if other is None:
        return None
    first = _named(other.rule, one.rule)
    said = f"{first} has the same priority and goes first: order decides"
    return warned("priority", said, "give the one that should win a higher priority")


def _keys(case: _Case, *, earlier: bool) -> Iterator[_Key]:
    """Keys of which a case and an `earlier` one share one where some call is surely in both.

    The tool of one covers that of the other, and so does a condition, whichever way round; two
    different patterns may or may not meet.
    """
    for tool_wider, condition_wider in product((False, True), repeat=2):
        names = _covering_names(case.tool) if tool_wider is earlier else (case.tool,)
        own = ((case.prefix, case.pattern),)
        conditions = _covering_conditions(case) if condition_wider is earlier else own
        for name, (prefix, pattern) in product(names, conditions):
            yield tool_wider, condition_wider, name, prefix, pattern


def related(rules: Sequence[Rule]) -> Mapping[int, tuple[Said, ...]]:
    """The findings by the place of their rule in load order."""
    found: defaultdict[int, tuple[Said, ...]] = defaultdict(tuple)
    for place, said in shadows(rules):
        found[place] += (said,)
    return found
