"""The policy pane's base class, which gives its parts access to draft and widgets."""

from __future__ import annotations

from gemtui.ui.kit.screens import DialogGuardScreen, ScreenPart
from gemtui.ui.policy.command_preview import CommandPreview
from gemtui.ui.policy.editor import PolicyEditor
from gemtui.ui.policy.edits import Make
from gemtui.ui.policy.main_pane import PolicyMain
from gemtui.ui.policy.side_pane import PolicySide
from gemtui.ui.rules.draft import Draft


class PolicyPane(DialogGuardScreen[None]):
    """The screen that edits one policy at a time, `draft`."""

    editor: PolicyEditor
    preview: CommandPreview

    @property
    def main(self) -> PolicyMain:
        """The left half, with the rules or levels."""
        return self.query_one(PolicyMain)

    @property
    def side(self) -> PolicySide:
        """The right half, with the command, the file and the findings."""
        return self.query_one(PolicySide)

    @property
    def draft(self) -> Draft:
        """The policy being edited."""
        return self.editor.draft

    @property
    def place(self) -> int | None:
        """The index in the file of the rule under the cursor; None if there is no such rule.

        After the draft has lost rules, the table may show the old ones for a moment.
        """
        place = self.main.place
        return place if place is not None and place < len(self.draft.entries) else None

    def show(self, place: int | None = None) -> None:
        """Show the current draft.

        `place`: the index of the rule to move the cursor to; None leaves the cursor where it is.
        """
        raise NotImplementedError

    async def edit(self, make: Make) -> None:
        """Apply an edit, and show the result and any message about it."""
        made = await self.editor.edit(make)
        if made is not None:
            self.show(made.place)
            if made.description:
                self.gemtui.show_message(made.description)


class PolicyPart(ScreenPart[PolicyPane]):
    """Handles some of the policy pane's keys."""
