"""Rendering of tables whose wide columns share the available width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import zip_longest

from rich.style import Style

from gemtui.ui.draw.lines import Line, Piece, Pieces, width_of, wrap
from gemtui.ui.draw.theme import BOLD, Look, Role

NARROWEST = 4
"""Minimum width of a column in cells.

If the columns don't fit even so, each row is shown as a list of names and values.
"""
_BETWEEN = 3


class Side(StrEnum):
    """The alignment of a column."""

    LEFT = "left"
    CENTER = "center"
    RIGHT = "right"


def draw_table(
    head: Sequence[Pieces], rows: Sequence[Sequence[Pieces]], look: Look, sides: Sequence[Side] = ()
) -> Iterator[Line]:
    """Yield the lines of a table with as many columns as `head` has cells.

    Missing cells are empty, and surplus ones are left out. `sides`: the alignment of each column;
    () aligns all columns to the left.
    """
    sides = sides or [Side.LEFT] * len(head)
    widths = _widths(head, rows, look.width)
    if widths is None:
        yield from _records(head, rows, look)
        return
    yield from _row([_bold(cell) for cell in head], widths, sides, look)
    cross = f"{look.glyphs.rule}{look.glyphs.cross}{look.glyphs.rule}"
    rule = cross.join(look.glyphs.rule * width for width in widths)
    yield Line((Piece(rule, look[Role.BORDER]),), width_of((Piece(rule, look[Role.BORDER]),)))
    for row in rows:
        yield from _row(row, widths, sides, look)


def _bold(cell: Pieces) -> Pieces:
    return tuple(Piece(text, style + BOLD) for text, style in cell)


def _widths(
    head: Sequence[Pieces], rows: Sequence[Sequence[Pieces]], width: int
) -> list[int] | None:
    """Return the width of each column, or None if the columns don't fit into `width`."""
    wanted = [max(1, width_of(cell)) for cell in head]
    for row in rows:
        for column, cell in enumerate(row[: len(wanted)]):
            wanted[column] = max(wanted[column], width_of(cell))
    room = width - _BETWEEN * (len(wanted) - 1)
    if room < sum(min(NARROWEST, size) for size in wanted):
        return None
    return _shared(wanted, room)


def _shared(wanted: list[int], room: int) -> list[int]:
    """Return the columns' widths, given the widths they want and the room they have.

    No column gets more than it wants; the widest ones share what the others leave.
    """
    widths = [0] * len(wanted)
    open_columns = sorted(range(len(wanted)), key=lambda column: wanted[column])
    for index, column in enumerate(open_columns):
        widths[column] = min(wanted[column], room // (len(wanted) - index))
        room -= widths[column]
    return widths


def _row(
    cells: Sequence[Pieces], widths: list[int], sides: Sequence[Side], look: Look
) -> Iterator[Line]:
    blocks = [
        wrap(cells[column], width) if column < len(cells) else []
        for column, width in enumerate(widths)
    ]
    side = Piece(f" {look.glyphs.side} ", look[Role.BORDER])
    for lines in zip_longest(*blocks, fillvalue=Line()):
        pieces: list[Piece] = []
        for column, line in enumerate(lines):
            pieces += [side] if column else []
            gap = widths[column] - width_of(line.pieces)
            before = {Side.LEFT: 0, Side.CENTER: gap // 2, Side.RIGHT: gap}[sides[column]]
            after = 0 if column == len(widths) - 1 else gap - before
            pieces += _padded(line.pieces, before, after, side.style)
        yield Line(tuple(pieces))


def _padded(pieces: Pieces, before: int, after: int, style: Style) -> Iterator[Piece]:
    if before:
        yield Piece(" " * before, style)
    yield from pieces
    if after:
        yield Piece(" " * after, style)


def _records(
    head: Sequence[Pieces], rows: Sequence[Sequence[Pieces]], look: Look
) -> Iterator[Line]:
    for index, row in enumerate(rows):
        if index:
            yield Line()
        for name, cell in zip(head, row, strict=False):
            yield from wrap((*_bold(name), Piece(": ", look[Role.MUTED]), *cell), look.width)
