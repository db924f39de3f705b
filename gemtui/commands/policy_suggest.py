"""`gemtui policy suggest`: suggest rules that allow agents' successful calls."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from gemtui.commands.output import json_to_stdout, lines_to_stdout, note, to_file
from gemtui.commands.policy_calls import CallSelection, none_found, read_which, reference_lines
from gemtui.commands.policy_context import Situation, report_broken
from gemtui.paths import gemini_home, typed_path
from gemtui.policy.file.policy import of
from gemtui.policy.model.rules import Reference, Rule
from gemtui.policy.suggest.suggest import Evidence, LeftOut, Suggestion, Suggestions
from gemtui.text import Clean, clean_line, command_line, counted, visible_line


def run(situation: Situation, which: CallSelection, *, output: Path | None, force: bool = False, as_json: bool) -> int:
    """Print the suggested rules, or write them to the policy file `output`.

    `situation`: the run for which to suggest rules. `which`: the recorded calls to use. `force`:
    replace an existing file. Returns 1 if there are no calls, or if the CLI ignores one of the
    policies.
    """
    if output is not None and not force and os.path.lexists(typed_path(output)):
        raise click.UsageError(f"{output} exists: name another file, or replace it with --force")
    read = read_which(which)
    stands = situation.load_policy(read.workspace)
    evidence = Evidence(stands.policy, mode=situation.approval, interactive=situation.interactive, setup=stands.setup)
    for calls in read.calls():
        evidence.feed(calls)
    found = evidence.suggest()
    if output is not None and found.suggestions:
        data = "\n".join(map(_with_evidence, found.suggestions)).encode("utf-8", "replace")
        to_file(output, [data], keep=[gemini_home()], force=force)
    if as_json:
        json_to_stdout(_report(found, situation))
    elif found.calls:
        lines_to_stdout(_lines(found, situation, output))
    code = report_broken(stands, situation.named)
    if not found.calls:
        return none_found(read)
    read.report_problems()
    if output is not None and not found.suggestions:
        note(f"there are no rules to suggest: {output} was not written")
    return code


# --- JSON ----------------------------------------------------------------------------------------


def _report(found: Suggestions, situation: Situation) -> dict[str, Any]:
    return {
        "version": 1,
        "mode": situation.mode,
        "interactive": situation.interactive,
        "calls": found.calls,
        "succeeded": found.succeeded,
        "allowed": found.allowed,
        "suggestions": [_suggested(each) for each in found.suggestions],
        "left_out": [_left(each) for each in found.left_out],
    }


def _suggested(each: Suggestion) -> dict[str, Any]:
    return {
        "rule": _fields(each.rule),
        "about": each.about,
        "toml": _toml(each.rule),
        "calls": each.calls,
        "sessions": each.sessions,
        "examples": _examples(each.examples),
        "opens": each.opens,
    }


def _fields(rule: Rule) -> dict[str, Any]:
    """Return a rule's fields for JSON, with the names used in policy files."""
    prefixes, tools = list(rule.command_prefixes), list(rule.tools)
    fields = {
        "toolName": tools if rule.tool_list else tools[0],
        "commandPrefix": prefixes if rule.prefix_list else next(iter(prefixes), None),
        "argsPattern": rule.args_pattern,
        "decision": rule.decision.value,
        "priority": int(rule.priority),
        "modes": list(rule.modes),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _left(each: LeftOut) -> dict[str, Any]:
    return {"what": each.what, "why": each.why, "calls": each.calls, "examples": _examples(each.examples)}


def _examples(references: Sequence[Reference]) -> list[dict[str, str]]:
    return [{"session": each.session, "tool": each.tool, "argument": each.argument} for each in references]


# --- a policy file -------------------------------------------------------------------------------


def _with_evidence(each: Suggestion) -> str:
    said = [f"{_times(each)}, such as:"]
    said += [f"  {reference.tool} {command_line(reference.argument)}" for reference in each.examples]
    said.append(f"It also allows {each.opens}.")
    comments = "".join(f"# {visible_line(line).strip()}\n" for line in said)
    return comments + _toml(each.rule)


def _toml(rule: Rule) -> str:
    return of([rule]).to_toml().strip() + "\n"


# --- text ----------------------------------------------------------------------------------------


def _times(each: Suggestion) -> str:
    return f"{counted(each.calls, 'call')} in {counted(each.sessions, 'session')}"


def _lines(found: Suggestions, situation: Situation, output: Path | None) -> Iterator[Clean]:
    rest = found.succeeded - found.allowed
    yield Clean(
        f"{counted(found.calls, 'tool call')}, {found.succeeded:,} succeeded; {found.allowed:,} "
        f"of these are already allowed, and {rest:,} would be denied; {situation.words}"
    )
    for each in found.suggestions:
        yield Clean("")
        yield visible_line(f"allow {each.about}")
        yield Clean(f"    {_times(each)}, priority {each.rule.priority:g}")
        yield _indented(f"it also allows: {each.opens}")
        yield from reference_lines(each.examples)
    if found.left_out:
        yield Clean("")
        yield Clean("No rule suggested for:")
    for left in found.left_out:
        yield _indented(f"{counted(left.calls, 'call')}: {command_line(left.what)}: {left.why}")
    if found.suggestions:
        yield Clean("")
        written = "use --output FILE to write these rules to a policy file"
        yield clean_line(written if output is None else f"rules written to {output}")


def _indented(text: str) -> Clean:
    return Clean(f"    {visible_line(text).strip()}")
