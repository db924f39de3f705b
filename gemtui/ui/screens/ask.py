"""Ask for one line of text."""

from __future__ import annotations

from collections.abc import Callable

from textual import on
from textual.app import ComposeResult

from gemtui.text import Clean, clean, visible_line
from gemtui.ui.asking import DialogScreen
from gemtui.ui.clean import Dialog, Input, Label
from gemtui.ui.keys import Where, bindings
from gemtui.ui.render.lines import own


class AskScreen(DialogScreen[str]):
    """Closes with a text of which `problem` has nothing to say, or with None."""

    BINDINGS = bindings(Where.DIALOG)

    def __init__(self, question: Clean, *, value: str, problem: Callable[[str], str]) -> None:
        super().__init__()
        self._question, self._value, self._problem = question, value, problem

    def compose(self) -> ComposeResult:
        """The input, and what is wrong with it."""
        with Dialog(self._question, own("enter goes on   esc closes")):
            yield Input(visible_line(self._value))
            yield Label(id="problem")

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        problem = self._problem(event.value)
        self.query_one("#problem", Label).update(clean(problem))
        if not problem:
            self.dismiss(event.value)

    def action_close(self) -> None:
        """Leave things as they are."""
        self.dismiss(None)
