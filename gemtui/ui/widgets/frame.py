"""One row of the screen: a line of the sheet with cursor, hits and selection on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style
from textual.selection import Selection
from textual.strip import Strip

from gemtui.ui.theme import Look, Role
from gemtui.ui.widgets.marking import Mark, bounded, marked, row_of, selected_span
from gemtui.ui.widgets.page import Page
from gemtui.ui.widgets.sheet import Place

GUTTER = 1
"""Cells at the left for the cursor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """How rows are finished: `base` lies under all, `marks` gives the hits on a line."""

    width: int
    look: Look
    base: Style
    focused: bool
    selection: Selection | None
    selected: Style
    marks: Callable[[Place, Look], Sequence[Mark]] | None


def draw_row(page: Page, row: int, frame: Frame) -> Strip:
    """The row, exactly as wide as the frame; each cell knows where a selection would begin."""
    place = page.row(row)
    if place is None:
        return Strip.blank(frame.width, frame.base)
    line = marked(place.drawn.strips[place.line], _marks(page, place, frame))
    strip = Strip([_gutter(page, place, frame), *line], GUTTER + line.cell_length)
    strip = strip.apply_offsets(-GUTTER, row_of(place.message, place.line))
    return strip.apply_style(frame.base).crop_extend(0, frame.width, frame.base)


def _marks(page: Page, place: Place, frame: Frame) -> list[Mark]:
    marks = [] if frame.marks is None else list(frame.marks(place, frame.look))
    if frame.selection is not None:
        selection = in_sight(page, frame.selection)
        row = row_of(place.message, place.line)
        start, end = selected_span(selection, row, place.drawn, place.line)
        marks.append(Mark(start, end, frame.selected))
    return marks


def in_sight(page: Page, selection: Selection) -> Selection:
    """A selection whose open ends are the first and the last row of the window."""
    if selection.start is not None and selection.end is not None:
        return selection
    total = page.sheet.heights.total
    rows = (page.top, min(page.top + page.height, total) - 1)
    first, last = (row_of(*page.sheet.heights.find(max(0, row))) for row in rows)
    return bounded(selection, first, last)


def block_selection(page: Page) -> Selection:
    """A selection of the block under the cursor."""
    start, end = page.inside(page.cursor)
    first, last = (row_of(page.cursor.message, line) for line in (start, end - 1))
    return bounded(Selection(None, None), first, last)


def _gutter(page: Page, place: Place, frame: Frame) -> Segment:
    look = frame.look
    if place.message != page.cursor.message or not _under_cursor(page, place):
        return Segment(" " * GUTTER, Style.null())
    role = Role.CURSOR if frame.focused else Role.MUTED
    return Segment("▐" if look.glyphs.name == "unicode" else ">", look[role])


def _under_cursor(page: Page, place: Place) -> bool:
    part = page.part()
    start, _ = page.inside(page.cursor)
    return part is not None and start <= place.line < part.end


def unseen_mark(count: int, look: Look) -> Segment:
    """What the last row says when messages came that the reader did not see."""
    return Segment(f" {look.glyphs.newer} {count} new ", look[Role.ACCENT] + Style(reverse=True))


def with_mark(strip: Strip, mark: Segment) -> Strip:
    """A row with a mark at its right end."""
    width = strip.cell_length
    return Strip([*strip.crop(0, width - mark.cell_length), mark], width)
