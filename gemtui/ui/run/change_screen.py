"""What is to run in the place of what was asked: a text that a person changes."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult

from gemtui.text import HOLDS_CONTROLS, Clean, clean, clean_line, visible
from gemtui.ui.draw.lines import own
from gemtui.ui.kit.clean_text_area import EnteredTextArea, TextArea
from gemtui.ui.kit.clean_widgets import Dialog, Label
from gemtui.ui.kit.dialogs import FormScreen
from gemtui.ui.kit.keys import Where, bindings

LONGEST = 200_000
"""Characters that can be changed here; what is longer needs an editor."""


class ChangeScreen(FormScreen[str]):
    """Closes with the text to which `problem` does not object, or with None."""

    BINDINGS = bindings(Where.CHANGE_CALL)
    AUTO_FOCUS = "TextArea"

    def __init__(
        self,
        title: Clean,
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
        """The text, what is wrong with it, how to take it."""
        takes = "enter run   ctrl+j new line" if self._enter_takes else "ctrl+s apply"
        with Dialog(self._title, own(f"{takes}   esc close"), id="change-call"):
            area = EnteredTextArea if self._enter_takes else TextArea
            yield area(longest=LONGEST, id="change-text")
            yield Label(id="problem")
            yield from self.buttons()

    def on_mount(self) -> None:
        """Begin at the end of the text, every character of it visible."""
        area = self.query_one(TextArea)
        area.text = visible(self._text)
        area.move_cursor(area.document.end)
        if area.text != self._text:
            words = f"it {HOLDS_CONTROLS}, shown as marks; the marks are saved as text"
            self.query_one("#problem", Label).update(clean(words))

    def action_take(self) -> None:
        """Take what stands here."""
        text = self.query_one(TextArea).text
        problem = self._problem(text)
        self.query_one("#problem", Label).update(clean_line(problem))
        if not problem:
            self.dismiss(text)
