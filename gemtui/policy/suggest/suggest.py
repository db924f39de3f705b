"""Suggest rules that allow recorded calls that succeeded, each with its evidence.

Nothing is changed: the user reads the suggestions and picks some. A suggested rule is for one
approval mode only, because in a different mode it would allow more: writes in plan mode, or
redirections in autoEdit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from gemtui.policy.engine.decide import Engine, Outcome, Setup
from gemtui.policy.file.policy import Policy, of
from gemtui.policy.model.recorded_call import CallStatus, RecordedCall, Reference
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, Rule, Tier
from gemtui.policy.suggest.call_groups import REDIRECTING, CallGroup, RefusedGroup, RulePlan, planned, reduced
from gemtui.policy.suggest.replay import refusal_of_tool

PRIORITY = 100
"""The priority of a suggested rule, unless it has to override another rule."""
_HIGHEST = 999


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A suggested rule and the evidence for it.

    `about`: a description of what the rule is for. `opens`: a description of what else it would
    allow. `calls`: how many recorded calls, in `sessions` sessions, the rule would newly allow;
    some may need other suggested rules as well. `examples`: up to three of these calls.
    """

    rule: Rule
    about: str
    calls: int
    sessions: int
    examples: tuple[Reference, ...]
    opens: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Calls for which no rule is suggested.

    `what`: a command prefix, file or tool. `why`: the reason, as a clause. `calls`: how many calls
    there are.
    """

    what: str
    why: str
    calls: int
    examples: tuple[Reference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestions:
    """The result of `suggest`.

    `calls`: the number of calls that were read. `succeeded`: how many of these were successful.
    `allowed`: how many of the successful calls need no new rule. `suggestions` and `left_out` are
    sorted by the number of calls, largest first.
    """

    calls: int
    succeeded: int
    allowed: int
    suggestions: tuple[Suggestion, ...]
    left_out: tuple[LeftOut, ...]


class Evidence:
    """Collects recorded calls, and suggests rules to allow them.

    Memory use grows with the number of different commands, files and tools, not with the number of
    calls. Not thread-safe.
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
        """Add recorded calls."""
        for recorded in calls:
            self._calls += 1
            if recorded.ended is not CallStatus.SUCCEEDED:
                continue
            self._succeeded += 1
            why = refusal_of_tool(recorded, self._mode)
            if why is None and _is_allowed(self._engine.outcome(recorded.call)):
                self._allowed += 1
                continue
            key, call = reduced(recorded)
            done = self._done.get((*key, why))
            if done is None:
                done = self._done[*key, why] = CallGroup(call, recorded.project, refused=why)
            done.add(recorded)

    def suggest(self) -> Suggestions:
        """Return the rules suggested for the calls added so far."""
        refused = _Refusals()
        wanted = [done for done in self._done.values() if done.refused is None]
        plans, left = planned(wanted, self._engine, mode=self._mode)
        for done, reason in (*left, *_refused_by_tools(self._done.values())):
            refused.add(done, reason)
        raised = self._tried(self._raised(plans, refused), refused)
        suggestions = [self._suggestion(plan) for plan in raised]
        suggestions.sort(key=lambda each: -each.calls)
        return Suggestions(
            calls=self._calls,
            succeeded=self._succeeded,
            allowed=self._allowed,
            suggestions=tuple(
                replace(each, rule=replace(each.rule, index=place)) for place, each in enumerate(suggestions, 1)
            ),
            left_out=refused.all(),
        )

    def _raised(self, plans: Sequence[RulePlan], refused: _Refusals) -> list[RulePlan]:
        """Set the mode of planned rules, and a priority that outranks rules in their way.

        The planned rules are first tried with priority 0, to see which existing rules override
        them. A rule that denies exactly this tool counts as intended and stays in force: the calls
        are added to `refused`. A rule that asks, or that denies all tools, is outranked.
        """
        plans = [plan.raised(0, self._mode) for plan in plans]
        engine = self._engine_of(self._policy + of([plan.rule for plan in plans]))
        found: list[RulePlan] = []
        for plan in plans:
            blocking = {id(done): _blocking(engine.outcome(done.call)) for done in plan.evidence}
            denied = {key for key, rule in blocking.items() if rule is not None and _meant(rule)}
            for done in plan.evidence:
                if (rule := blocking[id(done)]) is not None and id(done) in denied:
                    refused.add(done, RefusedGroup(what=_subject(done.call), why=f"{_place(rule)} denies it"))
            kept = plan.without(denied)
            if kept is not None:
                over = [blocking[id(done)] for done in kept.evidence]
                found += self._between(kept, [rule for rule in over if rule is not None], refused)
        return found

    def _between(self, plan: RulePlan, over: Sequence[Rule], refused: _Refusals) -> list[RulePlan]:
        """Return the plan with a priority above the rules `over`, as a list of one.

        The priority must also be below that of any other rule that asks about, or denies, some of
        the calls that the plan would allow. If there is no such priority, the list is empty, and
        the plan's calls are added to `refused`.
        """
        least = max((int(rule.priority) + 1 for rule in over), default=0)
        guards = [
            rule for rule in self._policy.rules if _guards(rule, plan.rule) and not any(rule is other for other in over)
        ]
        lowest = min(guards, key=lambda rule: rule.priority, default=None)
        most = _HIGHEST if lowest is None else max(0, int(lowest.priority) - 1)
        if least <= most:
            return [plan.raised(max(least, min(PRIORITY, most)), self._mode)]
        what = "everything" if lowest is None else f"{_place(lowest)}, which must still apply to other calls"
        for done in plan.evidence:
            why = f"its rule would need a higher priority than {what}"
            refused.add(done, RefusedGroup(what=_subject(done.call), why=why))
        return []

    def _tried(self, plans: Sequence[RulePlan], refused: _Refusals) -> list[RulePlan]:
        """Return the plans without those calls that would be blocked despite all plans.

        Such calls are added to `refused`. A plan that has no calls left is dropped.
        """
        rules = [replace(plan.rule, source="the suggested rules", index=place) for place, plan in enumerate(plans, 1)]
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
        """Return a plan as a suggestion.

        In modes that edit files, a rule that allows a command also allows redirections, so `opens`
        has to mention them.
        """
        redirects = plan.rule.command_prefixes and self._mode in REDIRECTING
        more = "; in this mode, output redirection may write to any file" if redirects else ""
        return Suggestion(
            rule=plan.rule,
            about=plan.about,
            calls=sum(done.calls for done in plan.evidence),
            sessions=len(set().union(*(done.sessions for done in plan.evidence))),
            examples=tuple(_different(each for done in plan.evidence for each in done.examples)),
            opens=plan.opens + more,
        )


class _Refusals:
    """Collects the groups of calls for which no rule is suggested, by reason."""

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


def _refused_by_tools(groups: Iterable[CallGroup]) -> Iterator[tuple[CallGroup, RefusedGroup]]:
    for done in groups:
        if done.refused is not None:
            why = f"the tool rejects it: {done.refused}"
            yield done, RefusedGroup(what=_subject(done.call), why=why)


def _different(references: Iterable[Reference]) -> list[Reference]:
    """Return up to three references whose arguments differ as much as possible."""
    found = list(references)
    by_argument = {(each.tool, each.argument): each for each in reversed(found)}
    return list(reversed(by_argument.values()))[:3]


def _is_allowed(outcome: Outcome) -> bool:
    return outcome.found and outcome.decision is Decision.ALLOW


def _blocking(outcome: Outcome) -> Rule | None:
    """Return the rule that blocks a call and that suggested rules have to outrank.

    This is a rule of the user, the settings or the administrator; None if there is none.
    """
    rule = outcome.rule
    if _is_allowed(outcome) or rule is None or rule.tier < Tier.USER:
        return None
    return None if rule.decision is Decision.ALLOW else rule


def _meant(rule: Rule) -> bool:
    """Return whether a rule was evidently meant to deny its tool.

    Administrators' rules count as meant, and so do denials that name tools.
    """
    named = bool(rule.tools) and "*" not in rule.tools
    return rule.tier is Tier.ADMIN or (named and rule.decision is Decision.DENY)


def _guards(rule: Rule, proposed: Rule) -> bool:
    """Return whether a rule asks about or denies some calls that `proposed` allows."""
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
    """Suggest rules that, together with `policy`, allow the calls that succeeded.

    `mode` and `interactive` describe the run that the rules are for. `setup`: the other facts on
    which the run's decisions depend, such as settings.
    """
    evidence = Evidence(policy, mode=mode, interactive=interactive, setup=setup)
    evidence.feed(calls)
    return evidence.suggest()
