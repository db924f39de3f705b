"""A row of the screen: a transcript line with cursor, search hits and selection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Offset
from textual.selection import Selection
from textual.strip import Strip

from gemtui.transcript.model import ToolCall, ToolStatus
from gemtui.ui.draw.theme import Look, Role
from gemtui.ui.transcript.layout import LayoutLine
from gemtui.ui.transcript.message import Drawn
from gemtui.ui.transcript.viewport import Viewport

LINES = 1 << 24
"""A number larger than that of the lines of any message."""


class StyledSpan(NamedTuple):
    """A style for the characters from `start` to `end` (exclusive) of a line."""

    start: int
    end: int
    style: Style


def marked(strip: Strip, marks: Sequence[StyledSpan]) -> Strip:
    """Return a line with styles applied to parts of it.

    Where marks overlap, the later one wins.
    """
    if not marks:
        return strip
    cuts = sorted({cut for mark in marks for cut in mark[:2]})
    segments: list[Segment] = []
    position = 0
    for text, style, _ in strip:
        ends = [cut - position for cut in cuts if 0 < cut - position < len(text)]
        for start, end in zip([0, *ends], [*ends, len(text)], strict=True):
            over = _over(position + start, marks)
            segments.append(Segment(text[start:end], over if style is None else style + over))
        position += len(text)
    return Strip(segments, strip.cell_length)


def _over(position: int, marks: Iterable[StyledSpan]) -> Style | None:
    styles = [mark.style for mark in marks if mark.start <= position < mark.end]
    return Style.combine(styles) if styles else None


def row_of(message: int, line: int) -> int:
    """Return the y coordinate that selections use for a line of a message.

    It doesn't depend on the heights of messages, which may change.
    """
    return message * LINES + line


def message_and_line(row: int) -> tuple[int, int]:
    """Return the message index and line index that `row_of` has encoded."""
    return divmod(row, LINES)


def clamp_selection(selection: Selection, first: int, last: int) -> Selection:
    """Return the selection with open ends replaced by the rows `first` and `last`.

    An open end (`start` or `end` is None) means that everything up to there is selected.
    """
    return Selection(
        Offset(0, first) if selection.start is None else selection.start,
        Offset(LINES, last) if selection.end is None else selection.end,
    )


def selected_span(selection: Selection, row: int, drawn: Drawn, line: int) -> tuple[int, int]:
    """Return the (start, end) of the selected characters of a rendered line.

    The line's margin is excluded. Returns (0, 0) if nothing is selected. `row`: the line's y
    coordinate (see `row_of`). `line`: its index in `drawn`.
    """
    span = selection.get_span(row)
    if span is None:
        return 0, 0
    start, end = span
    length = len(drawn.strips[line].text)
    start = max(start, min(drawn.margins[line], length))
    end = length if end < 0 else min(end, length)
    return (start, end) if start < end else (0, 0)


def text_between(selection: Selection, drawn: Callable[[int], Drawn], messages: int) -> str:
    """Return the selected text as shown, but without margins and line wrapping.

    `drawn`: returns the message with this index, rendered. `messages`: the number of messages.
    """
    assert selection.start is not None
    assert selection.end is not None
    pieces: list[str] = []
    first, last = message_and_line(selection.start.y)[0], message_and_line(selection.end.y)[0]
    for message in range(first, min(last + 1, messages)):
        shown = drawn(message)
        for line in range(shown.height):
            row = row_of(message, line)
            if selection.start.y <= row <= selection.end.y:
                start, end = selected_span(selection, row, shown, line)
                joint = shown.joints[line]
                pieces += ["\n" if joint is None else joint, shown.strips[line].text[start:end]]
    return "".join(pieces[1:]).rstrip()


GUTTER = 1
"""Cells reserved for the cursor at the left edge."""


class RowFrame(Struct, frozen=True, kw_only=True):
    """The facts that all rows of the window share.

    `base`: the background. `marks`: returns the search hits on a line.
    """

    width: int
    look: Look
    base: Style
    focused: bool
    selection: Selection | None
    selected: Style
    marks: Callable[[LayoutLine, Look], Sequence[StyledSpan]] | None


def draw_viewport_row(page: Viewport, row: int, frame: RowFrame) -> Strip:
    """Return one row of the window, as wide as the frame.

    The row's cells store their position, which Textual needs for selections.
    """
    place = page.row(row)
    if place is None:
        return Strip.blank(frame.width, frame.base)
    line = marked(place.drawn.strips[place.line], _marks(page, place, frame))
    ground = place.drawn.grounds[place.line]
    if ground is not None:
        line = line.extend_cell_length(frame.look.width, ground)
    strip = Strip([_gutter(page, place, frame), *line], GUTTER + line.cell_length)
    strip = strip.apply_offsets(-GUTTER, row_of(place.message, place.line))
    return strip.apply_style(frame.base).crop_extend(0, frame.width, frame.base)


def _marks(page: Viewport, place: LayoutLine, frame: RowFrame) -> list[StyledSpan]:
    marks = [] if frame.marks is None else list(frame.marks(place, frame.look))
    if frame.selection is not None:
        selection = clamp_to_window(page, frame.selection)
        row = row_of(place.message, place.line)
        start, end = selected_span(selection, row, place.drawn, place.line)
        marks.append(StyledSpan(start, end, frame.selected))
    return marks


def clamp_to_window(page: Viewport, selection: Selection) -> Selection:
    """Return the selection with open ends replaced by the window's first and last row.

    An open end (`start` or `end` is None) means that everything up to there is selected.
    """
    if selection.start is not None and selection.end is not None:
        return selection
    total = page.sheet.heights.total
    rows = (page.top, min(page.top + page.height, total) - 1)
    first, last = (row_of(*page.sheet.heights.find(max(0, row))) for row in rows)
    return clamp_selection(selection, first, last)


def block_selection(page: Viewport) -> Selection:
    """Return a selection of the block under the cursor."""
    start, end = page.stops.inside(page.cursor)
    first, last = (row_of(page.cursor.message, line) for line in (start, end - 1))
    return clamp_selection(Selection(None, None), first, last)


def _gutter(page: Viewport, place: LayoutLine, frame: RowFrame) -> Segment:
    look = frame.look
    if place.message != page.cursor.message or not _under_cursor(page, place):
        return Segment(" " * GUTTER, Style.null())
    role = Role.CURSOR if frame.focused else Role.MUTED
    return Segment(look.glyphs.cursor, look[role])


def _under_cursor(page: Viewport, place: LayoutLine) -> bool:
    part = page.part()
    start, _ = page.stops.inside(page.cursor)
    return part is not None and start <= place.line < part.end


def unseen_mark(page: Viewport, look: Look) -> Segment | None:
    """Return a mark for the window's last row if there is unseen content below.

    Returns None if there is none.
    """
    if not (page.news.messages or page.news.grown):
        return None
    news = f"{page.news.messages} new" if page.news.messages else "new below"
    return Segment(f" {look.glyphs.newer} {news} ", look[Role.ACCENT] + Style(reverse=True))


def with_mark(strip: Strip, mark: Segment) -> Strip:
    """Return a row with a mark at its right end."""
    width = strip.cell_length
    return Strip([*strip.crop(0, width - mark.cell_length), mark], width)


def running_call(page: Viewport, row: int) -> str | None:
    """Return the id of the running call whose card begins on a row of the window, or None."""
    place = page.row(row)
    if place is None:
        return None
    number = next((part.block for part in place.drawn.parts if part.start == place.line), None)
    block = None if number is None else page.transcript.read(place.message).blocks[number]
    if isinstance(block, ToolCall) and block.status is ToolStatus.RUNNING:
        return block.id
    return None


def with_time(strip: Strip, time: str, look: Look) -> Strip:
    """Return the first row of a running call's card, with how long it has been running."""
    mark = Segment(f"  {time}", look[Role.MUTED])
    end = GUTTER + look.width
    return Strip.join([with_mark(strip.crop(0, end), mark), strip.crop(end)])
