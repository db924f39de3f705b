"""A question with several answers, each with what it means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.content import Content

from gemtui.text import Clean
from gemtui.ui.asking import DialogScreen
from gemtui.ui.clean import Dialog, Option, OptionList, Static
from gemtui.ui.keys import Where, bindings
from gemtui.ui.render.lines import own


class Choice(NamedTuple):
    """One answer: what it is called here, what it says, what it means."""

    id: str
    label: Clean
    meaning: Clean = Clean("")


class ChooseScreen(DialogScreen[str]):
    """Closes with the id of the answer, or with None. The first answer is under the cursor."""

    BINDINGS = bindings(Where.DIALOG)

    def __init__(self, question: Clean, about: Sequence[Clean], choices: Sequence[Choice]) -> None:
        super().__init__()
        self._question, self._about, self._choices = question, about, choices

    def compose(self) -> ComposeResult:
        """What it is about, then the answers."""
        with Dialog(self._question, own("enter chooses   esc closes")):
            if self._about:
                yield Static(Content("\n").join(map(Content, (*self._about, Clean("")))))
            yield OptionList(*(Option(_row(choice), id=choice.id) for choice in self._choices))

    def on_mount(self) -> None:
        """Answer by the arrows at once."""
        offered = self.query_one(OptionList)
        offered.highlighted = 0
        offered.focus()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_id)

    def action_close(self) -> None:
        """No answer."""
        self.dismiss(None)


def _row(choice: Choice) -> Content:
    return Content.assemble((choice.label, "bold"), "  ", (choice.meaning, "dim"))
