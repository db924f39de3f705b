"""Marks on drawn lines, and the text between two places of a transcript."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Offset
from textual.selection import Selection
from textual.strip import Strip

from gemtui.ui.render import Drawn

LINES = 1 << 24
"""More lines than a message can have."""


class Mark(NamedTuple):
    """Characters `start` up to `end` (not included) of a line, to be shown in a style."""

    start: int
    end: int
    style: Style


def marked(strip: Strip, marks: Sequence[Mark]) -> Strip:
    """The strip with styles laid over parts of it; later marks over earlier ones."""
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


def _over(position: int, marks: Iterable[Mark]) -> Style | None:
    styles = [mark.style for mark in marks if mark.start <= position < mark.end]
    return Style.combine(styles) if styles else None


def row_of(message: int, line: int) -> int:
    """A line of a message as the y of a selection: it stays right when other heights change."""
    return message * LINES + line


def place_of(row: int) -> tuple[int, int]:
    """The message and the line in it that `row_of` stands for."""
    return divmod(row, LINES)


def bounded(selection: Selection, first: int, last: int) -> Selection:
    """A selection that began or ended outside the widget: from the first or to the last row."""
    return Selection(
        Offset(0, first) if selection.start is None else selection.start,
        Offset(LINES, last) if selection.end is None else selection.end,
    )


def selected_span(selection: Selection, row: int, drawn: Drawn, line: int) -> tuple[int, int]:
    """The selected characters of a drawn line, its margin left out; (0, 0) if there are none."""
    if (span := selection.get_span(row)) is None:
        return 0, 0
    start, end = span
    length = len(drawn.strips[line].text)
    start = max(start, min(drawn.margins[line], length))
    end = length if end < 0 else min(end, length)
    return (start, end) if start < end else (0, 0)


def text_between(selection: Selection, drawn: Callable[[int], Drawn], messages: int) -> str:
    """The selected text as it is seen, without margins and without the breaks of wrapping."""
    assert selection.start is not None
    assert selection.end is not None
    pieces: list[str] = []
    first, last = place_of(selection.start.y)[0], place_of(selection.end.y)[0]
    for message in range(first, min(last + 1, messages)):
        shown = drawn(message)
        for line in range(shown.height):
            row = row_of(message, line)
            if selection.start.y <= row <= selection.end.y:
                start, end = selected_span(selection, row, shown, line)
                joint = shown.joints[line]
                pieces += ["\n" if joint is None else joint, shown.strips[line].text[start:end]]
    return "".join(pieces[1:]).rstrip()
