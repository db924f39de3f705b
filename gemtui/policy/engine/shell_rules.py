"""Decide a shell command: as a whole, then each of its parts.

See assets/gemini-cli.md#shell-rules. If the deciding rule has no pattern, the engine also judges
whether the command as a whole is safe or dangerous (`gemtui.calls.shell.command_safety`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gemtui.calls.shell.command_safety import CommandSafety, judge
from gemtui.calls.shell.parser import CommandPart, ParsedCommand, has_redirection, parse_command
from gemtui.policy.engine.results import Evaluation
from gemtui.policy.match.matching import CompiledRule, RuleSequence
from gemtui.policy.model.rules import ApprovalMode, Decision

ALLOW, DENY, ASK = Decision.ALLOW, Decision.DENY, Decision.ASK_USER
TOO_DEEP = 60
"""The maximum depth of nested commands; deeper ones count as unparsable."""


class ShellRules:
    """Decides shell commands in one mode.

    `default`: the decision if no rule matches. `workspace`: the run's folder; None if unknown.
    """

    def __init__(self, *, mode: ApprovalMode, default: Decision, workspace: Path | None) -> None:
        self.mode, self.default, self.workspace = mode, default, workspace
        self.yolo = mode is ApprovalMode.YOLO

    def check(self, rules: RuleSequence, args: Mapping[str, Any]) -> Evaluation:
        """Return the decision for a call to the shell tool with these arguments.

        `rules`: the rules that apply to the shell tool, sorted.
        """
        command = args.get("command")
        dir_path = args.get("dir_path")
        if not isinstance(command, str):
            command = ""
        if not isinstance(dir_path, str):
            dir_path = None
        return _Command(self, rules, dir_path).decided(command, args)

    def judgement(self, command: str, decision: Decision, dir_path: str | None) -> Evaluation:
        """Adjust the decision of a rule without a pattern to the command.

        If the rule asks, the engine nevertheless lets safe commands run. If the rule allows the
        call, the engine nevertheless asks about dangerous commands, and if `dir_path` is outside
        the workspace, except in yolo mode.
        """
        if decision is DENY:
            return Evaluation(decision=DENY)
        found = judge(command, workspace=self.workspace, dir_path=dir_path)
        if found is CommandSafety.SAFE and decision is ASK:
            return Evaluation(decision=ALLOW, note="it is known to be safe, so it runs without asking")
        if found is CommandSafety.DANGEROUS and not self.yolo:
            note = "the command is dangerous, and a rule without a condition does not allow dangerous commands"
            return Evaluation(decision=ASK, note=note)
        if found is CommandSafety.OUTSIDE and not self.yolo:
            return Evaluation(decision=ASK, note="dir_path is outside the workspace")
        return Evaluation(decision=decision)

    def redirects(self, redirected: bool, allowed: bool) -> bool:
        """Return whether a redirection turns an allow into an ask.

        `redirected`: whether the command contains a redirection. `allowed`: whether the rule
        permits redirections.
        """
        free = self.mode in (ApprovalMode.AUTO_EDIT, ApprovalMode.YOLO)
        return redirected and not allowed and not free


@dataclass(slots=True)
class _State:
    """The decision after the parts checked so far, and the rule responsible for it.

    `ready`: the rule; None if no single rule is responsible.
    """

    decision: Decision
    ready: CompiledRule | None
    note: str

    def ask(self, ready: CompiledRule | None, note: str) -> None:
        """Record that the user must be asked about a part of the command.

        `ready`: the rule for this part. It is stored as the responsible rule, unless there already
        is one for an earlier part.
        """
        if self.decision is ALLOW:
            self.ready, self.note = ready, note
        elif self.ready is None:
            self.ready = ready
        self.decision = ASK


class _Command:
    """One call's command.

    Decisions for parts are cached, because the same part may occur at several levels of nesting.
    """

    def __init__(self, shell: ShellRules, rules: RuleSequence, dir_path: str | None) -> None:
        self._shell, self._rules, self._dir_path = shell, rules, dir_path
        self._seen: dict[str, Evaluation] = {}

    def decided(self, command: str, args: Mapping[str, Any]) -> Evaluation:
        """Decide the whole command by rules and by how safe the engine considers it."""
        ready = self._rules.first_match(args)
        if ready is None and self._shell.yolo:
            return Evaluation(decision=ALLOW)
        decision = ready.decision if ready else self._shell.default
        note = ""
        if command and not (ready and ready.pattern):
            judged = self._shell.judgement(command, decision, self._dir_path)
            decision, note = judged.decision, judged.note
        return self._parts(command, ready, decision, note, depth=0)

    def _inner(self, command: str, depth: int) -> Evaluation:
        """Decide a part of the command by rules only, not by how safe it is.

        Of the call's other arguments, only `dir_path` is considered.
        """
        found = self._seen.get(command)
        if found is None:
            found = self._seen[command] = self._part_decided(command, depth)
        return found

    def _part_decided(self, command: str, depth: int) -> Evaluation:
        args = {"command": command}
        if self._dir_path is not None:
            args["dir_path"] = self._dir_path
        ready = self._rules.first_match(args)
        if ready is None and self._shell.yolo:
            return Evaluation(decision=ALLOW)
        decision = ready.decision if ready else self._shell.default
        return self._parts(command, ready, decision, "", depth=depth)

    def _parts(
        self, command: str, ready: CompiledRule | None, decision: Decision, note: str, *, depth: int
    ) -> Evaluation:
        if not command or decision is DENY:
            return Evaluation(decision=decision, ready=ready, note=note)
        reading = parse_command(command)
        if not reading.parsed or depth > TOO_DEEP:
            return self._unparsed(ready)
        evaluation = self._gone_through(reading, ready, decision, note, depth)
        return evaluation if evaluation.ready is ready else replace(evaluation, matched=ready)

    def _unparsed(self, ready: CompiledRule | None) -> Evaluation:
        note = "the command can't be parsed"
        if not self._shell.yolo:
            return Evaluation(decision=self._shell.default, ready=ready, note=note)
        if ready and ready.pattern:
            return Evaluation(decision=DENY, ready=ready, note=note)
        return Evaluation(decision=ALLOW, ready=ready, note=note)

    def _gone_through(
        self, reading: ParsedCommand, ready: CompiledRule | None, decision: Decision, note: str, depth: int
    ) -> Evaluation:
        answers = ready if ready and ready.decision is decision else None
        state = _State(decision, answers, note)
        allowed = bool(ready and ready.rule.allow_redirection)
        if decision is ALLOW and self._shell.redirects(reading.redirected, allowed):
            state.ask(None, "the command uses redirection, but the rule has no allowRedirection")
        for part in reading.parts:
            refused = self._part(part, state, allowed, depth)
            if refused is not None:
                return refused
        same = state.decision is decision
        return Evaluation(decision=state.decision, ready=ready if same else state.ready, note=state.note)

    def _part(self, part: CommandPart, state: _State, allowed: bool, depth: int) -> Evaluation | None:
        """Return the denial if a part of the command is denied, otherwise None.

        If the user has to be asked about the part, this is recorded in `state`. `allowed`: whether
        the whole command's rule permits redirections.
        """
        inside = [] if part.inner is None else [part.inner]
        for text in [*inside, *([] if part.whole else [part.text])]:
            evaluation = self._inner(text, depth + 1)
            words = f"its part `{text}`"
            if evaluation.decision is DENY:
                return replace(evaluation, note=f"{words} is denied{_why(evaluation)}")
            if evaluation.decision is ASK:
                state.ask(evaluation.ready, f"{words} needs approval{_why(evaluation)}")
        if not part.whole and self._redirects(part, allowed) and state.decision is ALLOW:
            note = f"its part `{part.text}` uses redirection, but the rule has no allowRedirection"
            state.ask(None, note)
        return None

    def _redirects(self, part: CommandPart, allowed: bool) -> bool:
        return self._shell.redirects(has_redirection(part.text), allowed)


def _why(evaluation: Evaluation) -> str:
    if evaluation.note:
        return f": {evaluation.note}"
    return "" if evaluation.ready else ": no rule matches it"
