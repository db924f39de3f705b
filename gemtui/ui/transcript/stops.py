"""Where in a transcript the cursor can be."""

from __future__ import annotations

from gemtui.ui.transcript.cursor import LAST, Cursor
from gemtui.ui.transcript.drawing import DrawnBlock
from gemtui.ui.transcript.layout import Layout, LayoutLine


class Stops:
    """The blocks in a layout that the cursor can be on.

    A message without blocks counts as one stop. If a method needs a message that isn't rendered
    yet, it renders the message.
    """

    def __init__(self, sheet: Layout) -> None:
        self._sheet = sheet

    def of(self, message: int) -> tuple[DrawnBlock, ...]:
        """Return the parts of a message that the cursor can be on."""
        parts = self._sheet.drawn(message).parts
        seen = [part for part in parts if part.block is not None and part.start < part.end]
        return tuple(seen) or parts[:1]

    def part(self, cursor: Cursor) -> DrawnBlock:
        """Return the part under a cursor, or the nearest one above."""
        stops = self.of(cursor.message)
        wanted = -1 if cursor.block is None else cursor.block
        return next((p for p in reversed(stops) if p.block is None or p.block <= wanted), stops[0])

    def real(self, cursor: Cursor) -> Cursor:
        """Return the cursor on a part that really exists."""
        return Cursor(cursor.message, self.part(cursor).block)

    def inside(self, cursor: Cursor) -> tuple[int, int]:
        """Return which lines of its message belong to the block under a cursor.

        The head line belongs to the first block, and the empty line at the end to the last block.
        """
        stops, part = self.of(cursor.message), self.part(cursor)
        end = self._sheet.drawn(cursor.message).height if part is stops[-1] else part.end
        return 0 if part is stops[0] else part.start, end

    def at(self, place: LayoutLine, *, below: bool = False) -> Cursor:
        """Return the cursor for a line; between two blocks, the upper one unless `below`."""
        stops = self.of(place.message)
        if below:
            part = next((p for p in stops if p.end > place.line), stops[-1])
        else:
            part = next((p for p in reversed(stops) if p.start <= place.line), stops[0])
        return Cursor(place.message, part.block)

    def is_last(self, cursor: Cursor, *, drawn: bool) -> bool:
        """Return whether the cursor is on the last stop (or, if not `drawn`, message)."""
        if cursor.message != len(self._sheet) - 1:
            return False
        return not drawn or self.part(cursor) is self.of(cursor.message)[-1]

    def beside(self, cursor: Cursor, step: int) -> Cursor | None:
        """Return the stop below (`step` 1) or above (`step` -1), or None at the end.

        A stop in another message may not exist, because that message isn't rendered yet.
        """
        message, block = cursor
        blocks = [part.block for part in self.of(message)]
        at = blocks.index(block) + step
        if 0 <= at < len(blocks):
            return Cursor(message, blocks[at])
        there = 0 <= message + step < len(self._sheet)
        return Cursor(message + step, None if step > 0 else LAST) if there else None
