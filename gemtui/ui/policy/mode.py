"""The policy pane as the rest of the app uses it.

The pane's modules are imported only when the pane is shown for the first time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gemtui.paths import current_folder

if TYPE_CHECKING:
    from gemtui.policy.model.rules import Call
    from gemtui.ui.kit.app_base import AppBase
    from gemtui.ui.policy.screen import PolicyScreen
    from gemtui.ui.rules.draft import Draft

POLICY_MODE = "policy"
UNSAVED = "*"


def _pane_class() -> type[PolicyScreen]:
    """Import the pane, which takes 0.1 s the first time."""
    from gemtui.ui.policy.screen import PolicyScreen

    return PolicyScreen


class PolicyMode:
    """Shows the policy pane, and asks about unsaved changes before gemtui exits."""

    def __init__(self, app: AppBase) -> None:
        self._app = app
        self._made: PolicyScreen | None = None
        app.add_mode(POLICY_MODE, self._screen)

    def _screen(self) -> PolicyScreen:
        self._made = _pane_class()(self._app, self._app.start.project or current_folder())
        return self._made

    @property
    def draft(self) -> Draft | None:
        """The policy being edited; None until the pane is shown for the first time."""
        return None if self._made is None else self._made.draft

    def sign(self) -> str:
        """Return the sign for unsaved changes in the pane's tab; "" if there are none."""
        draft = self.draft
        return UNSAVED if draft is not None and draft.changed else ""

    async def show(self) -> PolicyScreen:
        """Show and return the policy pane."""
        if self._made is None:
            await asyncio.to_thread(_pane_class)
        await self._app.switch_mode(POLICY_MODE)
        assert self._made is not None
        return self._made

    async def allow(self, call: Call, policies: Sequence[Path]) -> None:
        """Show the policy pane with a form for a rule that would allow a run's call.

        `policies`: the policy files of the run.
        """
        screen = await self.show()
        screen.rule_keys.offer(call, policies)

    async def ready_to_start(self, policies: Sequence[Path]) -> bool:
        """Return whether a run may start with these policy files.

        If the user has unsaved changes in one of them, they are asked what to do.
        """
        draft, screen = self.draft, self._made
        opened = None if draft is None else draft.opened
        if draft is None or screen is None or opened is None or not draft.changed:
            return True
        if opened.file.path not in policies:
            return True
        from gemtui.ui.policy.files import ask_before_run

        answer = await ask_before_run(self._app, draft)
        return answer == "saved" or (answer == "save" and await screen.editor.save())

    async def may_leave(self) -> bool:
        """Return whether gemtui may exit; the user is asked about unsaved changes."""
        draft = self.draft
        if draft is None or not draft.changed or self._app.start.demo:
            return True
        from gemtui.ui.policy.files import may_close

        return await may_close(self._app, draft, leaving="quit")
