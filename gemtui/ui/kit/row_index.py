"""The vertical positions of a list's rows, which may take several lines each."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain
from typing import Generic, NamedTuple, TypeVar

Item = TypeVar("Item")
_FAR = 1_000
"""Maximum number of rows, in each direction, to check for one that can be chosen."""


class RowKind(NamedTuple, Generic[Item]):
    """The functions by which a list learns about its rows without rendering them.

    `key(item)`: returns a value that identifies the row. `stops(item)`: returns whether the cursor
    can be on the row; False for headings. `height(item, width)`: returns the number of lines the
    row takes at this width; None instead of a function if every row takes one line.
    """

    key: Callable[[Item], object]
    stops: Callable[[Item], bool]
    height: Callable[[Item, int], int] | None


class RowIndex(Generic[Item]):
    """The rows of a list `width` cells wide, with the lines that each row takes up.

    In the methods, `place` is a row's index.
    """

    def __init__(self, kind: RowKind[Item], rows: Sequence[Item] = (), width: int = 0) -> None:
        self._kind, self.rows = kind, rows
        self._tops: Sequence[int] = ()
        self.measure(width)

    def measure(self, width: int) -> None:
        """Recompute the rows' positions for a new width."""
        height, rows = self._kind.height, self.rows
        if height is None:
            self._tops = range(len(rows) + 1)
        else:
            self._tops = [*accumulate((height(row, width) for row in rows), initial=0)]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def height(self) -> int:
        """The total number of lines that the rows take up."""
        return self._tops[-1]

    def key(self, place: int) -> object:
        """Return the value that identifies a row."""
        return self._kind.key(self.rows[place])

    @cached_property
    def _by_key(self) -> Mapping[object, int]:
        last = len(self.rows) - 1
        return {self._kind.key(row): last - at for at, row in enumerate(reversed(self.rows))}

    def find(self, key: object, near: int = -1) -> int | None:
        """Return the index of the row with this key, or None.

        `near`: an index to check first, because the row is probably there. If it isn't there, a
        mapping of all keys to indices is built once.
        """
        if 0 <= near < len(self.rows) and self.key(near) == key:
            return near
        if key is None:
            return None
        try:
            return self._by_key.get(key)
        except TypeError:  # the key contains a mapping, so it isn't hashable
            found = (at for at in range(len(self.rows)) if self.key(at) == key)
            return next(found, None)

    def nearest(self, place: int) -> int:
        """Return `place` or, if there is no such row, the closest index that has one.

        Returns 0 if there are no rows.
        """
        return max(0, min(place, len(self.rows) - 1))

    def stop(self, place: int, step: int = 1) -> int:
        """Return the index of the first row from `place` that can have the cursor.

        `step`: the direction in which to look first, 1 for down or -1 for up. If there is no such
        row in either direction, `place` is returned.
        """
        place, end = self.nearest(place), len(self.rows)
        below, above = range(place, min(end, place + _FAR)), range(place, max(-1, place - _FAR), -1)
        around = chain(below, above) if step > 0 else chain(above, below)
        return next((at for at in around if self.stops(at)), place)

    def stops(self, place: int) -> bool:
        """Return whether this row exists and the cursor can be on it."""
        return 0 <= place < len(self.rows) and self._kind.stops(self.rows[place])

    def at(self, line: int) -> int:
        """Return the index of the row that covers this line, or of the nearest row."""
        return self.nearest(bisect_right(self._tops, line) - 1)

    def top(self, place: int) -> int:
        """Return the number of a row's first line."""
        return self._tops[place]

    def bottom(self, place: int) -> int:
        """Return the number of the line after a row's last line."""
        return self._tops[place + 1]

    def is_within(self, place: int, top: int, bottom: int) -> bool:
        """Return whether a row exists and lies completely within a range of lines.

        `top`: the first line of the range. `bottom`: the line after its last one.
        """
        return place < len(self) and top <= self.top(place) and self.bottom(place) <= bottom
