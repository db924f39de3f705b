"""`gemtui policy explain` and `replay`: apply policies to tool calls."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import orjson

from gemtui.commands.output import columns, json_to_stdout, lines_to_stdout, note, terminal_width
from gemtui.commands.pick_session import choose, index_of_user
from gemtui.commands.policy_context import Situation, report_broken
from gemtui.jsonin import loads
from gemtui.jsonout import encode
from gemtui.paths import folder_here
from gemtui.policy.engine.decide import Explanation
from gemtui.policy.model.rules import Call, Decision, RecordedCall, Reference, Rule
from gemtui.policy.suggest.replay import EXAMPLES, ReplayCounter, ReplayCounts, ReplayDecision, RuleCount
from gemtui.policy.words import rule_source, rule_words
from gemtui.runs.call_history import recorded_calls
from gemtui.runs.effective_policy import EffectivePolicy
from gemtui.sessions.catalog.index import read_store
from gemtui.sessions.catalog.selection import listed_sessions, sessions_with_calls
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.store.store import Problem
from gemtui.text import HOLDS_CONTROLS, Clean, clean_line, command_line, counted, visible_line
from gemtui.transcript.tools import args_hold_controls

_CUT = 1000
"""The maximum number of characters of an argument in a report's example."""


# --- explain -------------------------------------------------------------------------------------


def print_explanation(situation: Situation, *, tool: str, args: str, subagent: str | None, as_json: bool) -> int:
    """Print the decision for a call; return 1 if the CLI ignores one of the policies.

    `args`: the call's arguments as JSON, or `-` for stdin. `subagent`: the agent that makes the
    call; None means the main agent.
    """
    call = Call(tool=_tool(tool), args=_arguments(args), subagent=subagent or None)
    stands = situation.load_policy(folder_here())
    answer = situation.engine(stands).explain(call)
    if as_json:
        json_to_stdout(_explained(answer, stands))
    else:
        lines_to_stdout(_explanation(answer, stands, situation))
    return report_broken(stands, situation.named)


def _tool(name: str) -> str:
    if not name.strip():
        raise click.UsageError("--tool is empty: name a tool, such as run_shell_command")
    return name


def _arguments(text: str) -> Mapping[str, Any]:
    """Parse a call's arguments from JSON text, or from stdin if the text is `-`.

    stdin is needed for more than 128 KiB, which is the limit for one argument of a command.
    """
    such = """write one, such as '{"command": "ls"}'"""
    data = sys.stdin.buffer.read() if text == "-" and sys.stdin else text.encode("utf-8", "surrogatepass")
    if not data.strip():
        raise click.UsageError(f"--args is empty instead of a JSON object: {such}")
    try:
        value = loads(data)
    except orjson.JSONDecodeError as error:
        raise click.UsageError(f"--args is not valid JSON ({error.msg}): {such}") from None
    if not isinstance(value, dict):
        raise click.UsageError(f"--args is not a JSON object: {such}")
    return value


def _explained(answer: Explanation, stands: EffectivePolicy) -> dict[str, Any]:
    return {
        "version": 1,
        "tool": answer.call.tool,
        "args": answer.call.args,
        "subagent": answer.call.subagent,
        "mode": answer.mode.value,
        "decision": answer.decision.value,
        "offered": answer.offered,
        "headless": answer.headless.value,
        "interactive": answer.interactive.value,
        "rule": rule_dict(answer.rule),
        "because": answer.because,
        "message": answer.message,
        "tool_refuses": answer.tool_refuses,
        "considered": [
            {"rule": rule_dict(each.rule), "matches": each.matches, "why": each.why} for each in answer.considered
        ],
        "files": [str(path) for path in (*stands.files, *stands.admin)],
    }


def _sourced(rule: Rule) -> str:
    return f"{rule_source(rule)}: {rule_words(rule)}"


def _explanation(answer: Explanation, stands: EffectivePolicy, situation: Situation) -> Iterator[Clean]:
    call = answer.call
    if args_hold_controls(call.args):
        yield Clean(f"{HOLDS_CONTROLS}:")
    told = encode(call.args).decode()[: _CUT // 2]
    yield visible_line(f"{call.tool} {told}" + (f" by {call.subagent}" if call.subagent else ""))
    unseen = "no: the tool is hidden from the model, and calls to it fail as “not found”"
    facts = [
        ("situation", situation.words),
        ("decision", f"{answer.decision}{_as_refusal(answer, situation)}"),
        ("because", answer.because),
        *([("rule", _sourced(answer.rule))] if answer.rule else []),
        ("offered", "yes" if answer.offered else unseen),
        ("headless", answer.headless.value),
        ("interactive", answer.interactive.value),
    ]
    if answer.message:
        facts.append(("message", answer.message))
    if answer.tool_refuses:
        facts.append(("the tool", f"rejects it: {answer.tool_refuses}"))
    files = [*stands.files, *stands.admin]
    facts += [("files" if at == 0 else "", str(path)) for at, path in enumerate(files)]
    yield from columns(facts if files else [*facts, ("files", "none")], room=terminal_width())
    if answer.considered:
        yield Clean("")
        yield from columns(
            [("", "EFFECTIVE", "DECISION", "RULE", "WHY")]
            + [
                (
                    "*" if each.matches else "",
                    f"{each.rule.effective:g}",
                    each.rule.decision.value,
                    rule_source(each.rule),
                    each.why,
                )
                for each in answer.considered
            ],
            numbers=frozenset({1}),
            room=terminal_width(),
        )


def _as_refusal(answer: Explanation, situation: Situation) -> str:
    refused = answer.decision is Decision.ASK_USER and not situation.interactive
    return ": denied, because headless runs can't ask" if refused else ""


# --- the calls -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSelection:
    """Which recorded calls to use: one session's, one project's, or all.

    By default, these are the calls of the current folder's project, or all calls if it has no
    sessions.
    """

    session: str | None = None
    project: Path | None = None
    everywhere: bool = False

    def check(self) -> None:
        """Raise click.UsageError if more than one of the options is given."""
        given = [self.session is not None, self.project is not None, self.everywhere]
        if sum(given) > 1:
            raise click.UsageError("--session, --project and --everywhere can't be combined: use only one of them")


@dataclass(kw_only=True)
class Read:
    """The sessions with the selected calls, and what was found while reading them.

    `workspace`: the folder in which the calls were made; None if unknown, or if there may be
    several. `problems`: what could not be read so far. `by_subagents`: how many of the calls read
    so far were made by subagents.
    """

    sessions: tuple[Summary, ...]
    workspace: Path | None
    problems: list[Problem] = field(default_factory=list)
    by_subagents: int = 0

    def calls(self) -> Iterator[tuple[RecordedCall, ...]]:
        """Yield the calls in batches.

        Sessions that can't be read are added to `problems`.
        """
        for step in recorded_calls(self.sessions):
            if step.problem is not None:
                self.problems.append(step.problem)
            self.by_subagents += sum(each.call.subagent is not None for each in step.calls)
            yield step.calls

    def report_problems(self) -> None:
        """Report on stderr which sessions could not be read."""
        if self.problems:
            first, number = self.problems[0], len(self.problems)
            more = f" and {number - 1} more" if number > 1 else ""
            note(f"some sessions could not be read: {first.path} {first.what}{more}")


def read_which(which: CallSelection) -> Read:
    """Find the sessions that contain the selected calls.

    Raises SessionNotFound, SessionAmbiguous, StoreUnreadable.
    """
    which.check()
    with index_of_user() as index:
        one = None if which.session is None else choose(which.session, index)
        snapshot = read_store(index, project=which.project)
    project = which.project
    if project is None and one is None and not which.everywhere:
        here = folder_here()
        found = here and next(listed_sessions(snapshot, project=here, hidden=False), None)
        project = here if found else None
    workspace = project
    if one is not None:
        workspace = Path(one.project) if one.project is not None else None
    read = Read(sessions=sessions_with_calls(snapshot, session=one, project=project), workspace=workspace)
    if one is None:
        read.problems += snapshot.unreadable
    return read


def none_found(read: Read) -> int:
    """Report that there are no recorded calls, and return the exit code 1."""
    read.report_problems()
    note("no recorded tool calls: list all sessions with gemtui sessions --everywhere")
    return 1


# --- replay --------------------------------------------------------------------------------------


def print_replay(situation: Situation, which: CallSelection, *, as_json: bool) -> int:
    """Decide recorded calls as if they were made now, and print the decisions.

    Returns 1 if there are no calls, or if the CLI ignores one of the policies.
    """
    read = read_which(which)
    stands = situation.load_policy(read.workspace)
    run = ReplayCounter(situation.engine(stands))
    for calls in read.calls():
        run.feed(calls)
    counts = run.counts()
    if as_json:
        json_to_stdout(_counts_json(counts, read, situation))
    elif counts.calls:
        lines_to_stdout(_numbers(counts, read, situation))
    code = report_broken(stands, situation.named)
    if not counts.calls:
        return none_found(read)
    read.report_problems()
    return code


def _counts_json(counts: ReplayCounts, read: Read, situation: Situation) -> dict[str, Any]:
    return {
        "version": 1,
        "mode": situation.mode,
        "interactive": situation.interactive,
        "sessions": len(read.sessions),
        "calls": counts.calls,
        "by_subagents": read.by_subagents,
        "allow": counts.allow,
        "ask_user": counts.ask_user,
        "deny": counts.deny + counts.tool_refuses,
        "tool_refuses": counts.tool_refuses,
        "not_offered": counts.not_offered,
        "unknown_tools": dict(counts.unknown),
        "by_rule": [
            {
                "rule": rule_dict(share.rule),
                "decision": _decision(share.decision),
                "tool_refuses": share.decision is ReplayDecision.TOOL_REFUSES,
                "calls": share.calls,
                "examples": [
                    {"session": each.session, "tool": each.call.tool, "args": shortened_args(each.call.args)}
                    for each in share.examples
                ],
            }
            for share in counts.by_rule
        ],
    }


def rule_dict(rule: Rule | None) -> dict[str, Any] | None:
    """Return a rule's source, number and priorities, for JSON reports.

    Returns None if `rule` is None.
    """
    if rule is None:
        return None
    return {
        "source": rule.source,
        "index": rule.index,
        "tier": int(rule.tier),
        "priority": rule.priority,
        "effective": rule.effective,
    }


def shortened_args(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call's arguments for a report, with long strings cut and marked by `…`."""
    return {
        name: f"{value[:_CUT]}…" if isinstance(value, str) and len(value) > _CUT else value
        for name, value in args.items()
    }


def _decision(decision: ReplayDecision) -> str:
    """Return a decision's name in reports; a refusal by the tool itself is a "deny"."""
    return "deny" if decision is ReplayDecision.TOOL_REFUSES else decision.value


_WORDS = {
    ReplayDecision.ALLOW: "allow",
    ReplayDecision.ASK_USER: "ask_user",
    ReplayDecision.DENY: "deny",
    ReplayDecision.NOT_OFFERED: "not offered",
    ReplayDecision.TOOL_REFUSES: "refused",
}


def _numbers(counts: ReplayCounts, read: Read, situation: Situation) -> Iterator[Clean]:
    own = f", {read.by_subagents:,} of them by subagents" if read.by_subagents else ""
    number = len(read.sessions)
    yield Clean(f"{counted(counts.calls, 'tool call')} of {counted(number, 'session')}{own}; {situation.words}")
    asked = "" if situation.interactive else "denied, because headless runs can't ask"
    yield from columns(
        [
            (f"{counts.allow:,}", "allow", ""),
            (f"{counts.ask_user:,}", "ask_user", asked),
            (f"{counts.deny:,}", "deny", ""),
            (f"{counts.not_offered:,}", "not offered", "the tool is hidden from the model"),
            *(
                [(f"{counts.tool_refuses:,}", "refused", "rejected by the tools themselves")]
                if counts.tool_refuses
                else []
            ),
        ],
        numbers=frozenset({0}),
    )
    if counts.unknown:
        names = (f"{name} {count:,}" for name, count in counts.unknown.items())
        yield clean_line(f"tools that the current Gemini CLI does not have: {', '.join(names)}")
    for share in counts.by_rule:
        yield Clean("")
        yield visible_line(f"{share.calls:,} {_WORDS[share.decision]} {_by(share)}")
        yield from reference_lines(share.references[:EXAMPLES])


def _by(share: RuleCount) -> str:
    if share.decision is ReplayDecision.TOOL_REFUSES:
        return "by the tool itself, regardless of the policy"
    if share.rule is not None:
        return f"by {_sourced(share.rule)}"
    if share.decision is ReplayDecision.NOT_OFFERED:
        return "by no rule: the tool is not available in this situation"
    return "by no rule: the approval mode or Gemini CLI itself decides"


def reference_lines(references: Iterable[Reference]) -> Iterator[Clean]:
    """Yield one line for each call, with its session, tool and argument."""
    rows = [(each.session[:8], each.tool, command_line(each.argument)) for each in references]
    for line in columns(rows):
        yield Clean(f"    {line}")
