"""The positions of rows in the session list."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import NamedTuple

from gemtui.sessions.listing import DayHeading, Row, SessionRow
from gemtui.ui.sessions.row import row_height


class ScrollAnchor(NamedTuple):
    """The row `key` is on row `line` of the screen."""

    key: str
    line: int


class RowIndex:
    """Rows one below the other in a list of `width` cells; a place is a row's index."""

    def __init__(self, rows: tuple[Row, ...] = (), width: int = 0) -> None:
        self.rows = rows
        self._by_key = {row.key: place for place, row in enumerate(rows)}
        self.measure(width)

    def measure(self, width: int) -> None:
        """Recompute the positions for another width."""
        self._tops = list(accumulate((row_height(row, width) for row in self.rows), initial=0))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def height(self) -> int:
        """The number of lines of all rows."""
        return self._tops[-1]

    @property
    def first_session(self) -> int:
        """The place of the first row that is not a heading; 0 if there is none."""
        rows = enumerate(self.rows)
        return next((place for place, row in rows if isinstance(row, SessionRow)), 0)

    def find(self, key: str | None) -> int | None:
        """Return the place of the row with this key; None if there is none."""
        return None if key is None else self._by_key.get(key)

    def nearest(self, place: int) -> int:
        """Return a valid place: this one, else the first or last; 0 in an empty list."""
        return max(0, min(place, len(self.rows) - 1))

    def stop(self, place: int, step: int = 1) -> int:
        """Return the nearest selectable place, preferably by `step`."""
        place = self.nearest(place)
        there = (place, place + step, place - step)  # day headings are never adjacent
        return next((at for at in there if self.stops(at)), place)

    def stops(self, place: int) -> bool:
        """Return whether the cursor can be on a place, which excludes day headings."""
        return 0 <= place < len(self) and not isinstance(self.rows[place], DayHeading)

    def at(self, line: int) -> int:
        """Return the place on a line of the list, or the nearest one."""
        return self.nearest(bisect_right(self._tops, line) - 1)

    def top(self, place: int) -> int:
        """Return the first line of a place."""
        return self._tops[place]

    def bottom(self, place: int) -> int:
        """Return the line below a place."""
        return self._tops[place + 1]

    def within(self, place: int, top: int, bottom: int) -> bool:
        """Return whether a place exists and is completely between two lines.

        `bottom` is not included.
        """
        return place < len(self) and top <= self.top(place) and self.bottom(place) <= bottom
