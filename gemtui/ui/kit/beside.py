"""A list with a side pane that shows details of the selected row."""

from __future__ import annotations

from typing import Any, Generic

from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.screen import ScreenResultType

from gemtui.ui.kit.bars import BarLine
from gemtui.ui.kit.full_screen import FullScreen
from gemtui.ui.kit.line_view import LineView
from gemtui.ui.kit.row_list import Item, RowList


class RowsBesideLines(Container):
    """A list with a detail view beside it, or below it on a narrow screen.

    `above`: the heading of the list. `heading`: the heading of the detail view.
    """

    def __init__(self, rows: RowList[Any], side: LineView) -> None:
        super().__init__(id="write-panes")
        self.rows, self.side = rows, side
        self.above = BarLine(id="rows-heading", classes="heading")
        self.heading = BarLine(id="write-heading", classes="heading")

    def compose(self) -> ComposeResult:
        yield Vertical(self.above, self.rows, id="write-list")
        yield Vertical(self.heading, self.side, id="write-side")

    def switch(self) -> None:
        """Switch the focus between the list and the detail view."""
        (self.rows if self.side.has_focus else self.side).focus()


class BesideScreen(FullScreen[ScreenResultType], Generic[ScreenResultType, Item]):
    """A screen with a list, and beside it the details of the row under the cursor."""

    def beside(self, rows: RowList[Item], side: LineView) -> ComposeResult:
        """Yield all widgets of the screen, given its list and its detail view."""
        yield from self.framed(RowsBesideLines(rows, side))

    @property
    def panes(self) -> RowsBesideLines:
        """The list and the details, with their headings."""
        return self.query_one(RowsBesideLines)

    @property
    def rows(self) -> RowList[Item]:
        """The rows."""
        return self.panes.rows

    def action_other_part(self) -> None:
        self.panes.switch()
