"""A screen that asks in dialogs: keys behind the one that opens a dialog are not the screen's."""

from __future__ import annotations

from textual.screen import Screen, ScreenResultType
from textual.worker import Worker

DIALOG = "dialog"
"""The group of the workers in which a screen asks something."""
LOW = [(0, "-low"), (18, "-high")]
"""From how many rows on a screen has room for more than what it is about."""


class AskingScreen(Screen[ScreenResultType]):
    """No key acts on it while a dialog opens, or while the answer of one is taken.

    Keys that come in one burst would act here, though they were meant for the dialog.
    """

    VERTICAL_BREAKPOINTS = LOW

    def can(self, action: str) -> bool:
        """Whether a key does something now."""
        raise NotImplementedError

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing is done while a dialog opens."""
        del parameters
        return not self.is_mounted or (not self._opening and self.can(action))

    @property
    def _opening(self) -> bool:
        mine = (each for each in self.workers if each.node is self and each.group == DIALOG)
        return self.is_active and any(not each.is_finished for each in mine)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """What a dialog was for is done: keys act again."""
        if event.worker.group == DIALOG and event.worker.is_finished:
            self.refresh_bindings()
