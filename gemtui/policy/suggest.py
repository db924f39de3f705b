"""Rules that would allow what agents did and succeeded with, each with its evidence.

Nothing is applied: a person reads them and takes what they want. They count in the one approval
mode that was asked for: elsewhere the same rule would open more (writes in plan mode, redirections
in autoEdit).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gemtui.policy.decide import Engine, Setup
from gemtui.policy.evidence import Done, Plan, Refused, planned, reduced
from gemtui.policy.policy import Policy, of
from gemtui.policy.recorded import Ended, Recorded, Reference
from gemtui.policy.rules import ApprovalMode, Call, Decision, Rule, Tier

PRIORITY = 100
"""Of a proposed rule, unless it has to stand above one that asks or denies now."""
_HIGHEST = 999


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A rule and what speaks for it.

    It would allow `calls` calls in `sessions` sessions that are not allowed now, some of them
    together with other rules; `examples`: three of them. `opens`: what else it allows, in words.
    """

    rule: Rule
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
        self._done: dict[tuple[object, ...], Done] = {}

    def _engine_of(self, policy: Policy) -> Engine:
        return Engine(policy, mode=self._mode, interactive=self._interactive, setup=self._setup)

    def feed(self, calls: Iterable[Recorded]) -> None:
        """Take these calls in. Raises PatternTimeout."""
        for recorded in calls:
            self._calls += 1
            if recorded.ended is not Ended.SUCCEEDED:
                continue
            self._succeeded += 1
            outcome = self._engine.outcome(recorded.call)
            if outcome.offered and outcome.decision is Decision.ALLOW:
                self._allowed += 1
                continue
            key, call = reduced(recorded)
            done = self._done.get(key)
            if done is None:
                done = self._done[key] = Done(call, recorded.project, outcome.rule)
            done.add(recorded)

    def suggest(self) -> Suggestions:
        """The rules that the calls so far speak for."""
        refused = _Refusals()
        wanted: list[Done] = []
        for done in self._done.values():
            if (why := _denied(done.blocking)) is not None:
                refused.add(done, Refused(what=_subject(done.call), why=why))
            else:
                wanted.append(done)
        plans, left = planned(wanted, self._engine, mode=self._mode)
        for done, reason in left:
            refused.add(done, reason)
        plans = self._tried(plans, refused)
        suggestions = [self._suggestion(plan) for plan in plans]
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

    def _tried(self, plans: Sequence[Plan], refused: _Refusals) -> list[Plan]:
        """Only what the engine, asked with all these rules, really allows is evidence."""
        rules = [self._rule(plan) for plan in plans]
        engine = self._engine_of(of(rules) + self._policy)
        failed: set[int] = set()
        for done in {id(each): each for plan in plans for each in plan.evidence}.values():
            outcome = engine.outcome(done.call)
            if not (outcome.offered and outcome.decision is Decision.ALLOW):
                failed.add(id(done))
                why = _why_not(engine, done.call)
                refused.add(done, Refused(what=_subject(done.call), why=why))
        kept = (plan.without(failed) for plan in plans)
        return [plan for plan in kept if plan is not None]

    def _rule(self, plan: Plan) -> Rule:
        return replace(
            plan.rule,
            priority=max(PRIORITY, *(_above(done.blocking) for done in plan.evidence)),
            modes=(self._mode.in_rules,),
        )

    def _suggestion(self, plan: Plan) -> Suggestion:
        references = [each for done in plan.evidence for each in done.examples]
        return Suggestion(
            rule=self._rule(plan),
            calls=sum(done.calls for done in plan.evidence),
            sessions=len(set().union(*(done.sessions for done in plan.evidence))),
            examples=tuple(_different(references)),
            opens=plan.opens,
        )


class _Refusals:
    """What is left out, by what and why."""

    def __init__(self) -> None:
        self._found: dict[Refused, list[Done]] = {}

    def add(self, done: Done, reason: Refused) -> None:
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


def _denied(rule: Rule | None) -> str | None:
    """Somebody denied this very tool on purpose: that is not for us to undo."""
    if rule is None or rule.tier < Tier.USER or rule.decision is not Decision.DENY:
        return None
    if rule.tier is Tier.USER and (not rule.tools or "*" in rule.tools):
        return None
    place = f"rule {rule.index} of {rule.source}" if rule.index else rule.source
    return f"{place} denies it"


def _above(rule: Rule | None) -> int:
    """The priority from which on a rule of the user beats the one that decides now."""
    if rule is None or rule.tier is not Tier.USER:
        return PRIORITY
    return min(_HIGHEST, int(rule.priority) + 1)


def _subject(call: Call) -> str:
    text = next((value for value in call.args.values() if isinstance(value, str) and value), "")
    return f"{call.tool} {' '.join(text.split())[:80]}".rstrip()


def _why_not(engine: Engine, call: Call) -> str:
    """Why a call is refused in spite of the rules made for it."""
    explained = engine.explain(call)
    if not explained.offered:
        return "the tool would still not be offered"
    return explained.because


def suggest(
    calls: Iterable[Recorded],
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
