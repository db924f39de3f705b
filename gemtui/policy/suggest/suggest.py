"""Rules that would allow what agents did and succeeded with, each with its evidence.

Nothing is applied: a person reads them and takes what they want. They count in the one approval
mode that was asked for: elsewhere the same rule would open more (writes in plan mode, redirections
in autoEdit).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gemtui.policy.engine.decide import Engine, Outcome, Setup
from gemtui.policy.file.policy import Policy, of
from gemtui.policy.model.recorded_call import CallStatus, RecordedCall, Reference
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, Rule, Tier
from gemtui.policy.suggest.call_groups import (
    REDIRECTING,
    CallGroup,
    RefusedGroup,
    RulePlan,
    planned,
    reduced,
)

PRIORITY = 100
"""Of a proposed rule, unless it has to stand above one that asks or denies now."""
_HIGHEST = 999


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A rule and what speaks for it.

    `about`: what the rule is for, in words. It would allow `calls` calls in `sessions` sessions
    that are not allowed now, some of them together with other rules; `examples`: three of them.
    `opens`: what else it allows, in words.
    """

    rule: Rule
    about: str
    calls: int
    sessions: int
    examples: tuple[Reference, ...]
    opens: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Calls for which no rule is proposed. `what`: a prefix, file or tool; `why`: a clause."""

    what: str
    why: str
    calls: int
    examples: tuple[Reference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestions:
    """`calls`: all that were read; `succeeded` of them did; `allowed` of those need no rule.

    `suggestions` and `left_out`: most calls first.
    """

    calls: int
    succeeded: int
    allowed: int
    suggestions: tuple[Suggestion, ...]
    left_out: tuple[LeftOut, ...]


class Evidence:
    """Recorded calls, taken in as they come; `suggest` may be asked for at any time.

    What is kept grows with the different commands, files and tools, not with the calls. Not for
    two threads at once.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        mode: ApprovalMode = ApprovalMode.DEFAULT,
        interactive: bool = False,
        setup: Setup | None = None,
    ) -> None:
        self._policy = policy
        self._mode, self._interactive, self._setup = mode, interactive, setup
        self._engine = self._engine_of(policy)
        self._calls = self._succeeded = self._allowed = 0
        self._done: dict[tuple[object, ...], CallGroup] = {}

    def _engine_of(self, policy: Policy) -> Engine:
        return Engine(policy, mode=self._mode, interactive=self._interactive, setup=self._setup)

    def feed(self, calls: Iterable[RecordedCall]) -> None:
        """Take these calls in."""
        for recorded in calls:
            self._calls += 1
            if recorded.ended is not CallStatus.SUCCEEDED:
                continue
            self._succeeded += 1
            outcome = self._engine.outcome(recorded.call)
            if _is_allowed(outcome):
                self._allowed += 1
                continue
            key, call = reduced(recorded)
            done = self._done.get(key)
            if done is None:
                done = self._done[key] = CallGroup(call, recorded.project)
            done.add(recorded)

    def suggest(self) -> Suggestions:
        """The rules that the calls so far speak for."""
        refused = _Refusals()
        plans, left = planned(self._done.values(), self._engine, mode=self._mode)
        for done, reason in left:
            refused.add(done, reason)
        raised = self._tried(self._raised(plans, refused), refused)
        suggestions = [self._suggestion(plan) for plan in raised]
        suggestions.sort(key=lambda each: -each.calls)
        return Suggestions(
            calls=self._calls,
            succeeded=self._succeeded,
            allowed=self._allowed,
            suggestions=tuple(
                replace(each, rule=replace(each.rule, index=place))
                for place, each in enumerate(suggestions, 1)
            ),
            left_out=refused.all(),
        )

    def _raised(self, plans: Sequence[RulePlan], refused: _Refusals) -> list[RulePlan]:
        """The plans with modes and the priorities that they need beside the rules of today.

        At the lowest priority one sees which rules stand in the way: what denies this very tool
        was meant so and stays; an ask, or a deny of everything, is overruled.
        """
        plans = [plan.raised(0, self._mode) for plan in plans]
        engine = self._engine_of(self._policy + of([plan.rule for plan in plans]))
        found: list[RulePlan] = []
        for plan in plans:
            blocking = {id(done): _blocking(engine.outcome(done.call)) for done in plan.evidence}
            denied = {key for key, rule in blocking.items() if rule is not None and _meant(rule)}
            for done in plan.evidence:
                if (rule := blocking[id(done)]) is not None and id(done) in denied:
                    refused.add(
                        done,
                        RefusedGroup(what=_subject(done.call), why=f"{_place(rule)} denies it"),
                    )
            kept = plan.without(denied)
            if kept is not None:
                over = [blocking[id(done)] for done in kept.evidence]
                found += self._between(kept, [rule for rule in over if rule is not None], refused)
        return found

    def _between(self, plan: RulePlan, over: Sequence[Rule], refused: _Refusals) -> list[RulePlan]:
        """The plan above the rules that it has to overrule, and below those that deny or ask about
        other calls of its tools; none where that can't be.
        """
        least = max((int(rule.priority) + 1 for rule in over), default=0)
        guards = [
            rule
            for rule in self._policy.rules
            if _guards(rule, plan.rule) and not any(rule is other for other in over)
        ]
        lowest = min(guards, key=lambda rule: rule.priority, default=None)
        most = _HIGHEST if lowest is None else max(0, int(lowest.priority) - 1)
        if least <= most:
            return [plan.raised(max(least, min(PRIORITY, most)), self._mode)]
        what = "everything" if lowest is None else f"{_place(lowest)}, which guards other calls"
        for done in plan.evidence:
            why = f"its rule would have to stand above {what}"
            refused.add(done, RefusedGroup(what=_subject(done.call), why=why))
        return []

    def _tried(self, plans: Sequence[RulePlan], refused: _Refusals) -> list[RulePlan]:
        """Only what the engine, asked with all these rules, really allows is evidence."""
        rules = [
            replace(plan.rule, source="the proposed rules", index=place)
            for place, plan in enumerate(plans, 1)
        ]
        engine = self._engine_of(self._policy + of(rules))
        failed: set[int] = set()
        for done in {id(each): each for plan in plans for each in plan.evidence}.values():
            if not _is_allowed(engine.outcome(done.call)):
                failed.add(id(done))
                why = engine.explain(done.call).because.rstrip(".")
                refused.add(done, RefusedGroup(what=_subject(done.call), why=why))
        kept = (plan.without(failed) for plan in plans)
        return [plan for plan in kept if plan is not None]

    def _suggestion(self, plan: RulePlan) -> Suggestion:
        """Redirections need no leave of a rule in the modes that edit files by themselves."""
        redirects = plan.rule.command_prefixes and self._mode in REDIRECTING
        more = "; in this mode a redirection of it may write any file" if redirects else ""
        return Suggestion(
            rule=plan.rule,
            about=plan.about,
            calls=sum(done.calls for done in plan.evidence),
            sessions=len(set().union(*(done.sessions for done in plan.evidence))),
            examples=tuple(_different(each for done in plan.evidence for each in done.examples)),
            opens=plan.opens + more,
        )


class _Refusals:
    """What is left out, by what and why."""

    def __init__(self) -> None:
        self._found: dict[RefusedGroup, list[CallGroup]] = {}

    def add(self, done: CallGroup, reason: RefusedGroup) -> None:
        self._found.setdefault(reason, []).append(done)

    def all(self) -> tuple[LeftOut, ...]:
        left = [
            LeftOut(
                what=reason.what,
                why=reason.why,
                calls=sum(done.calls for done in dones),
                examples=tuple(_different(each for done in dones for each in done.examples)),
            )
            for reason, dones in self._found.items()
        ]
        return tuple(sorted(left, key=lambda each: -each.calls))


def _different(references: Iterable[Reference]) -> list[Reference]:
    """Three of them, with different arguments as far as there are any."""
    found = list(references)
    by_argument = {(each.tool, each.argument): each for each in reversed(found)}
    return list(reversed(by_argument.values()))[:3]


def _is_allowed(outcome: Outcome) -> bool:
    return outcome.found and outcome.decision is Decision.ALLOW


def _blocking(outcome: Outcome) -> Rule | None:
    """The rule of a person, a setting or an administrator that stands in the way."""
    rule = outcome.rule
    if _is_allowed(outcome) or rule is None or rule.tier < Tier.USER:
        return None
    return None if rule.decision is Decision.ALLOW else rule


def _meant(rule: Rule) -> bool:
    """Whether somebody denied this very tool on purpose."""
    named = bool(rule.tools) and "*" not in rule.tools
    return rule.tier is Tier.ADMIN or (named and rule.decision is Decision.DENY)


def _guards(rule: Rule, proposed: Rule) -> bool:
    """Whether a rule says no to some calls of the tools that another one opens."""
    named = not rule.tools or bool({"*", *proposed.tools}.intersection(rule.tools))
    return named and rule.conditional and rule.decision is not Decision.ALLOW


def _place(rule: Rule) -> str:
    return f"rule {rule.index} of {rule.source}" if rule.index else rule.source


_BLANKS = re.compile(r"[ \t\n]+")


def _subject(call: Call) -> str:
    text = next((value for value in call.args.values() if isinstance(value, str) and value), "")
    return f"{call.tool} {_BLANKS.sub(' ', text)[:80]}".rstrip()


def suggest(
    calls: Iterable[RecordedCall],
    policy: Policy,
    *,
    mode: ApprovalMode = ApprovalMode.DEFAULT,
    interactive: bool = False,
    setup: Setup | None = None,
) -> Suggestions:
    """The smallest set of allow rules, beside `policy`, for what these calls did."""
    evidence = Evidence(policy, mode=mode, interactive=interactive, setup=setup)
    evidence.feed(calls)
    return evidence.suggest()
