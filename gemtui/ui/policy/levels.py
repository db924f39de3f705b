"""The simple view of a policy: levels for three capabilities, and three tool lists.

Its rules are those that `gemtui.policy.file.levels` creates. They are recognised by their form: one
tool, no condition, headless only, and a priority from 997 to 999. A rule that denies with priority
999 may apply to interactive sessions as well, although that module doesn't create such rules. All
other rules in a file are left unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gemtui.policy.edit.document import Document, RuleEntry
from gemtui.policy.file.levels import CAPABILITIES, Level, PermissionPolicy, Permissions, rules
from gemtui.policy.model.rules import ApprovalMode, Decision, Rule

_LEVEL_RULES = {
    (Decision.ALLOW, 997): Level.ALLOW,
    (Decision.ASK_USER, 997): Level.ASK,
    (Decision.DENY, 999): Level.DENY,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SimplePolicy:
    """What the simple view shows.

    `levels`: the level of each capability; if it isn't set, the approval mode decides. `only`: the
    only tools that may be used; None means any. `approved`: tools that need no approval.
    `disallowed`: tools that are denied. `others`: the number of rules that the view can't show.
    """

    levels: dict[str, Level]
    only: tuple[str, ...] | None = None
    approved: tuple[str, ...] = ()
    disallowed: tuple[str, ...] = ()
    others: int = 0


def is_simple(rule: Rule) -> bool:
    """Return whether the simple view can show a rule.

    It can if the rule has the form of a capability's level or of a tool list.
    """
    plain = Rule(
        decision=rule.decision,
        priority=rule.priority,
        tools=rule.tools,
        interactive=rule.interactive if rule.decision is Decision.DENY else False,
        tier=rule.tier,
        source=rule.source,
        index=rule.index,
    )
    headless = rule.interactive is False or (rule.interactive is None and _always(rule))
    return headless and rule == plain and len(rule.tools) == 1 and _kind(rule) is not None


def _always(rule: Rule) -> bool:
    """Return whether a rule denies its tools with priority 999.

    The simple view accepts such rules even if they apply to interactive sessions.
    """
    return rule.decision is Decision.DENY and rule.priority == 999


def _kind(rule: Rule) -> tuple[Decision, int] | None:
    """Return the decision and priority that show which level or list a rule is for.

    Returns None if the rule is for none of them.
    """
    kind = rule.decision, int(rule.priority)
    if rule.tools == ("*",):
        return kind if kind == (Decision.DENY, 998) else None
    known = (*_LEVEL_RULES, (Decision.ALLOW, 999))
    return kind if rule.priority == kind[1] and kind in known else None


def _simple_rules(entries: Sequence[RuleEntry]) -> Iterator[tuple[int, Rule]]:
    for place, entry in enumerate(entries):
        if entry.enabled and entry.rule is not None and is_simple(entry.rule):
            yield place, entry.rule


def read(document: Document) -> SimplePolicy:
    """Return the levels and lists that a document's rules define."""
    found = [rule for _, rule in _simple_rules(document.rules)]
    named: dict[tuple[Decision, int], list[str]] = {}
    for rule in found:
        named.setdefault((rule.decision, int(rule.priority)), []).append(rule.tools[0])
    levels: dict[str, Level] = {}
    for name, tools in CAPABILITIES.items():
        for kind, level in _LEVEL_RULES.items():
            if set(tools) <= set(named.get(kind, ())):
                levels[name] = level
                named[kind] = [tool for tool in named[kind] if tool not in tools]
    return SimplePolicy(
        levels=levels,
        only=_only(named),
        approved=tuple(named.get((Decision.ALLOW, 997), ())),
        disallowed=tuple(named.get((Decision.DENY, 999), ())),
        others=len(document.rules) - len(found),
    )


def _only(named: dict[tuple[Decision, int], list[str]]) -> tuple[str, ...] | None:
    closed = (Decision.DENY, 998) in named
    return tuple(named.get((Decision.ALLOW, 999), ())) if closed else None


def level_rules(simple: SimplePolicy) -> tuple[Rule, ...]:
    """Return the rules that define these levels and lists; an unset level needs none.

    Raises OptionError for a name that no tool can have.
    """
    found = rules(
        Permissions(
            mode=ApprovalMode.DEFAULT,
            levels=PermissionPolicy(**simple.levels),
            only_tools=simple.only,
            approved_tools=simple.approved,
            disallowed_tools=simple.disallowed,
        )
    )
    return tuple(replace(each, interactive=None) if _always(each) else each for each in found)


def with_levels(document: Document, simple: SimplePolicy) -> Document:
    """Return the document with its rules changed to define these levels and lists.

    Rules that are still needed stay where they are. Among rules of equal priority, the first one
    wins; so new rules that deny or ask are added at the start, and new rules that allow at the end.
    Raises OptionError for a name that no tool can have, and PolicyError if the document is locked.
    """
    wishes = {_identity(rule): rule for rule in level_rules(simple)}
    kept = set()
    for place, rule in reversed(tuple(_simple_rules(document.rules))):
        if _identity(rule) in wishes:
            kept.add(_identity(rule))
        else:
            document = document.remove(place)
    fresh = [rule for identity, rule in wishes.items() if identity not in kept]
    for rule in reversed([rule for rule in fresh if rule.decision is not Decision.ALLOW]):
        document = document.add(rule, 0)
    for rule in fresh:
        if rule.decision is Decision.ALLOW:
            document = document.add(rule)
    return document


def _identity(rule: Rule) -> tuple[str, Decision, float, bool | None]:
    return rule.tools[0], rule.decision, rule.priority, rule.interactive
