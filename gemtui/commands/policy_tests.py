"""The tests in `gemtui policy check`: a policy's own examples, and recent calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from gemtui.commands.policy_calls import CallSelection, Read, read_which, reference_lines, rule_dict, shortened_args
from gemtui.policy.engine.decide import Engine
from gemtui.policy.examples import Tried, examples_of, try_examples
from gemtui.policy.file.policy import Policy, text_at
from gemtui.policy.file.policy_files import policy_files
from gemtui.policy.model.rules import ApprovalMode, CallStatus, Finding, RecordedCall, Reference, Rule, Severity
from gemtui.policy.suggest.replay import ReplayDecision, refusal_of_tool, replay_decision, tool_may_exist
from gemtui.policy.words import decision_word, rule_place
from gemtui.sessions.catalog.summary import iso
from gemtui.text import Clean, counted

_DENIED = (ReplayDecision.DENY, ReplayDecision.NOT_OFFERED, ReplayDecision.TOOL_REFUSES)
LISTED = 50
"""The maximum number of denied calls to list; the rest are only counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileExample:
    """An example in a policy file, and whether it passes.

    An example is a comment with a call and the expected decision.
    """

    file: Path
    tried: Tried


def try_files(paths: Sequence[Path]) -> tuple[FileExample, ...]:
    """Try the examples in policy files; only the rules of an example's own file apply."""
    return tuple(
        FileExample(file=file, tried=tried)
        for path in paths
        for file in policy_files(path)
        for text in text_at(file)
        for tried in try_examples(examples_of(text), Policy.parse(text, source=str(file)))
    )


def example_findings(examples: Sequence[FileExample]) -> Iterator[Finding]:
    """Yield an error for each example that fails or can't be read."""
    for each in examples:
        tried = each.tried
        if tried.passes:
            continue
        place, example = f"line {tried.example.line}", tried.example
        said = example.problem
        if tried.decision is not None:
            by = "no rule" if tried.rule is None else rule_place(tried.rule)
            wanted, got = decision_word(example.expected), decision_word(tried.decision)
            said = f"expected {wanted}, got {got} by {by}: {example.text.partition(': ')[2]}"
        yield Finding(file=each.file, rule=0, field="example", severity=Severity.ERROR, message=f"{place}: {said}")


def example_json(each: FileExample) -> dict[str, Any]:
    """Return an example's JSON object in the output of `gemtui policy check --json`."""
    example, decision = each.tried.example, each.tried.decision
    return {
        "file": str(each.file),
        "line": example.line,
        "tool": example.tool or None,
        "args": dict(example.args),
        "mode": example.mode.value,
        "expected": None if example.problem else example.expected.value,
        "decision": None if decision is None else decision.value,
        "passes": each.tried.passes,
        "problem": example.problem or None,
    }


# --- replay --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class DeniedCall:
    """A call that succeeded at the time, but would be denied now."""

    recorded: RecordedCall
    decision: ReplayDecision
    rule: Rule | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """A policy's decisions for the calls that have succeeded since a given time.

    `read`: the sessions that were read. `calls`: how many calls were decided; `counts` has their
    number by decision. `gone`: how many calls used a tool that no longer exists. `undated`: how
    many calls have no recorded time. Neither is included in `calls`.
    """

    since: datetime
    mode: ApprovalMode
    read: Read
    calls: int
    counts: Counter[ReplayDecision]
    denied: tuple[DeniedCall, ...]
    gone: int
    undated: int


def replay_since(paths: Sequence[Path], which: CallSelection, since: datetime, mode: ApprovalMode) -> Replayed:
    """Decide the calls that succeeded since a time, by these policy files alone.

    Settings are ignored. The run is assumed to be headless and in this mode. Raises
    SessionNotFound, SessionAmbiguous, StoreUnreadable.
    """
    found = read_which(which)
    recent = tuple(each for each in found.sessions if each.updated is None or each.updated >= since)
    read = replace(found, sessions=recent)
    engine = Engine(Policy.load(paths), mode=mode)
    counts: Counter[ReplayDecision] = Counter()
    denied: list[DeniedCall] = []
    gone = undated = 0
    for recorded in (each for batch in read.calls() for each in batch):
        if recorded.ended is not CallStatus.SUCCEEDED:
            continue
        if recorded.time is None:
            undated += 1
        elif recorded.time >= since and not tool_may_exist(recorded.call.tool):
            gone += 1
        elif recorded.time >= since:
            outcome = engine.outcome(recorded.call)
            decision = replay_decision(outcome)
            if decision not in _DENIED and refusal_of_tool(recorded, mode):
                decision = ReplayDecision.TOOL_REFUSES
            counts[decision] += 1
            if decision in _DENIED:
                denied.append(DeniedCall(recorded=recorded, decision=decision, rule=outcome.rule))
    return Replayed(
        since=since,
        mode=mode,
        read=read,
        calls=counts.total(),
        counts=counts,
        denied=tuple(denied),
        gone=gone,
        undated=undated,
    )


def replay_json(found: Replayed) -> dict[str, Any]:
    """Return the value of `replay` in the output of `gemtui policy check --json`."""
    return {
        "since": iso(found.since),
        "mode": found.mode.value,
        "sessions": len(found.read.sessions),
        "succeeded": found.calls,
        "allow": found.counts[ReplayDecision.ALLOW],
        "ask_user": found.counts[ReplayDecision.ASK_USER],
        "deny": len(found.denied),
        "gone_tools": found.gone,
        "undated": found.undated,
        "denied": [
            {
                "session": each.recorded.session,
                "tool": each.recorded.call.tool,
                "args": shortened_args(each.recorded.call.args),
                "decision": each.decision.value,
                "rule": rule_dict(each.rule),
            }
            for each in found.denied
        ],
    }


def replay_lines(found: Replayed) -> Iterator[Clean]:
    """Yield lines with the number of calls by decision, then the denied calls."""
    since = found.since.astimezone().date().isoformat()
    yield Clean(
        f"{counted(found.calls, 'call')} succeeded since {since}; mode {found.mode.value} would "
        f"now allow {found.counts[ReplayDecision.ALLOW]:,}, ask about "
        f"{found.counts[ReplayDecision.ASK_USER]:,}, and deny {len(found.denied):,}"
    )
    if found.undated:
        yield Clean(f"Not tested: {counted(found.undated, 'call')} without a recorded time")
    if found.gone:
        yield Clean(f"Not tested: {counted(found.gone, 'call')} of tools that no longer exist")
    yield from reference_lines(Reference.to(each.recorded) for each in found.denied[:LISTED])
    if len(found.denied) > LISTED:
        yield Clean(f"    and {len(found.denied) - LISTED:,} more")
