"""Screens with a list and, beside it, details of the row under the cursor."""

from __future__ import annotations

from typing import Any, Generic

from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.screen import ScreenResultType

from gemtui.ui.kit.bars import BarLine
from gemtui.ui.kit.row_list import Item, RowList
from gemtui.ui.kit.screens import FullScreen
from gemtui.ui.kit.text_view import LineView


class RowsBesideLines(Container):
    """A list with a detail view beside it, or below it on a narrow screen.

    `above`: the bar with the list's heading. `heading`: the bar with the detail view's heading.
    """

    def __init__(self, rows: RowList[Any], side: LineView) -> None:
        super().__init__(id="write-panes")
        self.rows, self.side = rows, side
        self.above = BarLine(id="rows-heading", classes="heading")
        self.heading = BarLine(id="write-heading", classes="heading")

    def compose(self) -> ComposeResult:
        yield Vertical(self.above, self.rows, id="write-list", classes="pane")
        yield Vertical(self.heading, self.side, id="write-side", classes="pane")

    def switch(self) -> None:
        """Move the focus from the list to the detail view, or back."""
        (self.rows if self.side.has_focus else self.side).focus()


class BesideScreen(FullScreen[ScreenResultType], Generic[ScreenResultType, Item]):
    """A screen with a list and, beside it, details of the row under the cursor."""

    def beside(self, rows: RowList[Item], side: LineView) -> ComposeResult:
        """Yield the screen's widgets: the list, its detail view, and the bars around them."""
        yield from self.framed(RowsBesideLines(rows, side))

    @property
    def panes(self) -> RowsBesideLines:
        """The list and the detail view, with their headings."""
        return self.query_one(RowsBesideLines)

    @property
    def rows(self) -> RowList[Item]:
        """The list of rows."""
        return self.panes.rows

    def action_other_part(self) -> None:
        self.panes.switch()
