"""What is to run in the place of what was asked: a text that a person changes."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.app import ComposeResult

from gemtui.text import HOLDS_CONTROLS, Clean, clean, clean_line, visible
from gemtui.ui.draw.lines import own
from gemtui.ui.kit.clean_text_area import TextArea
from gemtui.ui.kit.clean_widgets import Dialog, Label
from gemtui.ui.kit.dialogs import FormScreen
from gemtui.ui.kit.keys import Where, bindings

LONGEST = 200_000
"""Characters that can be changed here; what is longer needs an editor."""


class ChangeArea(TextArea):
    """The text; in one of one line enter takes it."""

    def __init__(self, *, enter_takes: bool) -> None:
        super().__init__(longest=LONGEST, id="change-text")
        self._enter_takes = enter_takes

    async def _on_key(self, event: events.Key) -> None:
        """Enter takes a command; ctrl+j writes one more line of it."""
        if self._enter_takes and event.key in ("enter", "ctrl+j"):
            event.prevent_default()
            event.stop()
            if event.key == "enter":
                await self.screen.run_action("take")
            else:
                self.insert("\n")
        else:
            await super()._on_key(event)


class ChangeScreen(FormScreen[str]):
    """Closes with the text to which `problem` does not object, or with None."""

    BINDINGS = bindings(Where.CHANGE_CALL)
    AUTO_FOCUS = "ChangeArea"

    def __init__(
        self, title: Clean, text: str, *, problem: Callable[[str], str], enter_takes: bool
    ) -> None:
        super().__init__()
        self._title, self._text, self._problem = title, text, problem
        self._enter_takes = enter_takes

    def compose(self) -> ComposeResult:
        """The text, what is wrong with it, how to take it."""
        takes = "enter run   ctrl+j new line" if self._enter_takes else "ctrl+s apply"
        with Dialog(self._title, own(f"{takes}   esc close"), id="change-call"):
            yield ChangeArea(enter_takes=self._enter_takes)
            yield Label(id="problem")
            yield from self.buttons()

    def on_mount(self) -> None:
        """Begin at the end of the text, every character of it visible."""
        area = self.query_one(ChangeArea)
        area.text = visible(self._text)
        area.move_cursor(area.document.end)
        if area.text != self._text:
            words = f"it {HOLDS_CONTROLS}, shown as marks; the marks are saved as text"
            self.query_one("#problem", Label).update(clean(words))

    def action_take(self) -> None:
        """Take what stands here."""
        text = self.query_one(ChangeArea).text
        problem = self._problem(text)
        self.query_one("#problem", Label).update(clean_line(problem))
        if not problem:
            self.dismiss(text)
