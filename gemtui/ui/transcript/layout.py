"""The messages of a transcript, rendered when they become visible.

A message that has never been visible has an estimated height. When its actual height turns out to
be different, everything below it moves. `Layout.anchor` and `Layout.settle` keep what is visible in
place.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress, count
from operator import is_not
from typing import NamedTuple

from gemtui.transcript.model import Outline
from gemtui.ui.transcript.cursor import LAST, Cursor
from gemtui.ui.transcript.message import Drawn, DrawnBlock


class Heights:
    """Message heights in lines (0 or more), stored as a binary indexed tree.

    Changing a height, finding a message's first line, and finding the message on a line take about
    log2(n) steps for n messages; building the tree takes n.
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
        node = index + 1
        sums = self._sums
        while change and node < len(sums):
            sums[node] += change
            node += node & -node

    @property
    def total(self) -> int:
        """The total number of lines."""
        return self.top(len(self._each))

    def top(self, index: int) -> int:
        """Return the number of the first line of message `index`.

        For `len(self)`, this is the total number of lines.
        """
        lines = 0
        while index:
            lines += self._sums[index]
            index &= index - 1
        return lines

    def find(self, line: int) -> tuple[int, int]:
        """Return the index of the message on `line`, and the line's index in the message.

        Raises IndexError for a line outside the transcript.
        """
        if not 0 <= line < self.total:
            raise IndexError(line)
        index = 0
        sums = self._sums
        step = 1 << len(sums).bit_length()
        while step := step >> 1:
            if index + step < len(sums) and sums[index + step] <= line:
                index += step
                line -= sums[index]
        return index, line

    def extend(self, heights: Iterable[int]) -> None:
        """Append messages with these heights."""
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
        """Add the sum of a node of the tree to its parent's, if the parent has been added."""
        parent = node + (node & -node)
        if parent < len(self._sums):
            self._sums[parent] += self._sums[node]

    def truncate(self, count: int) -> None:
        """Keep only the first `count` messages."""
        del self._each[count:]
        del self._sums[count + 1 :]


CACHED_LINES = 5_000
"""Maximum number of rendered lines to cache (about 2 KB each)."""


class Anchor(NamedTuple):
    """A line of a message, and the row of the window on which it must stay.

    `message`: the message's index. `line`: the line's index in the message. `row`: 0 for the top
    row.
    """

    message: int
    line: int
    row: int


class LayoutLine(NamedTuple):
    """A line of the layout.

    `message`: the index of its message. `drawn`: the rendered message. `line`: the line's index in
    it.
    """

    message: int
    drawn: Drawn
    line: int


class Layout:
    """The messages of a transcript one below the other: their heights and renderings.

    `draw(index)`: returns the message, rendered. `guess(outline)`: returns a message's estimated
    height. `room`: up to how many lines to keep rendered.
    """

    def __init__(
        self,
        draw: Callable[[int], Drawn],
        guess: Callable[[Outline], int],
        *,
        room: int = CACHED_LINES,
    ) -> None:
        self._draw, self._guess, self._room = draw, guess, room
        self.outlines: Sequence[Outline] = ()
        self.heights = Heights()
        self._measured = bytearray()
        self._drawings: OrderedDict[str, tuple[Outline, Drawn]] = OrderedDict()
        self._lines = 0

    def __len__(self) -> int:
        return len(self.outlines)

    def show(self, outlines: Sequence[Outline]) -> int:
        """Replace the transcript's messages with a newer state of them.

        Returns how many messages at the start are unchanged, that is, the same objects. The others
        keep their old heights until they become visible, and so does the last unchanged one, whose
        rendering depends on the next one.
        """
        same = _common(self.outlines, outlines)
        if same == len(self) == len(outlines):
            return same
        changed = max(0, same - 1)
        old = {
            outline.id: self.heights[index]
            for index, outline in enumerate(self.outlines[changed:], changed)
        }
        for id in old:
            self._discard(id)
        self.outlines = outlines
        self.heights.truncate(changed)
        self.heights.extend(
            [old.get(outline.id) or self._guess(outline) for outline in outlines[changed:]]
        )
        self._measured[changed:] = bytes(len(outlines) - changed)
        return same

    def key(self, index: int) -> tuple[int, str]:
        """Return a message's index and id, which `index_of` needs to find it later."""
        return index, self.outlines[index].id if 0 <= index < len(self) else ""

    def index_of(self, index: int, key: str, same: int) -> int:
        """Return a message's current index, or a nearby one if the message is gone.

        `index`, `key`: the result of `Layout.key` before the newer state was shown. `same`: what
        `show` returned for that state.
        """
        if index < same:
            return index
        indexes = (i for i in range(same, len(self)) if self.outlines[i].id == key)
        return next(indexes, max(0, min(index, len(self) - 1)))

    def drawn(self, index: int) -> Drawn:
        """Return message `index` rendered. Its height is exact from then on."""
        outline = self.outlines[index]
        kept = self._drawings.get(outline.id)
        if kept is not None and kept[0] is outline:
            self._drawings.move_to_end(outline.id)
            return kept[1]
        self._discard(outline.id)
        drawn = self._draw(index)
        self._drawings[outline.id] = (outline, drawn)
        self._lines += drawn.height
        self.heights[index] = drawn.height
        self._measured[index] = 1
        return drawn

    def forget(self, index: int) -> None:
        """Discard the rendering of message `index`, because it must be rendered again."""
        self._discard(self.outlines[index].id)
        self._measured[index] = 0

    def forget_all(self) -> None:
        """Discard all renderings; their heights are kept as estimates."""
        self._drawings.clear()
        self._lines = 0
        self._measured = bytearray(len(self.outlines))

    def anchor(self, top: int, height: int) -> Anchor:
        """Return an anchor that keeps the visible part of the layout in place.

        `top`: the number of the line that is on the top row. `height`: the number of rows. The
        anchor is in the first visible message (or the next one below) whose height is known, or
        else in the message at the top.
        """
        first, line = self.heights.find(self._clamped(top, 1))
        row = -line
        for index in range(first, len(self)):
            if self._measured[index]:
                return Anchor(index, max(0, -row), max(0, row))
            row += self.heights[index]
            if row > height:
                break
        return Anchor(first, line, 0)

    def settle(self, anchor: Anchor, height: int) -> int:
        """Render everything visible around an anchor.

        Returns the line of the layout that is on the top row. The anchor doesn't stay on its row if
        the layout would then start below the top row or end above the last one. `height`: the
        number of rows.
        """
        line = self._measure(anchor)
        row = anchor.row - line
        seen = self._fill_down(anchor.message, height - row) + self._fill_up(anchor.message, row)
        top = self.heights.top(anchor.message) - row
        if top > (end := self._clamped(top, height)):
            seen += self._fill_up(len(self), height)
            top = max(0, self.heights.total - height)
        elif top < end:
            seen += self._fill_down(0, height)
            top = 0
        self._trim(seen)
        return top

    def settle_end(self, height: int) -> int:
        """Render the last `height` lines; return the number of the line that is then on top."""
        self._trim(self._fill_up(len(self), height))
        return max(0, self.heights.total - height)

    def place(self, line: int) -> LayoutLine | None:
        """Return the contents of a line of the layout, or None beyond its end."""
        if not 0 <= line < self.heights.total:
            return None
        index, inside = self.heights.find(line)
        drawn = self.drawn(index)
        return LayoutLine(index, drawn, inside) if inside < drawn.height else None

    def _clamped(self, top: int, height: int) -> int:
        return max(0, min(top, self.heights.total - height))

    def _measure(self, anchor: Anchor) -> int:
        """Render the anchor's message, and return which line of it the anchor is on.

        If the message's height has changed, this line is moved in proportion.
        """
        before = self.heights[anchor.message]
        after = self.drawn(anchor.message).height
        line = anchor.line if after == before else anchor.line * after // max(1, before)
        return min(line, max(0, after - 1))

    def _fill_down(self, index: int, rows: int) -> int:
        """Render messages from `index` on until they fill `rows` rows.

        Returns how many rows they fill.
        """
        first = index
        while rows > 0 and index < len(self):
            rows -= self.drawn(index).height
            index += 1
        return index - first

    def _fill_up(self, index: int, rows: int) -> int:
        """Render messages before `index` until they fill `rows` rows.

        Returns how many rows they fill.
        """
        last = index
        while rows > 0 and index > 0:
            index -= 1
            rows -= self.drawn(index).height
        return last - index

    def _discard(self, key: str) -> None:
        kept = self._drawings.pop(key, None)
        if kept is not None:
            self._lines -= kept[1].height

    def _trim(self, seen: int) -> None:
        """Discard the least recently used renderings until the rest fit into `room`.

        At least the `seen` most recent ones are always kept.
        """
        while self._lines > self._room and len(self._drawings) > seen:
            self._discard(next(iter(self._drawings)))


def _common(old: Sequence[Outline], new: Sequence[Outline]) -> int:
    """Return how many outlines at the start are the same objects in both sequences."""
    changed = compress(count(), map(is_not, old, new))
    return next(changed, min(len(old), len(new)))


class Stops:
    """The places in a layout that the cursor can be on: blocks of messages.

    A message without blocks counts as one place. If a method needs a message that isn't rendered
    yet, it renders the message.
    """

    def __init__(self, sheet: Layout) -> None:
        self._sheet = sheet

    def of(self, message: int) -> tuple[DrawnBlock, ...]:
        """Return the blocks of a message that the cursor can be on."""
        parts = self._sheet.drawn(message).parts
        seen = [part for part in parts if part.block is not None and part.start < part.end]
        return tuple(seen) or parts[:1]

    def part(self, cursor: Cursor) -> DrawnBlock:
        """Return the block under a cursor, or the nearest one above."""
        stops = self.of(cursor.message)
        wanted = -1 if cursor.block is None else cursor.block
        return next((p for p in reversed(stops) if p.block is None or p.block <= wanted), stops[0])

    def real(self, cursor: Cursor) -> Cursor:
        """Return this cursor if its block is shown, or else the cursor on the block above."""
        return Cursor(cursor.message, self.part(cursor).block)

    def inside(self, cursor: Cursor) -> tuple[int, int]:
        """Return the range of lines of a message that belong to the block under a cursor.

        The head line belongs to the first block, and the empty line at the end to the last block.
        """
        stops = self.of(cursor.message)
        part = self.part(cursor)
        end = self._sheet.drawn(cursor.message).height if part is stops[-1] else part.end
        return 0 if part is stops[0] else part.start, end

    def at(self, place: LayoutLine, *, below: bool = False) -> Cursor:
        """Return the cursor for the block on a line.

        Between two blocks, this is the upper one, or the lower one if `below` is true.
        """
        stops = self.of(place.message)
        if below:
            part = next((p for p in stops if p.end > place.line), stops[-1])
        else:
            part = next((p for p in reversed(stops) if p.start <= place.line), stops[0])
        return Cursor(place.message, part.block)

    def is_last(self, cursor: Cursor, *, drawn: bool) -> bool:
        """Return whether the cursor is on the last block of the transcript.

        `drawn`: if False, any block of the last message counts as the last one, so that nothing has
        to be rendered.
        """
        if cursor.message != len(self._sheet) - 1:
            return False
        return not drawn or self.part(cursor) is self.of(cursor.message)[-1]

    def beside(self, cursor: Cursor, step: int) -> Cursor | None:
        """Return the block below (`step` 1) or above (-1), or None if there is none.

        If that block is in a different message, which isn't rendered yet, the result may name a
        block that doesn't exist.
        """
        message, block = cursor
        blocks = [part.block for part in self.of(message)]
        at = blocks.index(block) + step
        if 0 <= at < len(blocks):
            return Cursor(message, blocks[at])
        there = 0 <= message + step < len(self._sheet)
        return Cursor(message + step, None if step > 0 else LAST) if there else None
