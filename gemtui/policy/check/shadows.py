"""Find rules that never apply because earlier ones decide, and conflicting ties.

For this purpose, a rule is split into cases: pairs of one tool and one condition. A case never
applies if the engine tries a different rule earlier (assets/gemini-cli.md#priorities) that is for
the same tool, has the same condition or none, and applies in at least the same situations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from gemtui.policy.check.finding_builder import FindingDraft, warned
from gemtui.policy.file.schema import MODES
from gemtui.policy.match.matching import MCP_PREFIX, pattern_sources, tool_names
from gemtui.policy.model.rules import Decision, Rule
from gemtui.policy.model.tool_catalog import AGENTS, ALIASES
from gemtui.text import or_list

_Condition = tuple[str | None, str | None]
"""A command prefix and a pattern; at most one of them is given."""
_NONE: _Condition = (None, None)
"""The condition of a rule that applies to any arguments."""
_Situations = frozenset[tuple[str, bool]]
"""The situations in which a rule applies: pairs of a mode and "is interactive"."""


def related(rules: Sequence[Rule]) -> Mapping[int, tuple[FindingDraft, ...]]:
    """Find rules that never apply, and rules that conflict at equal priority.

    `rules`: in load order. Returns a mapping from each rule's index in `rules` to its findings.
    """
    found: dict[int, tuple[FindingDraft, ...]] = {}
    earlier = _Earlier()
    for place in sorted(range(len(rules)), key=lambda place: (-rules[place].effective, place)):
        rule = rules[place]
        if by := earlier.covering(rule):
            found[place] = (_never_applies(rule, by),)
            continue
        if tie := earlier.tied(rule):
            found[place] = (_tie(rule, tie),)
        earlier.add(rule)
    return found


def kept_visible(rules: Sequence[Rule]) -> frozenset[int]:
    """Return the indexes of deny rules whose tools a stronger rule keeps visible.

    The model still sees a denied tool if a stronger rule for it has a condition and doesn't deny.
    Only deny rules with a message are returned, because the model gets the message only if it sees
    the tool and calls it. `rules`: in load order.
    """
    order = sorted(enumerate(rules), key=lambda pair: (-pair[1].effective, pair[0]))
    found: set[int] = set()
    shown: defaultdict[str, set[tuple[str, bool]]] = defaultdict(set)
    anything: set[tuple[str, bool]] = set()
    for place, rule in order:
        tools, situations = tool_names(rule), _situations(rule)
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
    """The rules that the engine tries before the one in question.

    Rules that never apply are left out.
    """

    def __init__(self) -> None:
        self._by_case: defaultdict[tuple[str, _Condition], list[Rule]] = defaultdict(list)
        self._by_tool: defaultdict[tuple[str, float], list[Rule]] = defaultdict(list)

    def add(self, rule: Rule) -> None:
        """Add a rule that the engine tries after all rules added before."""
        for case in _cases(rule):
            self._by_case[case].append(rule)
        for tool in {"*", *tool_names(rule)}:
            self._by_tool[tool, rule.effective].append(rule)

    def covering(self, rule: Rule) -> tuple[Rule, ...]:
        """Return rules that together decide all cases of `rule`, so that it never applies.

        Returns () if any case is left for `rule` to decide.
        """
        by: dict[int, Rule] = {}
        for case in _cases(rule):
            found = next((one for one in self._with(*case) if _wider(one, rule)), None)
            if found is None:
                return ()
            by[id(found)] = found
        return tuple(by.values())

    def tied(self, rule: Rule) -> Rule | None:
        """Return a rule of equal priority that decides some of the same calls differently.

        Returns None if there is none. Two rules are only compared if one of them has no condition,
        or both have the same condition. With different conditions, it is unknown whether one call
        can meet both.
        """
        for tool, condition in _cases(rule):
            narrower: Sequence[Rule] = self._by_tool[tool, rule.effective] if condition == _NONE else ()
            for other in (*self._with(tool, condition), *narrower):
                if (
                    other.effective == rule.effective
                    and other.decision is not rule.decision
                    and (None in (rule.subagent, other.subagent) or rule.subagent == other.subagent)
                    and _situations(rule) & _situations(other)
                ):
                    return other
        return None

    def _with(self, tool: str, condition: _Condition) -> Iterator[Rule]:
        """Yield the rules for this tool that have this condition or none."""
        for key in product(_covering_names(tool), dict.fromkeys((_NONE, condition))):
            yield from self._by_case.get(key, ())


_MOST_PARTS = 50
"""How many of an MCP tool name's underscores are tried as the server name's end."""


def _covering_names(tool: str) -> tuple[str, ...]:
    """Return the tool names that a rule can use to match all calls to `tool`.

    These are the name itself, wildcards, and the current name if `tool` is a former one. If `tool`
    is a current name, its former names are left out, because only a rule for the current name can
    hide a tool.
    """
    names = [tool, "*"]
    if tool.startswith(MCP_PREFIX):
        parts = tool.removeprefix(MCP_PREFIX).split("_", _MOST_PARTS)
        names += [f"{MCP_PREFIX}{'_'.join(parts[:at])}_*" for at in range(1, len(parts))]
        names.append(f"{MCP_PREFIX}*")
    if tool in AGENTS:
        names.append("invoke_agent")
    return tuple(dict.fromkeys((*names, ALIASES.get(tool, tool))))


def _cases(rule: Rule) -> Iterator[tuple[str, _Condition]]:
    """Yield all pairs of one of a rule's tools and one of its conditions."""
    prefixes = rule.command_prefixes
    if not rule.prefix_list:
        prefixes = tuple(filter(None, prefixes))
    patterns = () if prefixes else pattern_sources(rule)
    conditions = [*((prefix, None) for prefix in prefixes), *((None, each) for each in patterns)]
    return product(dict.fromkeys(tool_names(rule)), conditions)


def _situations(rule: Rule) -> _Situations:
    asked = (True, False) if rule.interactive is None else (rule.interactive,)
    return frozenset(product(rule.modes or MODES, asked))


def _wider(one: Rule, other: Rule) -> bool:
    """Return whether `one` applies wherever `other` does, tools and arguments aside.

    That is, `one` must cover all modes, kinds of runs, callers, MCP servers and annotations of
    `other`. Priorities are not compared.
    """
    return (
        _situations(one) >= _situations(other)
        and one.subagent in (None, other.subagent)
        and one.mcp_name in (None, "*", other.mcp_name)
        and not (one.annotations and dict(one.annotations) != dict(other.annotations or {}))
    )


def _never_applies(rule: Rule, by: Sequence[Rule]) -> FindingDraft:
    names = or_list(_named(each, rule) for each in by[:3])
    more = f" and {len(by) - 3} more" if len(by) > 3 else ""
    verb = "is" if len(by) == 1 else "are"
    equal = all(each.effective == rule.effective for each in by)
    why = "loaded first and has the same priority" if equal else "checked first"
    said = f"this rule never applies, because {names.replace(' or ', ' and ')}{more} {verb} {why}"
    return warned("", said, "delete it, or give it a higher priority")


def _named(rule: Rule, beside: Rule) -> str:
    place = "" if rule.source == beside.source else f" of {rule.source}"
    return f"rule {rule.index}{place} (priority {rule.priority:g}, {rule.decision})"


def _tie(rule: Rule, first: Rule) -> FindingDraft:
    said = f"{_named(first, rule)} has the same priority and comes first, so it wins"
    return warned("priority", said, "give the rule that should win a higher priority")
