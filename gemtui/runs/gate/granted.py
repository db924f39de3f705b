"""Approvals that cover more than one call, either in the same run or in all runs.

The rules in this module are consulted only for calls about which a run's policy would ask.
Therefore everything that the policy denies stays denied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gemtui.calls.paths import tool_path
from gemtui.calls.shell.dangers import dangers
from gemtui.calls.shell.parser import unwrapped
from gemtui.calls.shell.similar import why_not_covered
from gemtui.calls.shell.unasked import command_place
from gemtui.calls.shell.words import PlainWord, Unclear, plain_commands
from gemtui.files import resolved
from gemtui.policy.edit import store
from gemtui.policy.engine.decide import Engine, Setup
from gemtui.policy.file.policy import Policy
from gemtui.policy.file.policy_files import path_of
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, Rule
from gemtui.policy.suggest.suggest import EDITS
from gemtui.runs.gate.similar_calls import SHELL
from gemtui.transcript.parts import string

ALWAYS = "always"
"""The name of the policy with the rules for all runs; the policy pane shows it."""


class Granted:
    """The approvals in effect for one run.

    `workspace`: the run's folder.
    """

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._always = Policy()
        self._answers: dict[int, Policy] = {}
        self._engine: Engine | None = None

    def load_always(self) -> None:
        """Load the rules that apply to all runs; an unreadable file contains none."""
        path = path_of(ALWAYS)
        if path.is_file():
            self._always, self._engine = _allows(Policy.load(path)), None

    def add(self, toml: str, *, answer: int = 0) -> None:
        """Add the rules that the user granted with an answer; invalid rules allow nothing.

        `toml`: the rules. `answer`: the number of the question that was answered.
        """
        self._answers[answer], self._engine = _allows(Policy.parse(toml, source="answer")), None

    @property
    def answers(self) -> tuple[int, ...]:
        """The numbers of the answers that granted rules and have not been revoked."""
        return tuple(self._answers)

    def answer_of(self, rule: Rule) -> int:
        """Return the number of the answer that granted a rule; 0 for a rule for all runs."""
        found = (number for number, each in self._answers.items() if rule in each.rules)
        return next(found, 0)

    def revoke(self, answer: int) -> None:
        """Revoke the rules that were granted by the user's answer with this number."""
        del self._answers[answer]
        self._engine = None

    def allows(self, call: Call) -> Rule | None:
        """Return the rule that allows a call; None means that the user must be asked."""
        args = self._told(call)
        policy = sum(self._answers.values(), self._always)
        if not policy.rules or args is None:
            return None
        if self._engine is None:
            setup = Setup(workspace=self._workspace)
            self._engine = Engine(policy, mode=ApprovalMode.DEFAULT, interactive=True, setup=setup)
        outcome = self._engine.outcome(Call(call.tool, args, call.subagent))
        if outcome.rule not in policy.rules or outcome.decision is not Decision.ALLOW:
            return None
        if outcome.rule.command_prefixes and not self._covers(policy, call):
            return None
        return outcome.rule

    def _covers(self, policy: Policy, call: Call) -> bool:
        """Return whether every command in a call starts with an approved prefix.

        Commands are parsed as bash would parse them. The CLI's own check isn't reliable enough: it
        only compares strings, and treats characters as whitespace that bash does not. A prefix
        never approves a dangerous command.
        """
        place = command_place(self._workspace, string(call.args.get("dir_path")))
        command = unwrapped(string(call.args.get("command")))
        try:
            commands = plain_commands(command)
        except Unclear:
            return False
        if isinstance(place, str) or dangers(command, place.project, str(place.folder)):
            return False
        prefixes = [each.split(" ") for rule in policy.rules for each in rule.command_prefixes]
        return all(
            any(_texts(words)[: len(prefix)] == prefix for prefix in prefixes)
            and why_not_covered(words, commands, place) is None
            for words in commands
        )

    def _told(self, call: Call) -> Mapping[str, Any] | None:
        """Return a call's arguments, with the path of a written file made real.

        Returns None if the real path can't be determined, or if a command would run outside the
        run's folder.
        """
        path, folder = call.args.get("file_path"), call.args.get("dir_path")
        if call.tool in EDITS and isinstance(path, str):
            try:
                return {**call.args, "file_path": tool_path(path, str(self._workspace))}
            except (OSError, ValueError):
                return None
        if call.tool == SHELL and isinstance(folder, str) and folder:
            place = resolved(self._workspace / folder) if "\0" not in folder else Path("/")
            return call.args if place.is_relative_to(resolved(self._workspace)) else None
        return call.args


def _texts(words: Sequence[PlainWord]) -> list[str]:
    return [word.text for word in words]


def _allows(policy: Policy) -> Policy:
    rules = tuple(each for each in policy.rules if each.decision is Decision.ALLOW)
    return replace(policy, rules=rules)


def keep_always(rule: Rule) -> Path:
    """Add a rule to the policy that applies to every run, unless it is already there.

    Returns the policy's file. Raises PolicyError and OSError.
    """
    path = path_of(ALWAYS)
    opened = store.open_policy(path) if path.exists() else store.create(ALWAYS, _HEAD)
    if not any(_same(rule, each.rule) for each in opened.document.rules if each.enabled):
        store.save_policy(opened, opened.document.add(rule))
    return path


def forget_always(rule: Rule) -> None:
    """Remove a rule from the policy that applies to every run.

    Raises PolicyError and OSError.
    """
    path = path_of(ALWAYS)
    if not path.exists():
        return
    opened = store.open_policy(path)
    places = [at for at, each in enumerate(opened.document.rules) if _same(rule, each.rule)]
    if places:
        store.save_policy(opened, opened.document.remove(places[-1]))


def _same(one: Rule, other: Rule | None) -> bool:
    return other is not None and replace(other, source=one.source, index=one.index) == one


_HEAD = """\
# Calls that you always allow. Runs with "Ask me" on read this file: a call that a rule here
# allows runs without asking, unless a policy denies it. Remove a rule to be asked again.
"""
