"""The vertical positions of rows in the session list."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import NamedTuple

from gemtui.sessions.listing import DayHeading, Row, SessionRow
from gemtui.ui.sessions.row import row_height


class ScrollAnchor(NamedTuple):
    """A row to keep in place: the row with this key is on this line of the screen."""

    key: str
    line: int


class RowIndex:
    """The rows of a list that is `width` cells wide, with their line numbers.

    In these methods, a place is the index of a row.
    """

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
        """The index of the first row that is a session; 0 if there is none."""
        rows = enumerate(self.rows)
        return next((place for place, row in rows if isinstance(row, SessionRow)), 0)

    def find(self, key: str | None) -> int | None:
        """Return the index of the row with this key; None if there is no such row."""
        return None if key is None else self._by_key.get(key)

    def nearest(self, place: int) -> int:
        """Return the nearest valid index; 0 in an empty list."""
        return max(0, min(place, len(self.rows) - 1))

    def stop(self, place: int, step: int = 1) -> int:
        """Return the nearest index that the cursor can have, preferring `step` direction."""
        place = self.nearest(place)
        there = (place, place + step, place - step)  # day headings are never adjacent
        return next((at for at in there if self.stops(at)), place)

    def stops(self, place: int) -> bool:
        """Return whether the cursor can be on a row; day headings are excluded."""
        return 0 <= place < len(self) and not isinstance(self.rows[place], DayHeading)

    def at(self, line: int) -> int:
        """Return the index of the row on a line of the list, or of the nearest row."""
        return self.nearest(bisect_right(self._tops, line) - 1)

    def top(self, place: int) -> int:
        """Return the first line of a row."""
        return self._tops[place]

    def bottom(self, place: int) -> int:
        """Return the line below a row."""
        return self._tops[place + 1]

    def within(self, place: int, top: int, bottom: int) -> bool:
        """Return whether a row exists and is completely between two lines.

        `bottom` is exclusive.
        """
        return place < len(self) and top <= self.top(place) and self.bottom(place) <= bottom
