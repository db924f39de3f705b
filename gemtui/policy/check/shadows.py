"""Find rules that never apply because others decide first, and conflicting ties.

A rule is split into cases, each of which is one tool, one condition, one approval mode, and either
headless or interactive. A rule never applies if each of its cases is covered by a rule that the
engine tries earlier (assets/gemini-cli.md#priorities).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

from gemtui.policy.check.finding_builder import FindingDraft, warned
from gemtui.policy.file.schema import MODES
from gemtui.policy.match.matching import MCP_PREFIX, pattern_sources, tool_names
from gemtui.policy.model.rules import Decision, Rule
from gemtui.policy.model.tool_catalog import AGENTS, ALIASES
from gemtui.text import listed

_Situations = frozenset[tuple[str, bool]]
_Condition = tuple[str | None, str | None]
_Key = tuple[bool, bool, str, _Condition]


@dataclass(frozen=True)
class _Case:
    """One tool and one condition of a rule, in all situations that the rule is for.

    `condition`: a command prefix and a pattern, at most one of which is given; if both are None,
    any arguments match. `situations`: pairs of an approval mode and whether the run is interactive.
    """

    tool: str
    condition: _Condition
    situations: _Situations

    @cached_property
    def around(self) -> tuple[tuple[str, _Condition], ...]:
        """The tool and condition of every case that would cover this one."""
        return tuple(product(_covering_names(self.tool), _covering_conditions(self.condition)))

    @cached_property
    def as_earlier(self) -> tuple[_Key, ...]:
        """The keys under which `_Equal` stores this case."""
        return tuple(_keys(self, earlier=True))

    @cached_property
    def as_later(self) -> tuple[_Key, ...]:
        """The keys under which `_Equal` looks up earlier cases that overlap this one."""
        return tuple(_keys(self, earlier=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranked:
    """A rule with its cases.

    `place`: the rule's index in load order. `rank`: the rule's index in the order in which the
    engine tries rules.
    """

    rule: Rule
    place: int
    rank: int
    cases: tuple[_Case, ...]


def related(rules: Sequence[Rule]) -> Mapping[int, tuple[FindingDraft, ...]]:
    """Find rules that never apply, and rules that conflict at equal priority.

    `rules`: in load order. Returns a mapping from each rule's index in `rules` to its findings.
    """
    found: dict[int, tuple[FindingDraft, ...]] = {}
    earlier = _Earlier()
    strength = [rule.effective for rule in rules]
    order = sorted(range(len(rules)), key=lambda place: (-strength[place], place))
    of_equal: dict[float, _Equal] = {
        one: _Equal() for one, number in Counter(strength).items() if number > 1
    }
    for rank, place in enumerate(order):
        rule, equal = rules[place], of_equal.get(strength[place])
        one = _Ranked(rule=rule, place=place, rank=rank, cases=_cases(rule))
        if by := _covering(one, earlier):
            found[place] = (_never_applies(rule, by),)
        else:
            if equal is not None and (tie := _tie(one, equal)):
                found[place] = (tie,)
            earlier.add(one)
        if equal is not None:
            equal.add(one)
    return found


def kept_visible(rules: Sequence[Rule]) -> frozenset[int]:
    """Return the indexes of deny rules whose tools a stronger rule keeps visible.

    The stronger rule has a condition and does not deny, so the model still sees the tool. `rules`:
    in load order; only deny rules with a message are checked.
    """
    order = sorted(enumerate(rules), key=lambda pair: (-pair[1].effective, pair[0]))
    found: set[int] = set()
    shown: defaultdict[str, set[tuple[str, bool]]] = defaultdict(set)
    anything: set[tuple[str, bool]] = set()
    for place, rule in order:
        tools, situations = tool_names(rule), _situations(rule.modes, rule.interactive)
        if rule.decision is not Decision.DENY and rule.conditional and rule.subagent is None:
            anything |= situations
            for tool in tools:
                shown[tool] |= situations
        elif rule.deny_message:
            seen = anything if "*" in tools else shown["*"].union(*map(shown.__getitem__, tools))
            if not situations.isdisjoint(seen):
                found.add(place)
    return frozenset(found)


class _Earlier:
    """The rules that the engine tries earlier, indexed by tool and condition."""

    def __init__(self) -> None:
        self._cases: defaultdict[tuple[str, _Condition], list[tuple[_Ranked, _Case]]]
        self._cases = defaultdict(list)

    def add(self, ranked: _Ranked) -> None:
        """Add a rule; one that never applies may be omitted because others cover it."""
        for case in ranked.cases:
            self._cases[case.tool, case.condition].append((ranked, case))

    def around(self, case: _Case) -> list[tuple[_Ranked, _Case]]:
        """Return the cases that may cover this one, ordered by rule.

        A case covers this one if it also has the same situations.
        """
        found = [one for key in case.around for one in self._cases.get(key, ())]
        return sorted(found, key=lambda one: one[0].rank)


_Callers = tuple[Decision, str | None, _Situations]
"""A rule's decision, its subagent (None = any), and its situations."""


class _Equal:
    """Rules of equal priority, indexed to find overlapping cases efficiently."""

    def __init__(self) -> None:
        self._rules: defaultdict[_Key, dict[_Callers, _Ranked]] = defaultdict(dict)

    def add(self, ranked: _Ranked) -> None:
        """Add a rule that rules tried later may overlap."""
        rule = ranked.rule
        for case in ranked.cases:
            for key in case.as_earlier:
                self._rules[key].setdefault((rule.decision, rule.subagent, case.situations), ranked)

    def met(self, rule: Rule, case: _Case) -> Iterator[_Ranked]:
        """Yield the earlier rules with a different decision for some calls in this case."""
        for key in case.as_later:
            for (decision, subagent, situations), ranked in self._rules.get(key, _NONE).items():
                same = None in (rule.subagent, subagent) or rule.subagent == subagent
                if same and decision is not rule.decision and situations & case.situations:
                    yield ranked


_NONE: Mapping[_Callers, _Ranked] = {}


_LONGEST = 2048
"""The number of characters of a prefix to compare; the CLI drops longer patterns."""


def _covering_conditions(condition: _Condition) -> Iterator[_Condition]:
    prefix, pattern = condition
    yield None, None
    if pattern is not None:
        yield None, pattern
    if prefix is not None:
        ends = (at for at, char in enumerate(prefix[:_LONGEST]) if char in ' "')
        for end in (*ends, len(prefix)):
            yield prefix[:end], None


_MOST_PARTS = 50
"""The number of underscores in a tool's name that may end its MCP server's name."""


def _covering_names(tool: str) -> tuple[str, ...]:
    """Return the tool names whose rules cover all calls that `tool` covers.

    Former names are not included, because only a rule for the current name can hide a tool.
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
    prefixes = rule.command_prefixes
    if not rule.prefix_list:
        prefixes = tuple(filter(None, prefixes))
    patterns = () if prefixes else pattern_sources(rule)
    return _made(tool_names(rule), prefixes, patterns, rule.modes, rule.interactive)


@lru_cache(maxsize=16_384)
def _made(
    tools: Sequence[str],
    prefixes: Sequence[str],
    patterns: Sequence[str | None],
    modes: Sequence[str],
    interactive: bool | None,
) -> tuple[_Case, ...]:
    situations = _situations(modes, interactive)
    conditions = [*((prefix, None) for prefix in prefixes), *((None, each) for each in patterns)]
    return tuple(
        _Case(tool, condition, situations)
        for tool, condition in product(dict.fromkeys(tools), conditions)
    )


def _situations(modes: Sequence[str], interactive: bool | None) -> _Situations:
    asked = (True, False) if interactive is None else (interactive,)
    return frozenset(product(modes or MODES, asked))


# --- precedence ----------------------------------------------------------------------------------


def _covering(one: _Ranked, earlier: _Earlier) -> tuple[Rule, ...]:
    """Return the earlier rules that together cover all cases of this one, or ()."""
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
    """Return whether `one` covers all subagents, servers and annotations of `other`."""
    return (
        one.subagent in (None, other.subagent)
        and one.mcp_name in (None, "*", other.mcp_name)
        and not (one.annotations and dict(one.annotations) != dict(other.annotations or {}))
    )


def _never_applies(rule: Rule, by: Sequence[Rule]) -> FindingDraft:
    names = listed(_named(each, rule) for each in by[:3])
    more = f" and {len(by) - 3} more" if len(by) > 3 else ""
    verb = "is" if len(by) == 1 else "are"
    equal = all(each.effective == rule.effective for each in by)
    why = "loaded first and has the same priority" if equal else "checked first"
    said = f"this rule never applies: {names.replace(' or ', ' and ')}{more} {verb} {why}"
    return warned("", said, "delete it, or give it a higher priority")


def _named(rule: Rule, beside: Rule) -> str:
    place = "" if rule.source == beside.source else f" of {rule.source}"
    return f"rule {rule.index}{place} (priority {rule.priority:g}, {rule.decision})"


# --- equal priorities ----------------------------------------------------------------------------


def _tie(one: _Ranked, equal: _Equal) -> FindingDraft | None:
    """Report an earlier rule of equal priority that decides some calls differently."""
    met = (other for case in one.cases for other in equal.met(one.rule, case))
    other = min(met, key=lambda other: other.rank, default=None)
    if other is None:
        return None
    first = _named(other.rule, one.rule)
    said = f"{first} has the same priority and comes first, so it wins"
    return warned("priority", said, "give the rule that should win a higher priority")


def _keys(case: _Case, *, earlier: bool) -> Iterator[_Key]:
    """Yield the keys under which `_Equal` stores (`earlier`) or looks up a case.

    An earlier and a later case share a key if one case's tool covers the other's tool, and one
    case's condition covers the other's condition. Whether two different patterns overlap is
    unknown.
    """
    for tool_wider, condition_wider in product((False, True), repeat=2):
        names = _covering_names(case.tool) if tool_wider is earlier else (case.tool,)
        conditions: Iterable[_Condition] = (case.condition,)
        if condition_wider is earlier:
            conditions = _covering_conditions(case.condition)
        for name, condition in product(names, conditions):
            yield tool_wider, condition_wider, name, condition
