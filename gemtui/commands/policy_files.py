"""`gemtui policy list`, `show` and `check`: print policy files as text or as JSON."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from gemtui.commands.output import columns, json_to_stdout, lines_to_stdout, note, terminal_width
from gemtui.commands.policy_calls import CallSelection
from gemtui.commands.policy_tests import (
    example_findings,
    example_json,
    replay_json,
    replay_lines,
    replay_since,
    try_files,
)
from gemtui.errors import PolicyError
from gemtui.files import is_file, is_folder
from gemtui.paths import current_folder, folder_here, typed_path
from gemtui.policy.check.check_policy import check_files
from gemtui.policy.edit.document import Document, RuleEntry
from gemtui.policy.edit.store import Opened, Origin, PolicyFile, list_policies, open_policy
from gemtui.policy.file.policy_files import ENDING, find_policy, policies_dir
from gemtui.policy.file.rule_codec import explicit_fields
from gemtui.policy.model.rules import ApprovalMode, Finding, Rule, Severity
from gemtui.policy.model.tool_catalog import BUILT_IN
from gemtui.policy.sentence_parser import sentence_of
from gemtui.policy.words import decision_word, rule_words
from gemtui.runs.effective_policy import effective_policy
from gemtui.text import Clean, counted, one_line

_WHOSE = {
    Origin.OURS: "gemtui",
    Origin.USER: "Gemini CLI",
    Origin.SETTINGS: "settings",
    Origin.ADMIN: "admin",
    Origin.FILE: "file",
}


# --- list ----------------------------------------------------------------------------------------


def print_policies(*, as_json: bool) -> int:
    """Print all policies with their numbers of rules and findings.

    Returns 1 if there are problems with the settings.
    """
    stands, here = effective_policy(workspace=folder_here()), current_folder()
    named = stands.settings.policy_paths(here)
    listed = list_policies(named, stands.settings.admin_policies(here))
    found = [_described(file, bool(named)) for file in listed]
    if as_json:
        built_in = [{"mode": mode.value, "words": words} for mode, words in BUILT_IN.items()]
        report = {"version": 1, "place": str(policies_dir()), "policies": found}
        json_to_stdout({**report, "built_in": built_in})
        return _noted(stands.problems)
    if found:
        head = ("NAME", "RULES", "FINDINGS", "OF", "FILE")
        rows = ((one["name"], *_counts(one), _whose(one), one["path"]) for one in found)
        lines_to_stdout(columns([head, *rows], numbers=frozenset({1})))
        lines_to_stdout([Clean("")])
    lines_to_stdout(_built_in())
    if not any(one["origin"] == Origin.OURS for one in found):
        note(f"no gemtui policies in {policies_dir()} yet: create one in the app, in pane 3")
    return _noted(stands.problems)


def _noted(problems: Sequence[str]) -> int:
    """Report problems with the settings; return the exit code, 1 if there are any."""
    for problem in problems:
        note(problem)
    return 1 if problems else 0


def _described(file: PolicyFile, replaced: bool) -> dict[str, Any]:
    """Return a policy's JSON object in the output of `gemtui policy list`.

    `replaced`: whether the settings contain a list of policy paths, which replaces the user's
    policy folder. The result's key `loaded` says whether the CLI loads the policy in every session.
    """
    try:
        document = open_policy(file).document
        counted, rules = _counted(document.findings), sum(each.enabled for each in document.rules)
        problem = None
    except PolicyError as error:
        counted, rules, problem = (0, 0), 0, str(error)
    return {
        "name": file.name,
        "path": str(file.path),
        "origin": file.origin.value,
        "read_only": file.read_only or None,
        "loaded": file.origin is not Origin.OURS and not (file.origin is Origin.USER and replaced),
        "rules": rules,
        "errors": counted[0],
        "warnings": counted[1],
        "problem": problem,
    }


def _counts(one: Mapping[str, Any]) -> tuple[str, str]:
    words = _summed(one["errors"], one["warnings"])
    return str(one["rules"]), "can't be read" if one["problem"] else words or "none"


def _whose(one: Mapping[str, Any]) -> str:
    marks = ["read-only"] if one["read_only"] else []
    if one["origin"] == Origin.USER and not one["loaded"]:
        marks.append("not loaded: replaced by policyPaths in the settings")
    whose = _WHOSE[Origin(one["origin"])]
    return f"{whose} ({', '.join(marks)})" if marks else whose


def _built_in() -> Iterator[Clean]:
    yield Clean("Gemini CLI's built-in rules, which have a lower priority, by approval mode:")
    for line in columns([(mode.value, words) for mode, words in BUILT_IN.items()]):
        yield Clean(f"  {line}")


# --- show ----------------------------------------------------------------------------------------


def print_policy(name: str, *, as_json: bool) -> int:
    """Print the rules of one policy; return 1 if they can't be read.

    Raises PolicyNotFound.
    """
    opened = open_policy(find_policy(name))
    document = opened.document
    if as_json:
        json_to_stdout(_shown(opened))
    else:
        lines_to_stdout(_table(document))
        errors, warnings = _counted(document.findings)
        if words := _summed(errors, warnings):
            note(f"{words}: see gemtui policy check {name}")
    errors, _ = _counted(document.findings)
    return 1 if errors and not any(entry.rule for entry in document.rules) else 0


def _shown(opened: Opened) -> dict[str, Any]:
    file, document = opened.file, opened.document
    return {
        "version": 1,
        "name": file.name,
        "path": str(file.path),
        "origin": file.origin.value,
        "read_only": file.read_only or None,
        "locked": document.locked or None,
        "rules": [_entry(entry) for entry in document.rules],
        "findings": [_finding(each) for each in document.findings],
        "text": document.text,
    }


def _entry(entry: RuleEntry) -> dict[str, Any]:
    """Return a rule's JSON object in the output of `gemtui policy show --json`.

    The result's key `fields` contains the fields as in the file; null if the rule can't be read.
    `sentence` is a sentence from which `gemtui policy words` would create such a rule; null if
    there is none.
    """
    rule = entry.rule
    return {
        "index": rule.index if rule else 0,
        "enabled": entry.enabled,
        "line": entry.line,
        "effective": rule.effective if rule else None,
        "fields": _plain(explicit_fields(rule)) if rule else None,
        "sentence": (sentence_of(rule) or None) if rule else None,
    }


def _plain(value: Any) -> Any:
    """Convert a TOML value to JSON; times and non-finite numbers become strings."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    return value if isinstance(value, float) and value - value == 0 else str(value)


def _table(document: Document) -> Iterator[Clean]:
    """Yield a table of rules in the order in which they are tried, then disabled ones."""
    rules = [(entry.rule, entry.enabled) for entry in document.rules if entry.rule]
    on = sorted((rule for rule, on in rules if on), key=lambda rule: -rule.effective)
    off = [rule for rule, on in rules if not on]
    if on or off:
        rows = [_row(str(rule.index), rule) for rule in on] + [_row("off", rule) for rule in off]
        head = ("RULE", "PRIORITY", "DECISION", "WHAT")
        yield from columns([head, *rows], numbers=frozenset({0, 1}), room=terminal_width())


def _row(number: str, rule: Rule) -> tuple[str, ...]:
    return number, f"{rule.priority:g}", decision_word(rule.decision), rule_words(rule)


# --- check ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest:
    """A request to `gemtui policy check` to also replay recorded calls.

    `since`: only calls made since this time. `which`: the sessions whose calls to use. `mode`: the
    approval mode to assume.
    """

    since: datetime
    which: CallSelection
    mode: ApprovalMode


def print_findings(files: Sequence[str], *, strict: bool, as_json: bool, replay: ReplayRequest | None = None) -> int:
    """Print the findings; return 1 on errors and, with `strict`, on warnings.

    An example in a policy that fails counts as an error. With `replay`, the result is also 1 if
    calls that succeeded would now be denied. Raises PolicyNotFound, and errors that occur while
    sessions are being read.
    """
    paths = [_path(each) for each in files]
    examples = try_files(paths)
    found = (*check_files(paths), *example_findings(examples))
    past = replay and replay_since(paths, replay.which, replay.since, replay.mode)
    if as_json:
        report = {
            "version": 1,
            "findings": [_finding(each) for each in found],
            "examples": [example_json(each) for each in examples],
            "replay": replay_json(past) if past else None,
        }
        json_to_stdout(report)
    else:
        lines_to_stdout(map(_line, found))
        if past:
            lines_to_stdout(replay_lines(past))
        note(_summed(*_counted(found)) or "no problems found: Gemini CLI reads this policy as intended")
        if examples:
            passed = sum(each.tried.passes for each in examples)
            note(f"{passed:,} of {counted(len(examples), 'example')} passed")
    if past:
        past.read.report_problems()
    bad = any(strict or each.severity is Severity.ERROR for each in found)
    return 1 if bad or (past and past.denied) else 0


def _path(wanted: str) -> Path:
    """Return the path of the policy that the user named or typed as a path.

    A typed path is returned even if it doesn't exist; a finding then reports that.
    """
    if not wanted.strip():
        raise click.UsageError("FILE is empty: give a policy's name, a file or a folder")
    path = typed_path(wanted)
    if os.sep in wanted or wanted.endswith(ENDING) or is_folder(path):
        ours = policies_dir() / wanted
        return ours if not os.path.lexists(path) and is_file(ours) else path
    return find_policy(wanted)


def _finding(finding: Finding) -> dict[str, Any]:
    """Return a finding's JSON object in the output of `gemtui policy check --json`."""
    return {
        "file": str(finding.file),
        "rule": finding.rule,
        "field": finding.field,
        "severity": finding.severity.value,
        "message": _message(finding),
    }


def _message(finding: Finding) -> str:
    return f"{finding.message}: {finding.way_out}" if finding.way_out else finding.message


def _line(finding: Finding) -> Clean:
    """Return a line such as `work.toml: rule 3, toolName: error: PROBLEM: SOLUTION`."""
    place = ", ".join(filter(None, (f"rule {finding.rule}" * bool(finding.rule), finding.field)))
    words = (str(finding.file), place, finding.severity.value, _message(finding))
    return one_line(": ".join(filter(None, words)))


def _counted(findings: Sequence[Finding]) -> tuple[int, int]:
    """Return the number of errors and the number of warnings."""
    errors = sum(each.severity is Severity.ERROR for each in findings)
    return errors, len(findings) - errors


def _summed(errors: int, warnings: int) -> str:
    """Return the numbers of findings in words: `2 errors, 1 warning`; "" for none."""
    parts = ((errors, "error"), (warnings, "warning"))
    return ", ".join(counted(count, word) for count, word in parts if count)
