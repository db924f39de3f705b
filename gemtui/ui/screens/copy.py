"""Which of several things to copy."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult
from textual.content import Content

from gemtui.text import clean_line, ellipsis
from gemtui.transcript.model import excerpt
from gemtui.ui.asking import DialogScreen
from gemtui.ui.clean import Dialog, Option, OptionList
from gemtui.ui.keys import Where, bindings
from gemtui.ui.render.lines import own
from gemtui.ui.widgets.copying import Copy

FIRST = 40
"""Cells of a first line that are shown."""


class CopyScreen(DialogScreen[Copy | None]):
    """Closes with what was chosen, or with None."""

    BINDINGS = bindings(Where.DIALOG)

    def __init__(self, copies: Sequence[Copy]) -> None:
        super().__init__()
        self._copies = copies

    def compose(self) -> ComposeResult:
        """Each thing with its first line."""
        with Dialog(own("Copy"), own("enter copies   esc closes")):
            yield OptionList(*(Option(_row(copy)) for copy in self._copies))

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._copies[event.option_index])

    def action_close(self) -> None:
        """Close without copying."""
        self.dismiss(None)


def _row(copy: Copy) -> Content:
    first = ellipsis(clean_line(excerpt(copy.text)), FIRST)
    return Content.assemble(clean_line(copy.what), "  ", (first, "dim"))
