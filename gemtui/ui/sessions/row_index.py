"""Where the rows of the list of sessions stand."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import NamedTuple

from gemtui.sessions.listing import DayHeading, Row, SessionRow
from gemtui.ui.sessions.row import row_height


class ScrollAnchor(NamedTuple):
    """The row `key` stands on row `line` of the screen."""

    key: str
    line: int


class RowIndex:
    """Rows one below the other in a list of `width` cells; a place is a row's index."""

    def __init__(self, rows: tuple[Row, ...] = (), width: int = 0) -> None:
        self.rows = rows
        self._by_key = {row.key: place for place, row in enumerate(rows)}
        self.measure(width)

    def measure(self, width: int) -> None:
        """The list has another width."""
        self._tops = list(accumulate((row_height(row, width) for row in self.rows), initial=0))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def height(self) -> int:
        """Lines of all rows."""
        return self._tops[-1]

    @property
    def first_session(self) -> int:
        """The first place that is not a heading; 0 if there is none."""
        rows = enumerate(self.rows)
        return next((place for place, row in rows if isinstance(row, SessionRow)), 0)

    def find(self, key: str | None) -> int | None:
        """Where the row with this key stands."""
        return None if key is None else self._by_key.get(key)

    def nearest(self, place: int) -> int:
        """This place, or the first or last one if there is none; 0 in an empty list."""
        return max(0, min(place, len(self.rows) - 1))

    def stop(self, place: int, step: int = 1) -> int:
        """The nearest place for a cursor in the direction of `step`, else in the other one."""
        place = self.nearest(place)
        there = (place, place + step, place - step)  # no two headings of days follow each other
        return next((at for at in there if self.stops(at)), place)

    def stops(self, place: int) -> bool:
        """Whether a cursor can be at a place: not on the heading of a day."""
        return 0 <= place < len(self) and not isinstance(self.rows[place], DayHeading)

    def at(self, line: int) -> int:
        """The place on a line of the list, the nearest one outside of it."""
        return self.nearest(bisect_right(self._tops, line) - 1)

    def top(self, place: int) -> int:
        """The first line of a place."""
        return self._tops[place]

    def bottom(self, place: int) -> int:
        """The line below a place."""
        return self._tops[place + 1]

    def within(self, place: int, top: int, bottom: int) -> bool:
        """Whether a place is there, and whole between two lines (`bottom` not included)."""
        return place < len(self) and top <= self.top(place) and self.bottom(place) <= bottom
