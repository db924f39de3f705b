"""A list with a side pane that shows details of the selected row."""

from __future__ import annotations

from typing import Any

from textual.app import ComposeResult
from textual.containers import Container, Vertical

from gemtui.ui.kit.bars import BarLine
from gemtui.ui.kit.line_view import LineView
from gemtui.ui.kit.row_list import RowList


class RowsBesideLines(Container):
    """A list beside a detail view, or above that view on a narrow screen.

    `above` is the heading of the list, and `heading` that of the detail view.
    """

    def __init__(self, rows: RowList[Any], side: LineView, *, mark: str) -> None:
        super().__init__(id="write-panes")
        self.rows, self.side = rows, side
        self.above = BarLine(id="rows-heading", classes="heading", mark=mark)
        self.heading = BarLine(id="write-heading", classes="heading", mark=mark)

    def compose(self) -> ComposeResult:
        """Build the list and the detail view, each under its heading."""
        yield Vertical(self.above, self.rows, id="write-list")
        yield Vertical(self.heading, self.side, id="write-side")

    def switch(self) -> None:
        """Switch the focus between the list and the detail view."""
        (self.rows if self.side.has_focus else self.side).focus()
