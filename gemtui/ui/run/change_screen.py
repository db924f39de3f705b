"""A dialog in which the user edits a tool call or a queued prompt."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult

from gemtui.text import Clean, clean_line, visible
from gemtui.ui.draw.lines import own
from gemtui.ui.kit.clean_text_area import EnteredTextArea, TextArea
from gemtui.ui.kit.clean_widgets import Dialog, Label
from gemtui.ui.kit.dialogs import FormScreen
from gemtui.ui.kit.keys import Where, bindings

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
        self, title: Clean, text: str, *, problem: Callable[[str], str], enter_takes: bool, subject: str = ""
    ) -> None:
        super().__init__(subject=f"{title} {subject}")
        self._title, self._text, self._problem = title, text, problem
        self._enter_takes = enter_takes

    def compose(self) -> ComposeResult:
        takes = "enter run   ctrl+j new line" if self._enter_takes else "ctrl+s apply"
        with Dialog(self._title, own(f"{takes}   esc close"), id="change-call"):
            area = EnteredTextArea if self._enter_takes else TextArea
            yield area(longest=LONGEST, id="change-text")
            yield Label(id="problem")
            yield from self.buttons()

    def on_mount(self) -> None:
        area = self.query_one(TextArea)
        area.text = visible(self._text)
        area.move_cursor(area.document.end)
        if area.text != self._text:
            self.query_one("#problem", Label).update(own(_CONTROLS))

    def action_take(self) -> None:
        """Close and return the text, or show why it is invalid."""
        text = self.query_one(TextArea).text
        problem = self._problem(text)
        self.query_one("#problem", Label).update(clean_line(problem))
        if not problem:
            self.dismiss(text)
