"""Replay recorded calls under a policy, and count the decisions by rule.

A call is decided the way the current CLI would decide it, with the recorded name and arguments.
Names are not translated, except for the one alias that the engine itself knows
(assets/gemini-cli.md#tool-names), and in calls of other agents (assets/agents.md#policies). A call
to a tool that the CLI no longer has would fail as not found; such calls are also counted
separately.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path, PurePath
from typing import Final, NamedTuple

from gemtui.agents import Agent
from gemtui.calls.paths import is_windows, recorded_path
from gemtui.policy.engine.decide import Engine
from gemtui.policy.engine.refusals import own_path, tool_refuses
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, RecordedCall, Reference, Rule
from gemtui.policy.model.tool_catalog import tool as known_tool

KEPT = 200_000
"""The default maximum number of references that a replay keeps.

One takes about 300 bytes. Further calls are counted, but can't be listed.
"""

EXAMPLES = 3


class ReplayDecision(StrEnum):
    """The outcome of a replayed call; each call has exactly one."""

    ALLOW = "allow"
    ASK_USER = "ask_user"
    """The user would be asked; in headless runs, the call would be denied."""
    DENY = "deny"
    NOT_OFFERED = "not_offered"
    """The call fails as not found: the tool doesn't exist, or a rule hides it."""
    TOOL_REFUSES = "tool_refuses"
    """The policy would not deny the call, but the tool itself refuses it."""
    NOT_CHECKED = "not_checked"
    """The call is a PowerShell command, recorded on Windows; gemtui only reads bash."""


POWERSHELL: Final = "Gemini CLI reads this as PowerShell; gemtui reads it as bash"
"""The reason for not judging a command that was recorded on Windows."""

_LET_THROUGH = (ReplayDecision.ALLOW, ReplayDecision.ASK_USER)
_REPLAYED = {each: ReplayDecision(each) for each in Decision}


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCount:
    """The calls for which one rule made the same decision.

    `rule`: None if the decision came from something else, such as the mode or the tool itself.
    `references`: in the order of the calls, up to a limit. `examples`: the first few calls,
    complete.
    """

    rule: Rule | None
    decision: ReplayDecision
    calls: int
    references: tuple[Reference, ...]
    examples: tuple[RecordedCall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayCounts:
    """The number of replayed calls with each outcome, in total and by rule.

    `by_rule`: sorted by the number of calls, then by the first call. `unknown`: maps each tool that
    the current CLI lacks to its number of calls; these calls are included in the other counts.
    `translated`: how many calls of other agents were translated, by the tool's own name and the one
    that rules see.
    """

    calls: int
    allow: int
    ask_user: int
    deny: int
    not_offered: int
    tool_refuses: int
    not_checked: int
    by_rule: tuple[RuleCount, ...]
    unknown: Mapping[str, int]
    translated: Mapping[Translation, int]


class Translation(NamedTuple):
    """A tool of another agent, and the name by which rules see it."""

    agent: Agent
    own: str
    tool: str


class _Share:
    """A `RuleCount` whose calls are still being counted."""

    def __init__(self, rule: Rule | None, decision: ReplayDecision) -> None:
        self.rule, self.decision = rule, decision
        self.calls = 0
        self.references: list[Reference] = []
        self.examples: list[RecordedCall] = []

    def frozen(self) -> RuleCount:
        return RuleCount(
            rule=self.rule,
            decision=self.decision,
            calls=self.calls,
            references=tuple(self.references),
            examples=tuple(self.examples),
        )


class ReplayCounter:
    """Replays calls in any number of steps. Not thread-safe.

    `keep`: the maximum number of references to keep, for all rules together.
    """

    def __init__(self, engine: Engine, *, keep: int = KEPT) -> None:
        self._engine = engine
        self._room = keep
        self._shares: dict[tuple[int, ReplayDecision], _Share] = {}
        self._unknown: Counter[str] = Counter()
        self._translated: Counter[Translation] = Counter()
        self._known: dict[str, bool] = {}

    def feed(self, calls: Iterable[RecordedCall]) -> None:
        """Decide more calls, and add them to the counts."""
        for recorded in calls:
            decision, rule = replayed(recorded, self._engine)
            key = id(rule), decision
            share = self._shares.get(key)
            if share is None:
                share = self._shares[key] = _Share(rule, decision)
            share.calls += 1
            if share.calls <= EXAMPLES:
                share.examples.append(recorded)
            if self._room > 0:
                self._room -= 1
                share.references.append(Reference.to(recorded))
            tool = recorded.call.tool
            if recorded.call.is_foreign:
                self._translated[Translation(recorded.call.agent, recorded.call.own, tool)] += 1
                continue
            if tool not in self._known:
                self._known[tool] = tool_may_exist(tool)
            if not self._known[tool]:
                self._unknown[tool] += 1

    def counts(self) -> ReplayCounts:
        """Return the counts of all calls so far."""
        counts: Counter[ReplayDecision] = Counter()
        for share in self._shares.values():
            counts[share.decision] += share.calls
        shares = sorted(self._shares.values(), key=lambda share: -share.calls)
        return ReplayCounts(
            calls=counts.total(),
            allow=counts[ReplayDecision.ALLOW],
            ask_user=counts[ReplayDecision.ASK_USER],
            deny=counts[ReplayDecision.DENY],
            not_offered=counts[ReplayDecision.NOT_OFFERED],
            tool_refuses=counts[ReplayDecision.TOOL_REFUSES],
            not_checked=counts[ReplayDecision.NOT_CHECKED],
            by_rule=tuple(share.frozen() for share in shares),
            unknown=dict(self._unknown),
            translated=dict(self._translated.most_common()),
        )


def replayed(recorded: RecordedCall, engine: Engine) -> tuple[ReplayDecision, Rule | None]:
    """Return what would happen to a recorded call, and the rule that decides it, if one does."""
    outcome = engine.outcome(recorded.call)
    if not outcome.found:
        return ReplayDecision.NOT_OFFERED, outcome.rule
    if recorded.is_powershell:
        return ReplayDecision.NOT_CHECKED, None
    decision = _REPLAYED[outcome.decision]
    if decision in _LET_THROUGH and refusal_of_tool(recorded, engine.mode):
        return ReplayDecision.TOOL_REFUSES, None
    return decision, outcome.rule


def refusal_of_tool(recorded: RecordedCall, mode: ApprovalMode) -> str | None:
    """Return why the tool itself would refuse a recorded call; None if it wouldn't.

    What tools of other agents refuse is not known.
    """
    if recorded.call.is_foreign:
        return None
    if recorded.project is None:
        return tool_refuses(recorded.call, mode=mode, on_disk=False)
    call, project = recorded.call, recorded.project
    if is_windows(str(project)):
        call, project = _as_posix(call, recorded_path(str(project)))
    return tool_refuses(call, (project,), mode=mode, on_disk=False)


def _as_posix(call: Call, project: PurePath) -> tuple[Call, Path]:
    """Return a call recorded on Windows and its project, with paths that can be judged here."""
    root = Path("/", *project.parts[1:])
    named = call.args.get(own_path(call.tool))
    if not isinstance(named, str):
        return call, root
    path = recorded_path(named, str(project))
    inside = path.relative_to(project) if path.is_relative_to(project) else path
    return replace(call, args={**call.args, own_path(call.tool): inside.as_posix()}), root


def tool_may_exist(tool: str) -> bool:
    """Return whether the current CLI may have a tool with this name.

    Any name of an MCP tool may exist, because that depends on the servers.
    """
    return tool.startswith("mcp_") or known_tool(tool) is not None
