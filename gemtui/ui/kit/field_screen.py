"""Dialogs with fields: esc keeps what was typed, and enter takes all of it from every field."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual import events, on
from textual.await_complete import AwaitComplete
from textual.screen import ScreenResultType
from textual.widget import Widget

from gemtui.ui.kit.clean_widgets import Entered, Input
from gemtui.ui.kit.dialog_guard import DialogScreen

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase, FieldValues
    from gemtui.ui.kit.clean_text_area import TextArea

KEPT = "What you typed is kept: open this again to continue."
BACK = "What you typed before is back; esc discards it."
DISCARDED = "What you typed is discarded."


class FieldScreen(DialogScreen[ScreenResultType]):
    """A dialog with fields; `subject` tells apart dialogs that begin with the same values."""

    def __init__(self, *, subject: str = "") -> None:
        super().__init__()
        self._subject = subject
        self._shown = self._typed = False
        self._began: FieldValues = ()
        self._restored: FieldValues | None = None

    def action_take(self) -> object:
        """Close with what the fields hold, unless something is wrong with it."""
        raise NotImplementedError

    @on(Input.Submitted)
    @on(Entered)
    def _take_by_enter(self) -> None:
        self.action_take()

    # --- what is typed -------------------------------------------------------------------------

    @on(events.ScreenResume)
    def _restore_soon(self) -> None:
        self.app.call_later(self._restore)  # before it takes keys

    def _restore(self) -> None:
        """Fill the fields with what was typed here before."""
        if self._shown or not self.is_attached:
            return
        self._shown, self._began = True, self._field_values()
        self._restored = self._app.drafts.pop(self._draft_key, None)
        if self._restored is not None:
            for field, value in zip(self._fields(), self._restored, strict=True):
                setattr(field, _attribute(field), value)
            self._app.say(BACK)

    @on(Input.Changed)
    def _note_typing(self, event: Input.Changed) -> None:
        """Tell what a person types from what the dialog itself writes into a field."""
        self._typed = self._typed or event.input.has_focus

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Do the same; most dialogs, and so this module, do without the class."""
        self._typed = self._typed or event.text_area.has_focus

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close with `result`, unless there is an answer already; without one keep what is typed.

        What was kept before and is left as it was is discarded.
        """
        if self._answer is None and self._shown and result is None:
            values = self._field_values()
            if self._typed and values not in (self._began, self._restored):
                self._app.drafts[self._draft_key] = values
                self.app.call_later(self._app.say, KEPT)
            elif self._restored is not None:
                self.app.call_later(self._app.say, DISCARDED)
        return super().dismiss(result)

    @property
    def _app(self) -> AppBase:
        return cast("AppBase", self.app)

    @property
    def _draft_key(self) -> tuple[object, ...]:
        return type(self).__name__, self._subject, self._began

    def _fields(self) -> list[Widget]:
        return list(self.query("Input, TextArea, Tick, Select").results(Widget))

    def _field_values(self) -> FieldValues:
        return tuple(getattr(each, _attribute(each)) for each in self._fields())


def _attribute(field: Widget) -> str:
    return "value" if hasattr(field, "value") else "text"
