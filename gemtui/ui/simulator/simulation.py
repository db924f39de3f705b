"""The simulated policy: the draft, rules added to it, and the simulated situation."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import cycle
from pathlib import Path

from gemtui.policy.edit.document import Document
from gemtui.policy.engine.decide import Engine
from gemtui.policy.file.policy import Policy
from gemtui.policy.match.path_patterns import files_pattern
from gemtui.policy.model.rules import ApprovalMode, Call, CallStatus, Decision, RecordedCall, Rule
from gemtui.policy.suggest.suggest import suggest
from gemtui.ui.rules.draft import Draft

Taken = tuple[Rule, ...]
"""The rules that the user accepted on a screen; () if there are none."""
_HIGHEST = 999
_NOT_AS_IT_IS = re.compile(r'["\\\x00-\x1f\x7f]')
"""Matches characters that JSON escapes; patterns are matched against JSON text."""


class Simulation:
    """A draft policy with added rules, in a certain approval mode and situation.

    `taken`: the rules that will be added to the draft. `project`: the folder assumed for calls
    whose folder is unknown. The policy engine is created on first use, which may take a while, so
    call `engine` on a background thread.
    """

    def __init__(self, draft: Draft, project: Path) -> None:
        self.draft, self.project = draft, project
        self.mode = draft.mode
        self.interactive = False
        self.taken: tuple[Rule, ...] = ()
        self._made: tuple[object, Engine] | None = None

    @property
    def policy(self) -> Policy:
        """All rules that apply to a run, with the added rules after the draft's own."""
        return self._with(*self.taken)

    def _with(self, *rules: Rule) -> Policy:
        around = self.draft.around
        return around.before + self._document(*rules).policy + around.after

    @property
    def document(self) -> Document:
        """The draft's document with the added rules."""
        return self._document(*self.taken)

    def _document(self, *rules: Rule) -> Document:
        document = self.draft.document
        for rule in rules:
            document = document.add(rule)
        return document

    def engine(self) -> Engine:
        """Return the policy engine for the current mode and situation."""
        key = (self.draft.revision, self.taken, self.mode, self.interactive)
        if self._made is None or self._made[0] != key:
            self._made = key, self._engine(self.policy)
        return self._made[1]

    def _engine(self, policy: Policy) -> Engine:
        return Engine(policy, mode=self.mode, interactive=self.interactive, setup=self.draft.setup)

    def next_mode(self) -> None:
        """Select the next approval mode."""
        modes = cycle(ApprovalMode)
        while next(modes) is not self.mode:
            pass
        self.mode = next(modes)

    def add_rule(self, rule: Rule) -> None:
        """Add a rule to the simulation; the policy pane adds it to the draft later."""
        self.taken = (*self.taken, rule)

    # --- rules that allow a call ---------------------------------------------------------------

    def allowing_rule(self, call: Call, project: Path | None = None) -> tuple[Rule, str]:
        """Return a rule that allows `call`, and any doubts about it as words (or "").

        The rule is the one that would be suggested if the call had succeeded or, if there is none,
        one that is as narrow as possible. `project`: the folder in which the call was made; None
        means the simulation's. This takes as long as deciding a few calls, so call it on a
        background thread. Raises PolicyError if the file can't be edited.
        """
        place = project or self.project
        done = RecordedCall(call=call, session="", id="", ended=CallStatus.SUCCEEDED, project=place)
        setup, mode = self.draft.setup, self.mode
        found = suggest((done,), self.policy, mode=mode, interactive=self.interactive, setup=setup)
        doubt = " ".join(each.why for each in found.left_out)
        proposed = [each.rule for each in found.suggestions]
        rule = proposed[0] if proposed else narrow(call)
        return self._strong_enough(rule, call), doubt

    def _strong_enough(self, rule: Rule, call: Call) -> Rule:
        """Return the rule with a priority high enough to take effect for the call.

        Only rules of the same tier can be outranked in this way.
        """
        for _ in range(3):
            found = self._engine(self._with(*self.taken, rule)).outcome(call)
            over = found.rule
            if over is None or over.decision is Decision.ALLOW or over.tier is not rule.tier:
                break
            rule = replace(rule, priority=min(_HIGHEST, int(over.priority) + 1))
        return rule


def narrow(call: Call) -> Rule:
    """Return the narrowest rule that allows a call without a hand-written pattern.

    The rule allows a command by its prefix, a file by its path, or otherwise the whole tool.
    """
    rule = Rule(tools=(call.tool,), decision=Decision.ALLOW, priority=100)
    command, file = call.args.get("command"), call.args.get("file_path")
    if call.tool == "run_shell_command" and isinstance(command, str) and command.strip():
        return replace(rule, command_prefixes=(command.strip(),))
    if isinstance(file, str) and not _NOT_AS_IT_IS.search(file):
        return replace(rule, args_pattern=files_pattern((file.removeprefix("./"),), ()))
    return rule
