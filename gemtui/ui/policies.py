"""The policy that a person edits: its document, the way back and forth, what is saved.

Nothing of this is on the screen and nothing here knows Textual: the policy pane and the screens
around it read a `Draft`, and change it by its methods. `revision` says that something changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gemtui.policy.decide import Setup
from gemtui.policy.document import Document, Entry
from gemtui.policy.policy import Policy
from gemtui.policy.rules import ApprovalMode, Finding, Rule
from gemtui.policy.store import Opened

UNNAMED = "new policy"


class Step(NamedTuple):
    """A state of the document, and what was done to come to it."""

    document: Document
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What takes part in decisions beside the file that is edited.

    `before`, `after`: the rules of other files that a run loads before and after it. `setup`: the
    settings, the workspace.
    """

    before: Policy = Policy()  # noqa: RUF009 (frozen)
    after: Policy = Policy()  # noqa: RUF009 (frozen)
    setup: Setup = Setup()  # noqa: RUF009 (frozen)


class Draft:
    """One policy file as it stands in the editor.

    `opened`: the file as it was read, None = it is not written yet. `mode`: the approval mode that
    decisions are shown for, and that a run from here gets; it is no part of the file.
    """

    def __init__(
        self,
        opened: Opened | None = None,
        *,
        mode: ApprovalMode = ApprovalMode.DEFAULT,
        around: Surroundings = Surroundings(),
    ) -> None:
        self.opened, self.mode, self.around = opened, mode, around
        document = Document.parse("") if opened is None else opened.document
        self._saved = document.text
        self._steps = [Step(document, "")]
        self._undone: list[Step] = []
        self.revision = 0

    # --- what it is --------------------------------------------------------------------------

    @property
    def document(self) -> Document:
        """The file as it would be written now."""
        return self._steps[-1].document

    @property
    def name(self) -> str:
        """What the policy is called."""
        return UNNAMED if self.opened is None else self.opened.file.name

    @property
    def saved(self) -> str:
        """The text as it stands on the disk."""
        return self._saved

    @property
    def changed(self) -> bool:
        """Whether saving would change the file."""
        return self.document.text != self._saved

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All rules of the file in its order, those that are switched off included."""
        return self.document.rules

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong or doubtful in the file."""
        return self.document.findings

    @property
    def policy(self) -> Policy:
        """All rules that a run with this policy has, in load order: to decide and explain with."""
        own = Policy.parse(self.document.text, source=self.document.source)
        return self.around.before + own + self.around.after

    @property
    def setup(self) -> Setup:
        """What takes part in decisions beside the rules."""
        return self.around.setup

    # --- changes -----------------------------------------------------------------------------

    def change(self, document: Document, what: str) -> None:
        """Go on with this document; `what` was done, such as "delete rule 3". One step to undo."""
        if document.text == self.document.text:
            return
        self._steps.append(Step(document, what))
        self._undone.clear()
        self.revision += 1

    def add_rules(self, rules: Sequence[Rule], what: str = "") -> None:
        """Put rules at the file's end: one step to undo. Raises PolicyError for a locked file."""
        document = self.document
        for rule in rules:
            document = document.add(rule)
        self.change(document, what or f"add {len(rules)} rule{'s' * (len(rules) != 1)}")
