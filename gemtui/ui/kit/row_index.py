"""The vertical positions of the rows of a list."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain
from typing import Generic, NamedTuple, TypeVar

Item = TypeVar("Item")
_FAR = 1_000
"""Most rows that are searched for one that can have the cursor."""


class RowKind(NamedTuple, Generic[Item]):
    """What a list knows of its rows without drawing them.

    `key`: identifies a row. `stops`: returns whether a row can have the cursor; headings can't.
    `height`: returns the lines of a row in a list of a width; None if each row has one line.
    """

    key: Callable[[Item], object]
    stops: Callable[[Item], bool]
    height: Callable[[Item, int], int] | None


class RowIndex(Generic[Item]):
    """The rows of a list that is `width` cells wide, with their line numbers.

    In these methods, a place is the index of a row.
    """

    def __init__(self, kind: RowKind[Item], rows: Sequence[Item] = (), width: int = 0) -> None:
        self._kind, self.rows = kind, rows
        self._tops: Sequence[int] = ()
        self.measure(width)

    def measure(self, width: int) -> None:
        """Recompute the positions for another width."""
        height, rows = self._kind.height, self.rows
        if height is None:
            self._tops = range(len(rows) + 1)
        else:
            self._tops = [*accumulate((height(row, width) for row in rows), initial=0)]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def height(self) -> int:
        """The number of lines of all rows."""
        return self._tops[-1]

    def key(self, place: int) -> object:
        """Return the key of a row."""
        return self._kind.key(self.rows[place])

    @cached_property
    def _by_key(self) -> Mapping[object, int]:
        last = len(self.rows) - 1
        return {self._kind.key(row): last - at for at, row in enumerate(reversed(self.rows))}

    def find(self, key: object, near: int = -1) -> int | None:
        """Return the index of a row with this key; None if there is no such row.

        `near`: the index at which it probably is. Elsewhere, all keys are hashed once.
        """
        if 0 <= near < len(self.rows) and self.key(near) == key:
            return near
        if key is None:
            return None
        try:
            return self._by_key.get(key)
        except TypeError:  # the key is a row that can't be hashed, because it contains a mapping
            found = (at for at in range(len(self.rows)) if self.key(at) == key)
            return next(found, None)

    def nearest(self, place: int) -> int:
        """Return the nearest valid index; 0 in an empty list."""
        return max(0, min(place, len(self.rows) - 1))

    def stop(self, place: int, step: int = 1) -> int:
        """Return the nearest index that the cursor can have, preferring the direction of `step`."""
        place, end = self.nearest(place), len(self.rows)
        below, above = range(place, min(end, place + _FAR)), range(place, max(-1, place - _FAR), -1)
        around = chain(below, above) if step > 0 else chain(above, below)
        return next((at for at in around if self.stops(at)), place)

    def stops(self, place: int) -> bool:
        """Return whether there is a row that the cursor can be on."""
        return 0 <= place < len(self.rows) and self._kind.stops(self.rows[place])

    def at(self, line: int) -> int:
        """Return the index of the row on a line of the list, or of the nearest row."""
        return self.nearest(bisect_right(self._tops, line) - 1)

    def top(self, place: int) -> int:
        """Return the first line of a row."""
        return self._tops[place]

    def bottom(self, place: int) -> int:
        """Return the line below a row."""
        return self._tops[place + 1]

    def is_within(self, place: int, top: int, bottom: int) -> bool:
        """Return whether a row exists and is completely between two lines.

        `bottom` is exclusive.
        """
        return place < len(self) and top <= self.top(place) and self.bottom(place) <= bottom
