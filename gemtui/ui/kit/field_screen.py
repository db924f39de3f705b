"""Dialogs with fields: enter submits them all, esc closes but keeps typed text."""

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

KEPT = "What you typed is kept. Open this again to continue."
BACK = "What you typed before has been restored. Press esc to discard it."
DISCARDED = "What you typed has been discarded."


class FieldScreen(DialogScreen[ScreenResultType]):
    """A dialog with fields that remembers what was typed if it is closed with esc.

    `subject`: what the dialog is about. Dialogs of one class whose fields start with the same
    values need different subjects, so that one doesn't restore what was typed into another.
    """

    def __init__(self, *, subject: str = "") -> None:
        super().__init__()
        self._subject = subject
        self._shown = self._typed = False
        self._began: FieldValues = ()
        self._restored: FieldValues | None = None

    def action_take(self) -> object:
        """Close the dialog and return its fields' values, if they are valid."""
        raise NotImplementedError

    @on(Input.Submitted)
    @on(Entered)
    def _take_by_enter(self) -> None:
        self.action_take()

    # --- drafts ---------------------------------------------------------------------------------

    @on(events.ScreenResume)
    def _restore_soon(self) -> None:
        self.app.call_later(self._restore)  # before the screen accepts keys

    def _restore(self) -> None:
        """Restore the values that were typed before this dialog was last closed.

        Runs once, as soon as the dialog is shown.
        """
        if self._shown or not self.is_attached:
            return
        self._shown, self._began = True, self._field_values()
        self._restored = self.gemtui.drafts.pop(self._draft_key, None)
        if self._restored is not None:
            for field, value in zip(self._fields(), self._restored, strict=True):
                setattr(field, _attribute(field), value)
            self.gemtui.show_message(BACK)

    @on(Input.Changed)
    def _note_typing(self, event: Input.Changed) -> None:
        """Record that the user has typed, unless the dialog itself has changed the field."""
        self._typed = self._typed or event.input.has_focus

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Record that the user has typed into a text area.

        This method doesn't use `@on`, because that would import `TextArea` here.
        """
        self._typed = self._typed or event.text_area.has_focus

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close with `result`, unless the dialog already has an answer.

        If `result` is None, the typed values are kept as a draft for next time. A draft that was
        restored but not edited is discarded.
        """
        if self._answer is None and self._shown and result is None:
            values = self._field_values()
            if self._typed and values not in (self._began, self._restored):
                self.gemtui.drafts[self._draft_key] = values
                self.app.call_later(self.gemtui.show_message, KEPT)
            elif self._restored is not None:
                self.app.call_later(self.gemtui.show_message, DISCARDED)
        return super().dismiss(result)

    @property
    def gemtui(self) -> AppBase:
        """The app, typed as `AppBase`."""
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
