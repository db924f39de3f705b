"""Ask for one line of text."""

from __future__ import annotations

from collections.abc import Callable

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Label

from gemtui.text import Clean
from gemtui.ui.keys import Where, bindings


class AskScreen(ModalScreen[str]):
    """Closes with a text of which `problem` has nothing to say, or with None."""

    BINDINGS = bindings(Where.DIALOG)

    def __init__(self, question: Clean, *, value: str, problem: Callable[[str], str]) -> None:
        super().__init__()
        self._question, self._value, self._problem = question, value, problem

    def compose(self) -> ComposeResult:
        """The input, and what is wrong with it."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = self._question
            dialog.border_subtitle = "enter goes on   esc closes"
            yield Input(self._value, compact=True)
            yield Label(id="problem", markup=False)

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        problem = self._problem(event.value)
        self.query_one("#problem", Label).update(problem)
        if not problem:
            self.dismiss(event.value)

    def action_close(self) -> None:
        """Leave things as they are."""
        self.dismiss(None)
