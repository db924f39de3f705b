"""The app's policies: the pane, the sign of what is not saved, questions before leaving.

What the pane needs is imported only when somebody goes there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from gemtui.ui.app import GemtuiApp
    from gemtui.ui.policies import Draft
    from gemtui.ui.screens.policy import PolicyScreen

POLICY_MODE = "policy"
UNSAVED = "*"


class Policies:
    """All that the app does about policies."""

    def __init__(self, app: GemtuiApp) -> None:
        self._app = app
        self._made: PolicyScreen | None = None
        app.add_mode(POLICY_MODE, self._screen)

    def _screen(self) -> PolicyScreen:
        from gemtui.ui.screens.policy import PolicyScreen

        self._made = PolicyScreen()
        return self._made

    @property
    def draft(self) -> Draft | None:
        """What is edited; None = nobody has been there yet."""
        return None if self._made is None else self._made.draft

    def mark(self) -> str:
        """The sign beside the policy mode: something is not saved; else nothing."""
        draft = self.draft
        return UNSAVED if draft is not None and draft.changed else ""

    async def show(self) -> PolicyScreen:
        """The policy pane."""
        await self._app.switch_mode(POLICY_MODE)
        return cast("PolicyScreen", self._app.screen_stack[0])

    async def may_leave(self) -> bool:
        """Whether gemtui may end: asks what becomes of changes that are not saved."""
        return True
