"""The heights of many messages: where each begins, and which one stands on a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


class Heights:
    """Heights in lines, 0 or more, as a binary indexed tree.

    Changing one height, asking where a message begins and finding the message on a line take
    about log2(n) steps; building takes n.
    """

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._each: list[int] = []
        self._sums: list[int] = [0]
        self.extend(heights)

    def __len__(self) -> int:
        return len(self._each)

    def __iter__(self) -> Iterator[int]:
        return iter(self._each)

    def __getitem__(self, index: int) -> int:
        return self._each[index]

    def __setitem__(self, index: int, height: int) -> None:
        change = height - self._each[index]
        self._each[index] = height
        node, sums = index + 1, self._sums
        while change and node < len(sums):
            sums[node] += change
            node += node & -node

    @property
    def total(self) -> int:
        """Lines of all messages together."""
        return self.top(len(self._each))

    def top(self, index: int) -> int:
        """The line on which message `index` begins; for `len(self)` the total."""
        lines = 0
        while index:
            lines += self._sums[index]
            index &= index - 1
        return lines

    def find(self, line: int) -> tuple[int, int]:
        """The message on `line`, and which of its lines that is; IndexError outside."""
        if not 0 <= line < self.total:
            raise IndexError(line)
        index, sums = 0, self._sums
        step = 1 << len(sums).bit_length()
        while step := step >> 1:
            if index + step < len(sums) and sums[index + step] <= line:
                index += step
                line -= sums[index]
        return index, line

    def extend(self, heights: Iterable[int]) -> None:
        """Puts more messages at the end."""
        old = len(self._each)
        self._each.extend(heights)
        sums = self._sums
        sums.extend(self._each[old:])
        waiting = old
        while waiting:
            self._lift(waiting)
            waiting &= waiting - 1
        for node in range(old + 1, len(sums)):
            parent = node + (node & -node)
            if parent < len(sums):
                sums[parent] += sums[node]

    def _lift(self, node: int) -> None:
        """Adds an old node to its parent if that is new."""
        parent = node + (node & -node)
        if parent < len(self._sums):
            self._sums[parent] += self._sums[node]

    def truncate(self, count: int) -> None:
        """Keeps the first `count` messages."""
        del self._each[count:]
        del self._sums[count + 1 :]
