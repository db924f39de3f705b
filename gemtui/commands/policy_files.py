"""`gemtui policy list`, `show` and `check`: print policy files as text or as JSON."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from gemtui.agent.trust import folder_settings
from gemtui.agents import Agent
from gemtui.commands.output import columns, json_to_stdout, lines_to_stdout, note, terminal_width
from gemtui.commands.policy_calls import recorded_json, reference_lines, rule_dict
from gemtui.commands.policy_options import (
    CallSelection,
    SelectedCalls,
    call_options,
    find_listed,
    mode_option,
    policy_arguments,
)
from gemtui.commands.shared_options import Moment, json_option, policy_names
from gemtui.errors import PolicyError
from gemtui.files import is_file, is_folder
from gemtui.jsonout import fields
from gemtui.paths import current_folder, folder_here, typed_path
from gemtui.policy.check.check_policy import check_files
from gemtui.policy.edit.document import Document, RuleEntry
from gemtui.policy.edit.store import OpenedPolicy, Origin, PolicyFile, list_policies, open_policy
from gemtui.policy.engine.decide import Engine, Setup
from gemtui.policy.examples import Tried, examples_of, try_examples
from gemtui.policy.file.policy import Policy, text_at
from gemtui.policy.file.policy_files import ENDING, policies_dir, policy_files
from gemtui.policy.file.rule_codec import explicit_fields
from gemtui.policy.model.rules import (
    ApprovalMode,
    CallStatus,
    Finding,
    RecordedCall,
    Reference,
    Rule,
    Severity,
)
from gemtui.policy.model.tool_catalog import BUILT_IN
from gemtui.policy.sentence_parser import sentence_of
from gemtui.policy.suggest.replay import (
    POWERSHELL,
    ReplayDecision,
    replayed,
    tool_may_exist,
)
from gemtui.policy.suggest.saved_rules import AUTO_SAVED, SavedRules, saved_findings
from gemtui.policy.words import decision_word, rule_place, rule_words
from gemtui.runs.effective_policy import effective_policy
from gemtui.text import counted, one_line

_WHOSE = {
    Origin.OURS: "gemtui",
    Origin.USER: "Gemini CLI",
    Origin.SETTINGS: "settings",
    Origin.ADMIN: "admin",
    Origin.FILE: "file",
}


_DENIED = (ReplayDecision.DENY, ReplayDecision.NOT_OFFERED, ReplayDecision.TOOL_REFUSES)
_LISTED = 50
"""The maximum number of denied calls to list; the rest are only counted."""


# --- list ----------------------------------------------------------------------------------------


@click.command(name="list")
@json_option
def list_(as_json: bool) -> int:
    """List gemtui's policies, your Gemini CLI policies, and those that its settings name."""
    stands, folder = effective_policy(workspace=folder_here()), current_folder()
    named = stands.settings.policy_paths(folder)
    listed = list_policies(named, stands.settings.admin_policies(folder))
    policies = [_described(file, bool(named)) for file in listed]
    if as_json:
        built_in = [{"mode": mode.value, "words": text} for mode, text in BUILT_IN.items()]
        report = {"place": str(policies_dir()), "policies": policies}
        json_to_stdout({**report, "built_in": built_in})
        return _noted(stands.problems)
    if policies:
        head = ("NAME", "RULES", "FINDINGS", "OF", "FILE")
        rows = ((one["name"], *_counts(one), _whose(one), one["path"]) for one in policies)
        lines = columns([head, *rows], numbers=frozenset({1}))
        lines_to_stdout(lines, links=[Path(one["path"]) for one in policies])
        lines_to_stdout([""])
    lines_to_stdout(_built_in())
    if not any(one["origin"] == Origin.OURS for one in policies):
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
        counted, rules = _counted(document.findings), sum(entry.enabled for entry in document.rules)
        problem = None
    except PolicyError as error:
        counted, rules, problem = (0, 0), 0, str(error)
    return {
        **fields(file, "name", "path", "origin"),
        "read_only": file.read_only or None,
        "loaded": file.origin is not Origin.OURS and not (file.origin is Origin.USER and replaced),
        "rules": rules,
        "errors": counted[0],
        "warnings": counted[1],
        "problem": problem,
    }


def _counts(one: Mapping[str, Any]) -> tuple[str, str]:
    findings = _summed(one["errors"], one["warnings"])
    return str(one["rules"]), "can't be read" if one["problem"] else findings or "none"


def _whose(one: Mapping[str, Any]) -> str:
    marks = ["read-only"] if one["read_only"] else []
    if one["origin"] == Origin.USER and not one["loaded"]:
        marks.append("not loaded: replaced by policyPaths in the settings")
    whose = _WHOSE[Origin(one["origin"])]
    return f"{whose} ({', '.join(marks)})" if marks else whose


def _built_in() -> Iterator[str]:
    yield "Gemini CLI's built-in rules, which have a lower priority, by approval mode:"
    for line in columns([(mode.value, text) for mode, text in BUILT_IN.items()]):
        yield f"  {line}"


# --- show ----------------------------------------------------------------------------------------


@click.command()
@click.argument("name", metavar="NAME|FILE", shell_complete=policy_names)
@json_option
def show(name: str, as_json: bool) -> int:
    """Print the rules of a policy in the order in which Gemini CLI tries them.

    Rules that are turned off come last. Exit code 1 if no rule can be read.
    """
    opened = open_policy(find_listed(name))
    document = opened.document
    if as_json:
        json_to_stdout(_shown(opened))
    else:
        lines_to_stdout(_table(document))
        errors, warnings = _counted(document.findings)
        findings = _summed(errors, warnings)
        if findings:
            note(f"{findings}: see gemtui policy check {name}")
    errors, _ = _counted(document.findings)
    return 1 if errors and not any(entry.rule for entry in document.rules) else 0


def _shown(opened: OpenedPolicy) -> dict[str, Any]:
    file, document = opened.file, opened.document
    return {
        **fields(file, "name", "path", "origin"),
        "read_only": file.read_only or None,
        "locked": document.locked or None,
        "rules": [_entry(entry) for entry in document.rules],
        "findings": [_finding(finding) for finding in document.findings],
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
    """Convert a TOML value to JSON; non-finite numbers become strings."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    return value if isinstance(value, float) and value - value == 0 else str(value)


def _table(document: Document) -> Iterator[str]:
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


@click.command()
@policy_arguments
@click.option("--strict", is_flag=True, help="Exit with 1 on warnings, too.")
@click.option(
    "--replay",
    "since",
    metavar="DATE",
    type=Moment(),
    help="Also test the policy against successful calls since DATE, such as 30d or 2026-11-20.",
)
@call_options
@mode_option
@json_option
def check(
    *,
    policies: tuple[str, ...],
    strict: bool,
    since: datetime | None,
    which: CallSelection,
    mode: ApprovalMode,
    as_json: bool,
) -> int:
    """Find mistakes in policy files, and test the examples in them.

    NAME|FILE is a policy that `gemtui policy list` shows, a policy file, or a folder of them; by
    default, all files that Gemini CLI loads in this folder are checked. An error is
    something that Gemini CLI ignores, or an example that fails. An example is a comment such as #
    example: deny run_shell_command {"command": "git push"}. A warning is a rule that probably
    doesn't do what you meant, such as one that is easily bypassed, or one in Gemini CLI's
    auto-saved.toml that matches no recorded call. --session, --project, --everywhere and --mode are
    for --replay. Exit code 1 if there are errors, or if --replay finds
    a successful call that would now be denied.
    """
    setup = Setup()
    if not policies:
        loaded = effective_policy(workspace=folder_here())
        setup = replace(setup, gemini_only=loaded.setup.gemini_only)
        paths = [*loaded.files, *loaded.admin]
    else:
        paths = [_path(name) for name in policies]
    examples = _try_files(paths)
    settings = folder_settings(folder_here(), os.environ).merged
    findings = (
        *check_files(paths, settings),
        *_example_findings(examples),
        *_saved_findings(paths),
    )
    past = None
    if since is not None:
        past = _replayed(which, since, Engine(Policy.load(paths), mode=mode, setup=setup))
    if as_json:
        report = {
            "findings": [_finding(finding) for finding in findings],
            "examples": [_example_json(example) for example in examples],
            "replay": _replay_json(past) if past else None,
        }
        json_to_stdout(report)
    else:
        lines_to_stdout(map(_line, findings))
        if past:
            lines_to_stdout(_replay_lines(past))
        if not paths:
            note("Gemini CLI loads no policy files here: name one of those in gemtui policy list")
        else:
            note(
                _summed(*_counted(findings))
                or "no problems found: Gemini CLI reads this policy as intended"
            )
        if examples:
            passed = sum(example.tried.passes for example in examples)
            note(f"{passed:,} of {counted(len(examples), 'example')} passed")
    if past:
        past.read.report_problems()
    bad = any(strict or finding.severity is Severity.ERROR for finding in findings)
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
    return find_listed(wanted)


def _finding(finding: Finding) -> dict[str, Any]:
    """Return a finding's JSON object in the output of `gemtui policy check --json`."""
    names = ("file", "rule", "field", "severity", "kind")
    return fields(finding, *names) | {"message": _message(finding)}


def _message(finding: Finding) -> str:
    return f"{finding.message}: {finding.way_out}" if finding.way_out else finding.message


def _line(finding: Finding) -> str:
    """Return a line such as `work.toml: rule 3, toolName: error: PROBLEM: SOLUTION`."""
    position = ", ".join(filter(None, (f"rule {finding.rule}" * bool(finding.rule), finding.field)))
    parts = (str(finding.file), position, finding.severity.value, _message(finding))
    return one_line(": ".join(filter(None, parts)))


def _counted(findings: Sequence[Finding]) -> tuple[int, int]:
    """Return the number of errors and the number of warnings."""
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    return errors, len(findings) - errors


def _summed(errors: int, warnings: int) -> str:
    """Return the numbers of findings in words: `2 errors, 1 warning`; "" for none."""
    parts = ((errors, "error"), (warnings, "warning"))
    return ", ".join(counted(count, word) for count, word in parts if count)


# --- examples in policy files --------------------------------------------------------------------


class _FileExample(Struct, frozen=True, kw_only=True):
    """An example in a policy file, and whether it passes.

    An example is a comment with a call and the expected decision.
    """

    file: Path
    tried: Tried


def _try_files(paths: Sequence[Path]) -> tuple[_FileExample, ...]:
    """Try the examples in policy files; only the rules of an example's own file apply."""
    return tuple(
        _FileExample(file=file, tried=tried)
        for path in paths
        for file in policy_files(path)
        for text in text_at(file)
        for tried in try_examples(examples_of(text), Policy.parse(text, source=str(file)))
    )


def _example_findings(examples: Sequence[_FileExample]) -> Iterator[Finding]:
    """Yield an error for each example that fails or can't be read."""
    for tested in examples:
        tried = tested.tried
        if tried.passes:
            continue
        line, example = f"line {tried.example.line}", tried.example
        problem = example.problem
        if tried.decision is not None:
            by = "no rule" if tried.rule is None else rule_place(tried.rule)
            wanted, got = decision_word(example.expected), decision_word(tried.decision)
            problem = f"expected {wanted}, got {got} by {by}: {example.text.partition(': ')[2]}"
        yield Finding(
            file=tested.file,
            rule=0,
            field="example",
            severity=Severity.ERROR,
            message=f"{line}: {problem}",
        )


def _saved_findings(paths: Sequence[Path]) -> Iterator[Finding]:
    """Yield a warning for each rule that Gemini CLI saved, but that matched no recorded call."""
    files = [file for path in paths for file in policy_files(path) if file.name == AUTO_SAVED]
    if not files:
        return
    read = CallSelection(everywhere=True).read()
    own = (session for session in read.sessions if session.agent is Agent.GEMINI)
    read = replace(read, sessions=tuple(own))
    saved = SavedRules(Policy.load(files).rules)
    for calls in read.calls():
        saved.feed(calls)
    yield from saved_findings(saved.unmatched(), len(read.sessions))


def _example_json(each: _FileExample) -> dict[str, Any]:
    """Return an example's JSON object in the output of `gemtui policy check --json`."""
    example = each.tried.example
    return {
        "file": str(each.file),
        **fields(example, "line", "mode"),
        **fields(each.tried, "decision", "passes"),
        "agent": example.agent,
        "tool": example.tool or None,
        "args": dict(example.args),
        "expected": None if example.problem else example.expected.value,
        "problem": example.problem or None,
    }


# --- recorded calls in checks --------------------------------------------------------------------


class _DeniedCall(Struct, frozen=True, kw_only=True):
    """A call that succeeded at the time, but would be denied now."""

    recorded: RecordedCall
    decision: ReplayDecision
    rule: Rule | None


class _Replayed(Struct, frozen=True, kw_only=True):
    """A policy's decisions for the calls that have succeeded since a given time.

    `read`: the sessions that were read. `calls`: how many calls were decided; `counts` has their
    number by decision. `gone`: how many calls used a tool that no longer exists. `undated`: how
    many calls have no recorded time. Neither is included in `calls`.
    """

    since: datetime
    mode: ApprovalMode
    read: SelectedCalls
    calls: int
    counts: Counter[ReplayDecision]
    denied: tuple[_DeniedCall, ...]
    gone: int
    undated: int


def _replayed(which: CallSelection, since: datetime, engine: Engine) -> _Replayed:
    """Decide the calls that succeeded since a time.

    Raises SessionNotFound, SessionAmbiguous, StoreUnreadable.
    """
    selected = which.read()
    recent = tuple(
        session
        for session in selected.sessions
        if session.updated is None or session.updated >= since
    )
    read = replace(selected, sessions=recent)
    counts: Counter[ReplayDecision] = Counter()
    denied: list[_DeniedCall] = []
    gone = undated = 0
    for recorded in (call for batch in read.calls() for call in batch):
        if recorded.ended is not CallStatus.SUCCEEDED:
            continue
        if recorded.time is None:
            undated += 1
        elif recorded.time < since:
            continue
        elif not recorded.call.is_foreign and not tool_may_exist(recorded.call.tool):
            gone += 1
        else:
            decision, rule = replayed(recorded, engine)
            counts[decision] += 1
            if decision in _DENIED:
                denied.append(_DeniedCall(recorded=recorded, decision=decision, rule=rule))
    return _Replayed(
        since=since,
        mode=engine.mode,
        read=read,
        calls=counts.total(),
        counts=counts,
        denied=tuple(denied),
        gone=gone,
        undated=undated,
    )


def _replay_json(found: _Replayed) -> dict[str, Any]:
    """Return the value of `replay` in the output of `gemtui policy check --json`."""
    return {
        **fields(found, "since", "mode", "undated", succeeded="calls", gone_tools="gone"),
        "sessions": len(found.read.sessions),
        "allow": found.counts[ReplayDecision.ALLOW],
        "ask_user": found.counts[ReplayDecision.ASK_USER],
        "deny": len(found.denied),
        "not_checked": found.counts[ReplayDecision.NOT_CHECKED],
        "denied": [
            {
                **recorded_json(call.recorded),
                "decision": call.decision.value,
                "rule": rule_dict(call.rule),
            }
            for call in found.denied
        ],
    }


def _replay_lines(found: _Replayed) -> Iterator[str]:
    """Yield lines with the number of calls by decision, then the denied calls."""
    since = found.since.astimezone().date().isoformat()
    yield (
        f"{counted(found.calls, 'call')} succeeded since {since}; mode {found.mode.value} would "
        f"now allow {found.counts[ReplayDecision.ALLOW]:,}, ask about "
        f"{found.counts[ReplayDecision.ASK_USER]:,}, and deny {len(found.denied):,}"
    )
    if found.undated:
        yield f"Not tested: {counted(found.undated, 'call')} without a recorded time"
    unchecked = found.counts[ReplayDecision.NOT_CHECKED]
    if unchecked:
        yield f"Not tested: {counted(unchecked, 'command')}; {POWERSHELL}"
    if found.gone:
        yield f"Not tested: {counted(found.gone, 'call')} of tools that no longer exist"
    yield from reference_lines(Reference.to(call.recorded) for call in found.denied[:_LISTED])
    if len(found.denied) > _LISTED:
        yield f"    and {len(found.denied) - _LISTED:,} more"
