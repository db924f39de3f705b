"""A question before something that can't be taken back, with all it is about."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content

from gemtui.text import Clean
from gemtui.ui.asking import DialogScreen
from gemtui.ui.clean import Button, Dialog, Label, Static
from gemtui.ui.keys import Where, bindings
from gemtui.ui.render.lines import own


class ConfirmScreen(DialogScreen[bool]):
    """Closes with True only if the person said so; enter alone does not."""

    BINDINGS = bindings(Where.CONFIRM)
    AUTO_FOCUS = "#no"

    def __init__(
        self, question: Clean, about: Clean, lines: Sequence[Clean], *, yes: str, no: str
    ) -> None:
        super().__init__()
        self._question, self._about, self._lines = question, about, lines
        self._yes, self._no = yes, no

    def compose(self) -> ComposeResult:
        """Question, list, two buttons."""
        with Dialog(self._question):
            yield Label(Content.styled(self._about, "bold"))
            with VerticalScroll(can_focus=False):
                yield Static(Content("\n").join(map(Content, self._lines)))
            with Horizontal(classes="buttons"):
                yield Button(own(f"{self._no} (n)"), id="no")
                yield Button(own(f"{self._yes} (y)"), id="yes", variant="error")

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_confirm(self) -> None:
        """Yes."""
        self.dismiss(True)

    def action_close(self) -> None:
        """No."""
        self.dismiss(False)
