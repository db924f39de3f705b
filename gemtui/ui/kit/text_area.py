"""A multi-line text field that strips control characters from pasted text, and a dialog with one.

It has a module of its own because Textual's text area imports a code parser, which would delay the
session list at startup.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import events, widgets
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets.text_area import Edit, EditResult

from gemtui.text import clean, clean_line, visible
from gemtui.ui.kit.clean_widgets import Dialog, Entered, Label, notify_cut
from gemtui.ui.kit.dialogs import FormScreen
from gemtui.ui.kit.key_table import UNDO_KEYS
from gemtui.ui.kit.keys import Where, bindings

_LINE_KEYS = ("enter", "ctrl+j", "shift+enter", "alt+enter")


class TextArea(widgets.TextArea):
    """A multi-line text field that cleans pasted text and limits its length.

    `longest`: how many characters the user can enter; text set by the program may be longer.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding(UNDO_KEYS, "undo", "Undo", show=False)]

    def __init__(self, *, longest: int, id: str | None = None) -> None:
        super().__init__(id=id, compact=True, soft_wrap=True, highlight_cursor_line=False)
        self._longest, self._cut = longest, False

    def _restart_blink(self) -> None:
        """Show the cursor, but don't let it blink, because that would draw twice a second.

        `cursor_blink` must stay on: without it, Textual draws a cursor in fields without the focus.
        """
        self._cursor_visible = True

    async def _on_paste(self, event: events.Paste) -> None:
        """Insert the pasted text without its control characters."""
        event.prevent_default()
        event.stop()
        if not self.read_only:
            text = clean(event.text[: self._longest + 1])
            result = self.replace(text, *self.selection, maintain_selection_offset=False)
            self.move_cursor(result.end_location)

    def edit(self, edit: Edit) -> EditResult:
        """Apply an edit, cutting off text beyond the maximum length."""
        gone = len(self.get_text_range(edit.from_location, edit.to_location))
        room = max(0, self._longest - len(self.text) + gone)
        was_cut, self._cut = self._cut, len(edit.text) > room
        if self._cut:
            edit.text = edit.text[:room]
            if not was_cut:
                notify_cut(self, self._longest)
        return super().edit(edit)


class EnteredTextArea(TextArea):
    """A text area in which enter submits and ctrl+j inserts a newline."""

    async def _on_key(self, event: events.Key) -> None:
        """Post `Entered` for enter; insert a newline for ctrl+j, shift+enter or alt+enter."""
        if event.key not in _LINE_KEYS:
            await super()._on_key(event)
            return
        event.prevent_default()
        event.stop()
        if event.key == "enter":
            self.post_message(Entered())
        else:
            self.insert("\n")


_CONTROLS = "Control characters are shown as symbols. If you apply this, the symbols replace them."
LONGEST = 200_000
"""Maximum number of characters to edit here; longer text needs an external editor."""


class ChangeScreen(FormScreen[str]):
    """A dialog that returns the edited text, or None.

    `problem`: takes the edited text and returns why it is invalid, or "" if it is valid.
    `enter_takes`: whether enter submits the text instead of inserting a newline.
    """

    BINDINGS = bindings(Where.CHANGE_CALL)
    AUTO_FOCUS = "TextArea"

    def __init__(
        self,
        title: str,
        text: str,
        *,
        problem: Callable[[str], str],
        enter_takes: bool,
        subject: str = "",
    ) -> None:
        super().__init__(subject=f"{title} {subject}")
        self._title, self._text, self._problem = title, text, problem
        self._enter_takes = enter_takes

    def compose(self) -> ComposeResult:
        takes = "enter run   ctrl+j new line" if self._enter_takes else "ctrl+s apply"
        with Dialog(self._title, f"{takes}   esc close", id="change-call"):
            area = EnteredTextArea if self._enter_takes else TextArea
            yield area(longest=LONGEST, id="change-text")
            yield Label(id="problem")
            yield from self.buttons()

    def on_mount(self) -> None:
        area = self.query_one(TextArea)
        area.text = visible(self._text)
        area.move_cursor(area.document.end)
        if area.text != self._text:
            self.query_one("#problem", Label).update(_CONTROLS)

    def action_take(self) -> None:
        """Close and return the text, or show why it is invalid."""
        text = self.query_one(TextArea).text
        problem = self._problem(text)
        self.query_one("#problem", Label).update(clean_line(problem))
        if not problem:
            self.dismiss(text)
