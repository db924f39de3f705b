"""`gemtui policy words`: create rules from sentences; print or save them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from gemtui.commands.output import columns, json_to_stdout, lines_to_stdout, note, terminal_width
from gemtui.commands.policy_options import mode_option
from gemtui.commands.shared_options import json_option, policy_names
from gemtui.errors import PolicyNotFound
from gemtui.paths import folder_here
from gemtui.policy.edit.store import create, open_policy, save_policy
from gemtui.policy.engine.decide import Engine
from gemtui.policy.file.policy import of
from gemtui.policy.file.policy_files import find_policy
from gemtui.policy.file.rule_codec import rules_to_toml
from gemtui.policy.model.rules import ApprovalMode, Call, Rule
from gemtui.policy.model.tool_catalog import TOOLS
from gemtui.policy.sentence_parser import Sentence, read_sentences, rules_of
from gemtui.policy.words import decision_word, rule_words
from gemtui.text import counted, short_path, visible_line


@click.command()
@click.argument("sentences", metavar="SENTENCES", nargs=-1, required=True)
@click.option(
    "--write",
    "name",
    metavar="NAME",
    shell_complete=policy_names,
    help="Add the rules to this gemtui policy, creating it if necessary.",
)
@mode_option
@json_option
def words(sentences: tuple[str, ...], name: str | None, mode: ApprovalMode, as_json: bool) -> int:
    """Create rules from sentences such as "edit only src, run tests, never push".

    A sentence starts with allow, ask or deny, or with a word that means the same, such as never;
    without one, it allows. After that comes read or edit, which can be followed by a path; run,
    network or agents; mcp SERVER; the name of a tool; a command; or "everything else". Paths are
    relative to the current folder. For each rule, the output says what it covers and what it can't,
    and what happens to all other calls. Exit code 1 if a sentence describes no rule; then nothing
    is written, and the error names a similar sentence that describes one.
    """
    sentences_read = read_sentences(";".join(sentences), folder_here())
    if not sentences_read:
        raise click.UsageError("no sentence given: write one, such as “allow edit src/**”")
    rules, wrong = (
        rules_of(sentences_read),
        [sentence for sentence in sentences_read if sentence.problem],
    )
    written, added = None, 0
    if name is not None and rules and not wrong:
        written, added = _write(name, rules)
    if as_json:
        json_to_stdout(_report(sentences_read, rules, mode, written))
    else:
        lines_to_stdout(_lines(sentences_read, rules, mode))
    for sentence in wrong:
        note(f"“{sentence.text}”: {sentence.problem}")
    if written is not None:
        note(f"{counted(added, 'rule')} added to {written}")
    return 1 if wrong else 0


def _write(name: str, rules: Sequence[Rule]) -> tuple[str, int]:
    """Add to a policy the rules that it lacks; create the policy if necessary.

    Returns its path and the number of rules added. Raises PolicyError for a policy that can't be
    edited.
    """
    try:
        opened = open_policy(find_policy(name))
    except PolicyNotFound:
        opened = create(name)
    document, missing = opened.document, opened.document.missing_rules(rules)
    for rule in missing:
        document = document.add(rule)
    if missing:
        save_policy(opened, document)
    return short_path(opened.file.path), len(missing)


# --- the answer ----------------------------------------------------------------------------------


def _by_tool(rules: Sequence[Rule], mode: ApprovalMode) -> Iterator[tuple[str, str, bool]]:
    """Yield each tool's name, its decision, and whether the model sees the tool.

    The decision is for a sample call with placeholder arguments, in a headless run in this mode.
    Only `rules` and the CLI's built-in rules apply.
    """
    engine = Engine(of(rules), mode=mode)
    for tool in TOOLS:
        outcome = engine.outcome(Call(tool.name, dict.fromkeys(tool.required, "x")))
        yield tool.name, decision_word(outcome.decision), outcome.offered


def _report(
    sentences: Sequence[Sentence], rules: Sequence[Rule], mode: ApprovalMode, written: str | None
) -> dict[str, Any]:
    return {
        "sentences": [
            {
                "text": sentence.text,
                "rules": [
                    {"words": _said(rule), "priority": rule.priority} for rule in sentence.rules
                ],
                "limits": list(sentence.limits),
                "problem": sentence.problem or None,
            }
            for sentence in sentences
        ],
        "toml": rules_to_toml(rules),
        "mode": mode.value,
        "tools": [
            {"tool": name, "otherwise": decision, "offered": offered}
            for name, decision, offered in _by_tool(rules, mode)
        ],
        "written": written,
    }


def _said(rule: Rule) -> str:
    return f"{decision_word(rule.decision)} {rule_words(rule)}"


def _lines(
    sentences: Sequence[Sentence], rules: Sequence[Rule], mode: ApprovalMode
) -> Iterator[str]:
    for sentence in sentences:
        yield visible_line(sentence.text)
        for rule in sentence.rules:
            yield f"  {visible_line(_said(rule))} (priority {rule.priority:g})"
        for limit in sentence.limits:
            yield f"    {visible_line(limit)}"
    if not rules:
        return
    yield ""
    yield f"All other calls in mode {mode.value}, headless (ask means deny):"
    by_decision: dict[str, list[str]] = {}
    for name, decision, _offered in _by_tool(rules, mode):
        by_decision.setdefault(decision, []).append(name)
    yield from columns(
        [(decision, ", ".join(names)) for decision, names in by_decision.items()],
        room=terminal_width(),
    )
    yield ""
    for line in rules_to_toml(rules).splitlines():
        yield visible_line(line)
