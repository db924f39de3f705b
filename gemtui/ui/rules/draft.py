"""A policy that is being edited, with undo and redo.

This module does not use Textual. The policy pane and the simulator read a `Draft` and change it
only through its methods. Every change that can affect decisions or the file's text increases
`revision`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from gemtui.policy.edit.document import Document, RuleEntry
from gemtui.policy.edit.store import OpenedPolicy
from gemtui.policy.engine.decide import Setup
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.rules import ApprovalMode, Finding

UNNAMED = "new policy"
MOST_STEPS = 500
"""The maximum number of edits that can be undone."""


class Revision(NamedTuple):
    """A document, and a description of the edit that led to it."""

    document: Document
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyContext:
    """Everything besides the edited file that influences decisions.

    `before`, `after`: the policies from other files that a run loads before and after the edited
    file. `setup`: the settings and the workspace. `problems`: which settings can't be read, and
    what to do about it.
    """

    before: Policy = field(default_factory=Policy)
    after: Policy = field(default_factory=Policy)
    setup: Setup = field(default_factory=Setup)
    problems: tuple[str, ...] = ()


class Draft:
    """A policy file in the editor, with the user's unsaved changes.

    `opened`: the file as it was read; None if the policy has never been saved. `mode`: the approval
    mode, used for decisions and for runs started from the policy pane; it isn't part of the file.
    `asks`: whether these runs ask the user about calls; otherwise, they deny what they would have
    to ask about. `around`: everything else that influences decisions. `moved_on`: whether another
    program has changed the file since it was read.
    """

    def __init__(
        self,
        opened: OpenedPolicy | None = None,
        *,
        mode: ApprovalMode = ApprovalMode.DEFAULT,
        around: PolicyContext | None = None,
    ) -> None:
        self.opened, self.mode = opened, mode
        self.around = around or PolicyContext()
        self.asks = self.moved_on = False
        document = Document.parse("") if opened is None else opened.document
        self._saved = document.text
        self._steps = [Revision(document, "")]
        self._undone: list[Revision] = []
        self.revision = 0

    # --- properties --------------------------------------------------------------------------

    @property
    def document(self) -> Document:
        """The policy with all changes, as it would be saved now."""
        return self._steps[-1].document

    @property
    def name(self) -> str:
        return UNNAMED if self.opened is None else self.opened.file.name

    @property
    def saved(self) -> str:
        """The file's contents when it was last read or written."""
        return self._saved

    @property
    def changed(self) -> bool:
        """Whether there are unsaved changes."""
        return self.document.text != self._saved

    @property
    def read_only(self) -> str:
        """Why the file can't be saved; "" if it can be."""
        return "" if self.opened is None else self.opened.file.read_only

    @property
    def entries(self) -> tuple[RuleEntry, ...]:
        """All rules in file order, including disabled ones."""
        return self.document.rules

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The errors and warnings about the draft."""
        return self.document.findings

    @property
    def file_findings(self) -> tuple[Finding, ...]:
        """The findings about the file as a whole."""
        return tuple(finding for finding in self.findings if not finding.rule)

    @property
    def can_undo(self) -> bool:
        """Whether there is an edit to undo."""
        return len(self._steps) > 1

    @property
    def can_redo(self) -> bool:
        """Whether there is an undone edit to redo."""
        return bool(self._undone)

    @property
    def policy(self) -> Policy:
        """All rules of a run that uses this policy, in loading order."""
        return self.around.before + self.document.policy + self.around.after

    @property
    def setup(self) -> Setup:
        """The settings and the workspace, which influence decisions in addition to rules."""
        return self.around.setup

    # --- changes -----------------------------------------------------------------------------

    def change(self, document: Document, what: str) -> bool:
        """Replace the document; this counts as one edit that can be undone.

        Returns False if the text is the same as before. `what`: a description of the edit, such as
        "delete rule 3".
        """
        if document.text == self.document.text:
            return False
        self._steps = [*self._steps[-MOST_STEPS:], Revision(document, what)]
        self._undone.clear()
        self.revision += 1
        return True

    def undo(self) -> str:
        """Undo the last edit, and return its description; "" if there is none."""
        if not self.can_undo:
            return ""
        step = self._steps.pop()
        self._undone.append(step)
        self.revision += 1
        return step.what

    def redo(self) -> str:
        """Redo the last undone edit, and return its description; "" if there is none."""
        if not self._undone:
            return ""
        step = self._undone.pop()
        self._steps.append(step)
        self.revision += 1
        return step.what

    def set_context(self, around: PolicyContext) -> None:
        """Set which other policies and settings influence decisions."""
        self.around = around
        self.revision += 1

    def decide_for(self, mode: ApprovalMode) -> None:
        """Set the approval mode for decisions and runs."""
        self.mode = mode
        self.revision += 1

    # --- saving and reloading ----------------------------------------------------------------

    def wrote(self, opened: OpenedPolicy) -> None:
        """Record that the draft has been saved to a file.

        The edits can still be undone. Edits made while the file was being saved are kept.
        """
        self.opened, self._saved, self.moved_on = opened, opened.document.text, False
        if self.document.text == opened.document.text:
            self._steps[-1] = Revision(opened.document, self._steps[-1].what)
        self.revision += 1

    def read(self, opened: OpenedPolicy) -> None:
        """Replace the document with the file's new contents; this can be undone."""
        self.change(opened.document, "reload the file")
        self.opened, self._saved, self.moved_on = opened, opened.document.text, False
        self.revision += 1


def next_mode(mode: ApprovalMode) -> ApprovalMode:
    """Return the next approval mode; the first one follows the last."""
    modes = list(ApprovalMode)
    return modes[(modes.index(mode) + 1) % len(modes)]


# --- order ---------------------------------------------------------------------------------------


def priority_order(entries: Sequence[RuleEntry]) -> tuple[int, ...]:
    """Return the rules' indexes by descending priority, then in file order.

    Rules that can't be read come last.
    """

    def strength(place: int) -> tuple[bool, float, int]:
        rule = entries[place].rule
        return rule is None, 0 if rule is None else -rule.priority, place

    return tuple(sorted(range(len(entries)), key=strength))


class MovedRule(NamedTuple):
    """A document in which a rule has been moved.

    `place`: the rule's new index. `priority`: its new priority; None if it is unchanged.
    """

    document: Document
    place: int
    priority: int | None


def move_rule(document: Document, place: int, other: int, *, above: bool) -> MovedRule | None:
    """Move the rule at index `place` directly above or below the one at `other`.

    If their priorities differ, the moved rule gets the other's priority. Returns None if one of the
    two rules can't be read.
    """
    rule, neighbour = document.rules[place].rule, document.rules[other].rule
    if rule is None or neighbour is None:
        return None
    to = other + (0 if above else 1) - (place < other)
    changed = document.move(place, to)
    if rule.priority == neighbour.priority:
        return MovedRule(changed, to, None)
    taken = replace(rule, priority=neighbour.priority)
    return MovedRule(changed.replace(to, taken), to, int(neighbour.priority))
