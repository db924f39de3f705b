"""Screens that return exactly one answer, even if a burst of keys answers twice."""

from __future__ import annotations

from textual import events, on
from textual.await_complete import AwaitComplete
from textual.message import Message
from textual.screen import ModalScreen, Screen, ScreenResultType

DIALOG = "dialog"
"""The worker group in which a screen asks questions."""
LOW = [(0, "-low"), (18, "-high"), (30, "-tall")]
"""Screen heights, in rows, from which secondary parts and long texts have room."""


class AnsweringScreen(Screen[ScreenResultType]):
    """A screen that closes with its first answer, once no other screen covers it.

    A burst of keys may answer twice, and a worker may answer while another screen is on top. Keys
    are held back until the screen has its widgets, its focus and its cursor.
    """

    _answer: tuple[ScreenResultType | None] | None = None
    asked = 0.0
    """Time at which the question was created, on the same clock as Textual's events."""
    takes_keys = False
    """Whether a widget of this screen can receive keys; until then, keys are held."""

    @property
    def asking_since(self) -> float:
        """Time at which this screen began to open a dialog, on the events' clock, or 0."""
        return 0.0

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close with `result`, unless the screen already has an answer."""
        if self._answer is None:
            self._answer = (result,)
        return self._go()

    def action_close(self) -> None:
        """Close without an answer."""
        self.dismiss(None)

    async def _dispatch_message(self, message: Message) -> None:
        """Drop messages from the screen's widgets once it has an answer."""
        if self._answer is None or message.control is None:
            await super()._dispatch_message(message)

    @on(events.ScreenResume)
    def _uncovered(self) -> None:
        self.app.call_later(setattr, self, "takes_keys", True)  # after pending focus requests
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
    """A modal dialog."""
