"""Screens that return only one answer, even if a burst of keys answers twice."""

from __future__ import annotations

from textual import events, on
from textual.await_complete import AwaitComplete
from textual.message import Message
from textual.screen import ModalScreen, Screen, ScreenResultType

DIALOG = "dialog"
"""The group of the workers that open dialogs."""
LOW = [(0, "-low"), (18, "-high"), (30, "-tall")]
"""CSS classes by minimum screen height in rows; taller screens show more detail."""


class AnsweringScreen(Screen[ScreenResultType]):
    """A screen that returns only its first answer.

    A second answer may arrive if the user presses several keys quickly, or if a worker answers
    while another screen is on top. An answered screen closes once no other screen covers it. Keys
    are held back until the screen has its widgets, focus and cursor.
    """

    _answer: tuple[ScreenResultType | None] | None = None
    asked = 0.0
    """When the screen's question was created, on the clock that Textual's events use."""
    takes_keys = False
    """Whether the screen's widgets can receive keys; until then, keys are held back."""

    @property
    def asking_since(self) -> float:
        """When this screen started to open a dialog, or 0 if it isn't opening one.

        The time is on the clock that Textual's events use.
        """
        return 0.0

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close with `result`, or with the earlier answer if there already is one.

        If a different screen covers this one, this one closes once it is no longer covered.
        """
        if self._answer is None:
            self._answer = (result,)
        return self._go()

    def action_close(self) -> None:
        """Close without an answer."""
        self.dismiss(None)

    async def _dispatch_message(self, message: Message) -> None:
        """Handle a message, unless the screen has its answer.

        Once it does, messages from the screen's own widgets are dropped.
        """
        if self._answer is None or message.control is None:
            await super()._dispatch_message(message)

    @on(events.ScreenResume)
    def _uncovered(self) -> None:
        self.app.call_later(setattr, self, "takes_keys", True)  # after any pending focus changes
        if self._answer is not None:
            self._go()

    def _go(self) -> AwaitComplete:
        if self._answer is not None and not self.is_mounted:
            self.call_later(self._go)
        elif self._answer is not None and self.is_active:
            self.workers.cancel_node(self)
            return super().dismiss(self._answer[0])
        return AwaitComplete()


class DialogScreen(ModalScreen[ScreenResultType], AnsweringScreen[ScreenResultType]):
    """A modal dialog that returns only its first answer."""
