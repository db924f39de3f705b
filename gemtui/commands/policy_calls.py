"""`gemtui policy explain`, `replay`, `suggest`: apply policies to tool calls."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import orjson

from gemtui.agents import Agent
from gemtui.commands.output import (
    columns,
    json_to_stdout,
    lines_to_stdout,
    note,
    require_writable,
    terminal_width,
    there_already,
    to_file,
)
from gemtui.commands.policy_options import (
    CallSelection,
    SelectedCalls,
    Situation,
    call_options,
    situation_options,
)
from gemtui.commands.shared_options import force_option, json_option, output_option
from gemtui.jsonin import loads
from gemtui.jsonout import encode, fields
from gemtui.paths import folder_here, gemini_home, typed_path
from gemtui.policy.engine.decide import Explanation
from gemtui.policy.file.policy import of
from gemtui.policy.model.foreign import spelled
from gemtui.policy.model.rules import Decision, RecordedCall, Reference, Rule
from gemtui.policy.suggest.replay import (
    EXAMPLES,
    POWERSHELL,
    ReplayCounter,
    ReplayCounts,
    ReplayDecision,
    RuleCount,
)
from gemtui.policy.suggest.suggest import Evidence, Suggestion, Suggestions
from gemtui.policy.words import rule_source, rule_words, translated_words
from gemtui.runs.effective_policy import EffectivePolicy
from gemtui.text import HOLDS_CONTROLS, clean_line, command_line, counted, visible_line
from gemtui.transcript.tools import args_hold_controls

_CUT = 1000
"""The maximum number of characters of an argument in a report's example."""


# --- explain -------------------------------------------------------------------------------------


@click.command()
@situation_options
@click.option("--tool", metavar="T", required=True, help="The name of the called tool.")
@click.option(
    "--args",
    metavar="JSON",
    default="{}",
    help="The call's arguments as a JSON object; - reads them from stdin.",
)
@click.option("--subagent", metavar="NAME", help="The subagent that makes the call.")
@click.option(
    "--agent",
    type=click.Choice([agent.value for agent in Agent]),
    default=Agent.GEMINI.value,
    help="Whose call it is, with the tool and arguments as this agent names them.",
)
@click.option(
    "--include-directory",
    "include_directories",
    metavar="DIR",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Another folder that tools of the run may use; repeatable.",
)
@json_option
def explain(
    *,
    tool: str,
    args: str,
    subagent: str | None,
    agent: str,
    as_json: bool,
    situation: Situation,
) -> int:
    """Show how a tool call would be decided, and by which rule.

    The answer is for a run that gemtui would start with these policies. Your Gemini CLI policies
    and settings therefore apply, too, and the answer lists their files. Exit code 1 if Gemini CLI
    would ignore one of the files, or a rule in it, or if no tool can have this name.
    """
    call = spelled(Agent(agent), _tool(tool), _arguments(args), subagent or None)
    stands = situation.load_policy(folder_here())
    answer = situation.engine(stands).explain(call)
    if as_json:
        json_to_stdout(_explained(answer, stands))
    else:
        lines_to_stdout(_explanation(answer, stands, situation))
    return situation.report_broken(stands) or int(not answer.possible)


def _tool(name: str) -> str:
    if not name.strip():
        raise click.UsageError("--tool is empty: name a tool, such as run_shell_command")
    return name


def _arguments(text: str) -> Mapping[str, Any]:
    """Parse a call's arguments from JSON text, or from stdin if the text is `-`.

    stdin is needed for more than 128 KiB, which is the limit for one argument of a command.
    """
    such = """write one, such as '{"command": "ls"}'"""
    data = (
        sys.stdin.buffer.read()
        if text == "-" and sys.stdin
        else text.encode("utf-8", "surrogatepass")
    )
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
    decisions = ("decision", "headless", "interactive")
    return {
        **fields(answer.call, "agent", "tool", "args", "subagent"),
        "own": answer.call.own or None,
        **fields(answer, "mode", "offered", "because", "message", "tool_refuses"),
        **(fields(answer, *decisions) if answer.possible else dict.fromkeys(decisions)),
        "rule": rule_dict(answer.rule),
        "considered": [
            {"rule": rule_dict(trial.rule), **fields(trial, "matches", "why")}
            for trial in answer.considered
        ],
        "files": (*stands.files, *stands.admin),
    }


def _sourced(rule: Rule) -> str:
    return f"{rule_source(rule)}: {rule_words(rule)}"


def _explanation(
    answer: Explanation, stands: EffectivePolicy, situation: Situation
) -> Iterator[str]:
    call = answer.call
    if args_hold_controls(call.args):
        yield f"{HOLDS_CONTROLS}:"
    arguments = encode(call.args).decode()[: _CUT // 2]
    yield visible_line(
        f"{call.tool} {arguments}" + (f" by {call.subagent}" if call.subagent else "")
    )
    facts = [("situation", situation.words), *_decision_facts(answer, situation)]
    if call.is_foreign:
        facts.insert(0, ("translated", translated_words(call.agent, call.own, call.tool)))
    if answer.message:
        facts.append(("message", answer.message))
    if answer.tool_refuses:
        facts.append(("the tool", f"rejects it: {answer.tool_refuses}"))
    files = [*stands.files, *stands.admin]
    facts += [("files" if at == 0 else "", str(path)) for at, path in enumerate(files)]
    yield from columns(facts if files else [*facts, ("files", "none")], room=terminal_width())
    if answer.considered:
        yield ""
        yield from columns(
            [("", "EFFECTIVE", "DECISION", "RULE", "WHY")]
            + [
                (
                    "*" if trial.matches else "",
                    f"{trial.rule.effective:g}",
                    trial.rule.decision.value,
                    rule_source(trial.rule),
                    trial.why,
                )
                for trial in answer.considered
            ],
            numbers=frozenset({1}),
            room=terminal_width(),
        )


def _decision_facts(answer: Explanation, situation: Situation) -> Iterator[tuple[str, str]]:
    if not answer.possible:
        yield "decision", "none, because Gemini CLI never makes this call"
        yield "because", answer.because
        return
    unseen = "no: the tool is hidden from the model, and calls to it fail as “not found”"
    yield "decision", f"{answer.decision}{_as_refusal(answer, situation)}"
    yield "because", answer.because
    if answer.rule:
        yield "rule", _sourced(answer.rule)
    yield "offered", "yes" if answer.offered else unseen
    yield "headless", answer.headless.value
    yield "interactive", answer.interactive.value


def _as_refusal(answer: Explanation, situation: Situation) -> str:
    refused = answer.decision is Decision.ASK_USER and not situation.interactive
    return ": denied, because headless runs can't ask" if refused else ""


# --- replay --------------------------------------------------------------------------------------


@click.command("replay")
@situation_options
@call_options
@json_option
def replay_command(*, situation: Situation, which: CallSelection, as_json: bool) -> int:
    """Replay recorded tool calls, and count how many a policy would allow, ask about, and deny.

    By default, the calls of the current folder's project are replayed, or all calls if it has none,
    including those of subagents. Exit code 1 if there are none.
    """
    read = which.read()
    stands = situation.load_policy(read.workspace)
    run = ReplayCounter(situation.engine(stands))
    for calls in read.calls():
        run.feed(calls)
    counts = run.counts()
    if as_json:
        json_to_stdout(_counts_json(counts, read, situation))
    elif counts.calls:
        lines_to_stdout(_numbers(counts, read, situation))
    code = situation.report_broken(stands)
    if not counts.calls:
        return _none_found(read)
    read.report_problems()
    return code


def _none_found(read: SelectedCalls) -> int:
    """Report that there are no recorded calls, and return the exit code 1."""
    read.report_problems()
    note("no recorded tool calls: list all sessions with gemtui sessions --everywhere")
    return 1


def _counts_json(counts: ReplayCounts, read: SelectedCalls, situation: Situation) -> dict[str, Any]:
    """Return the counts for JSON, where a refusal by the tool itself is a "deny"."""
    by_rule = []
    for share in counts.by_rule:
        tool_refuses = share.decision is ReplayDecision.TOOL_REFUSES
        examples = [recorded_json(recorded) for recorded in share.examples]
        by_rule.append(
            {
                "rule": rule_dict(share.rule),
                "decision": "deny" if tool_refuses else share.decision.value,
                "tool_refuses": tool_refuses,
                "calls": share.calls,
                "examples": examples,
            }
        )
    names = ("calls", "allow", "ask_user", "tool_refuses", "not_offered", "not_checked")
    return {
        **fields(situation, "mode", "interactive"),
        **fields(counts, *names),
        "sessions": len(read.sessions),
        "by_subagents": read.by_subagents,
        "deny": counts.deny + counts.tool_refuses,
        "unknown_tools": dict(counts.unknown),
        "translated": [
            {**each._asdict(), "calls": calls} for each, calls in counts.translated.items()
        ],
        "by_rule": by_rule,
    }


def rule_dict(rule: Rule | None) -> dict[str, Any] | None:
    """Return a rule's source, number and priorities, for JSON reports.

    Returns None if `rule` is None.
    """
    if rule is None:
        return None
    return fields(rule, "source", "index", "tier", "priority", "effective")


def recorded_json(recorded: RecordedCall) -> dict[str, Any]:
    """Return a recorded call for a report, as rules see it.

    `own` is the name by which another agent than Gemini CLI calls the tool; null for Gemini CLI.
    """
    call = recorded.call
    return {
        "session": recorded.session,
        **fields(call, "agent", "tool"),
        "own": call.own or None,
        "args": _shortened(call.args),
    }


def _shortened(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call's arguments with long strings cut and marked by `…`."""
    return {
        name: f"{value[:_CUT]}…" if isinstance(value, str) and len(value) > _CUT else value
        for name, value in args.items()
    }


_WORDS = {
    ReplayDecision.ALLOW: "allow",
    ReplayDecision.ASK_USER: "ask_user",
    ReplayDecision.DENY: "deny",
    ReplayDecision.NOT_OFFERED: "not offered",
    ReplayDecision.TOOL_REFUSES: "refused",
    ReplayDecision.NOT_CHECKED: "not checked",
}


def _numbers(counts: ReplayCounts, read: SelectedCalls, situation: Situation) -> Iterator[str]:
    own = f", {read.by_subagents:,} of them by subagents" if read.by_subagents else ""
    number = len(read.sessions)
    yield (
        f"{counted(counts.calls, 'tool call')} of {counted(number, 'session')}{own}; "
        f"{situation.words}"
    )
    rare = [
        (f"{counts.tool_refuses:,}", "refused", "rejected by the tools themselves"),
        (f"{counts.not_checked:,}", "not checked", POWERSHELL),
    ]
    asked = "" if situation.interactive else "denied, because headless runs can't ask"
    yield from columns(
        [
            (f"{counts.allow:,}", "allow", ""),
            (f"{counts.ask_user:,}", "ask_user", asked),
            (f"{counts.deny:,}", "deny", ""),
            (f"{counts.not_offered:,}", "not offered", "the tool is hidden from the model"),
            *(row for row in rare if row[0] != "0"),
        ],
        numbers=frozenset({0}),
    )
    if counts.unknown:
        names = (f"{name} {count:,}" for name, count in counts.unknown.items())
        yield clean_line(f"tools that the current Gemini CLI does not have: {', '.join(names)}")
    if counts.translated:
        names = (
            f"{translated_words(*each)} {count:,}" for each, count in counts.translated.items()
        )
        yield clean_line(f"translated for the rules: {', '.join(names)}")
    for share in counts.by_rule:
        yield ""
        yield visible_line(f"{share.calls:,} {_WORDS[share.decision]} {_by(share)}")
        yield from reference_lines(share.references[:EXAMPLES])


def _by(share: RuleCount) -> str:
    if share.decision is ReplayDecision.TOOL_REFUSES:
        return "by the tool itself, regardless of the policy"
    if share.decision is ReplayDecision.NOT_CHECKED:
        return f"because {POWERSHELL}"
    if share.rule is not None:
        return f"by {_sourced(share.rule)}"
    if share.decision is ReplayDecision.NOT_OFFERED:
        return "by no rule: the tool is not available in this situation"
    return "by no rule: the approval mode or the agent itself decides"


def reference_lines(references: Iterable[Reference]) -> Iterator[str]:
    """Yield one line for each call, with its session, tool and argument."""
    rows = [
        (reference.session[:8], reference.tool, command_line(reference.argument))
        for reference in references
    ]
    for line in columns(rows):
        yield f"    {line}"


# --- suggest -------------------------------------------------------------------------------------


@click.command("suggest")
@situation_options
@call_options
@output_option("Write the rules to FILE as a new policy, with the evidence for each as a comment.")
@force_option
@json_option
def suggest_command(
    *, situation: Situation, which: CallSelection, output: Path | None, force: bool, as_json: bool
) -> int:
    """Suggest rules that allow recorded calls that succeeded; nothing is applied.

    Calls that are already allowed need no rule. Commands that could delete, change permissions,
    publish, or run any program get no rule and are listed. Exit code 1 if there are no recorded
    calls.
    """
    if output is not None:
        require_writable(output, keep=[gemini_home()], force=force)
        if not force and typed_path(output).is_symlink():
            raise click.UsageError(there_already(output))
    read = which.read()
    stands = situation.load_policy(read.workspace)
    evidence = Evidence(
        stands.policy, mode=situation.mode, interactive=situation.interactive, setup=stands.setup
    )
    for calls in read.calls():
        evidence.feed(calls)
    suggestions = evidence.suggest()
    if output is not None and suggestions.suggestions:
        data = "\n".join(map(_with_evidence, suggestions.suggestions)).encode("utf-8", "replace")
        to_file(output, [data], keep=[gemini_home()], force=force)
    if as_json:
        json_to_stdout(_suggestions_json(suggestions, situation))
    elif suggestions.calls:
        lines_to_stdout(_suggestion_lines(suggestions, situation, output))
    code = situation.report_broken(stands)
    if not suggestions.calls:
        return _none_found(read)
    read.report_problems()
    if output is not None and not suggestions.suggestions:
        note(f"there are no rules to suggest: {output} was not written")
    return code


def _suggestions_json(found: Suggestions, situation: Situation) -> dict[str, Any]:
    return {
        **fields(situation, "mode", "interactive"),
        **fields(found, "calls", "succeeded", "allowed"),
        "suggestions": [
            {
                "rule": _rule_fields(suggestion.rule),
                "toml": _toml(suggestion.rule),
                **fields(suggestion, "about", "calls", "sessions", "opens"),
                "examples": _examples(suggestion.examples),
            }
            for suggestion in found.suggestions
        ],
        "left_out": [
            fields(left, "what", "why", "calls") | {"examples": _examples(left.examples)}
            for left in found.left_out
        ],
    }


def _examples(references: Sequence[Reference]) -> list[dict[str, Any]]:
    return [fields(reference, "session", "tool", "argument") for reference in references]


def _rule_fields(rule: Rule) -> dict[str, Any]:
    """Return a rule's fields for JSON, with the names used in policy files."""
    prefixes, tools = list(rule.command_prefixes), list(rule.tools)
    keys = {
        "toolName": tools if rule.tool_list else tools[0],
        "commandPrefix": prefixes if rule.prefix_list else next(iter(prefixes), None),
        "argsPattern": rule.args_pattern,
        "decision": rule.decision.value,
        "priority": int(rule.priority),
        "modes": list(rule.modes),
    }
    return {name: value for name, value in keys.items() if value is not None}


def _with_evidence(each: Suggestion) -> str:
    lines = [f"{_times(each)}, such as:"]
    lines += [
        f"  {reference.tool} {command_line(reference.argument)}" for reference in each.examples
    ]
    lines.append(f"It also allows {each.opens}.")
    comments = "".join(f"# {visible_line(line).strip()}\n" for line in lines)
    return comments + _toml(each.rule)


def _toml(rule: Rule) -> str:
    return of([rule]).to_toml().strip() + "\n"


def _times(each: Suggestion) -> str:
    return f"{counted(each.calls, 'call')} in {counted(each.sessions, 'session')}"


def _suggestion_lines(
    found: Suggestions, situation: Situation, output: Path | None
) -> Iterator[str]:
    rest = found.succeeded - found.allowed
    yield (
        f"{counted(found.calls, 'tool call')}, {found.succeeded:,} succeeded; {found.allowed:,} "
        f"of these are already allowed, and {rest:,} would be denied; {situation.words}"
    )
    for suggestion in found.suggestions:
        yield ""
        yield visible_line(f"allow {suggestion.about}")
        yield f"    {_times(suggestion)}, priority {suggestion.rule.priority:g}"
        yield _indented(f"it also allows: {suggestion.opens}")
        yield from reference_lines(suggestion.examples)
    if found.left_out:
        yield ""
        yield "No rule suggested for:"
    for left in found.left_out:
        yield _indented(f"{counted(left.calls, 'call')}: {command_line(left.what)}: {left.why}")
    if found.suggestions:
        yield ""
        written = "use --output FILE to write these rules to a policy file"
        yield clean_line(written if output is None else f"rules written to {output}")


def _indented(text: str) -> str:
    return f"    {visible_line(text).strip()}"
