"""Lines made of styled pieces: wrapping, cutting and framing them by terminal cells.

A piece takes `Clean` text only, and this is the one place where text becomes a strip: what has not
been through `gemtui.text.clean` can't reach the screen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len, split_graphemes
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from gemtui.text import Clean, clean_line
from gemtui.ui.draw.theme import Look

TAB = 4
LEAST = 12
"""Cells that content keeps however deep it is nested: deeper frames are left out."""


class Piece(NamedTuple):
    """Text of one line in one style."""

    text: Clean
    style: Style


Pieces = tuple[Piece, ...]


class Code(Struct, frozen=True):
    """Code that several lines show; they hold the same object."""

    text: Clean
    language: Clean


class Line(Struct, frozen=True):
    """One line of a drawing; `margin` and `joint` as in `Drawn`."""

    pieces: Pieces = ()
    margin: int = 0
    joint: str | None = None
    code: Code | None = None


BLANK = Line()
EMPTY = Clean("")


def own(text: str) -> Clean:
    """Words of ours, which need no cleaning."""
    return Clean(text)


def flat(text: str) -> Clean:
    """Foreign text as a part of one line."""
    return clean_line(text)


def tabless(text: Clean) -> Clean:
    """Tabs as blanks, since a tab has no width of its own."""
    return Clean(text.expandtabs(TAB)) if "\t" in text else text


def width_of(pieces: Iterable[Piece]) -> int:
    """Cells that the pieces take side by side."""
    return sum(cell_len(piece.text) for piece in pieces)


def plain(pieces: Iterable[Piece]) -> Clean:
    """The text of the pieces."""
    return Clean("".join(piece.text for piece in pieces))


# --- wrapping ----------------------------------------------------------------------------------

# a wide character may stand at a line's start, closing punctuation stays with it
_WIDE = "\u2e80-\u2fff\u3021-\ua4cf\uf900-\ufaff\uff10-\uff5a\U00020000-\U0003fffd"
_CLOSING = "\u3001\u3002\u3009\u300b\u300d\u300f\u3011\uff01\uff09\uff0c\uff1a\uff1b\uff1f"
_WORD = re.compile(f"[{_WIDE}][{_CLOSING}]* *|[^ {_WIDE}]+ *| +")


def wrap(pieces: Pieces, width: int) -> list[Line]:
    """The pieces on as many lines as they need, broken between words where possible."""
    text = plain(pieces)
    if cell_len(text) <= width:
        return [Line(_stripped(pieces))]
    breaks = _word_breaks(text, width)
    rows = _divide(pieces, breaks)
    joints = [None, *(" " if text[cut - 1] == " " else "" for cut in breaks)]
    return [Line(_stripped(row), 0, joint) for row, joint in zip(rows, joints, strict=True)]


def chop(pieces: Pieces, width: int) -> list[Line]:
    """The pieces on as many lines as they need, broken anywhere: for code and output."""
    text = plain(pieces)
    if cell_len(text) <= width:
        return [Line(_stripped(pieces))]
    rows = _divide(pieces, list(_cell_breaks(text, 0, len(text), width)))
    return [
        Line(_stripped(row), 0, "" if index else None)
        for index, row in enumerate(rows)
        if not index or _stripped(row)
    ]


def fit(pieces: Pieces, width: int, mark: Clean) -> Pieces:
    """The pieces if they fit, else as many of their cells as fit with `mark` behind them."""
    if width_of(pieces) <= width:
        return pieces
    if width <= cell_len(mark):
        return ()
    text = plain(pieces)
    cut = next(_cell_breaks(text, 0, len(text), width - cell_len(mark)), len(text))
    kept = _stripped(_divide(pieces, [cut])[0]) if cut else ()
    style = kept[-1].style if kept else pieces[0].style
    return (*kept, Piece(mark, style))


def fit_end(text: Clean, width: int, mark: Clean) -> Clean:
    """The text if it fits, else `mark` and as much of its end as fits: for paths."""
    if cell_len(text) <= width:
        return text
    room = width - cell_len(mark)
    kept = len(text)
    for first, _, size in reversed(split_graphemes(text)[0]):
        room -= size
        if room < 0:
            break
        kept = first
    return Clean(mark + text[kept:]) if kept < len(text) else Clean("")


def laid(pieces: Pieces, look: Look, *, whole: bool) -> list[Line]:
    """A line of code or output: `whole` on as many lines as it needs, else cut to one."""
    if whole:
        return chop(pieces, look.width)
    return [Line(fit(pieces, look.width, own(look.glyphs.ellipsis)))]


def _word_breaks(text: Clean, width: int) -> list[int]:
    breaks: list[int] = []
    used = 0
    for match in _WORD.finditer(text):
        word = match[0]
        core = word.rstrip(" ")
        size = cell_len(core)
        if used + size > width and used:
            breaks.append(match.start())
            used = 0
        if size > width:
            cuts = list(_cell_breaks(text, match.start(), match.start() + len(core), width))
            breaks += cuts
            size = cell_len(text[cuts[-1] : match.start() + len(core)]) if cuts else size
        used += size + len(word) - len(core)
    return breaks


def _cell_breaks(text: Clean, start: int, end: int, width: int) -> Iterator[int]:
    """Where to cut `text[start:end]` into pieces of at most `width` cells."""
    if text.isascii():
        yield from range(start + max(1, width), end, max(1, width))
        return
    spans, _ = split_graphemes(text[start:end])
    used = 0
    for first, _, size in spans:
        if used + size > width and used:
            yield start + first
            used = 0
        used += size


def _divide(pieces: Pieces, cuts: Sequence[int]) -> list[Pieces]:
    rows: list[list[Piece]] = [[]]
    position = 0
    remaining = iter((*cuts, -1))
    cut = next(remaining)
    for text, style in pieces:
        start = 0
        while cut >= 0 and cut <= position + len(text):
            if cut - position > start:
                rows[-1].append(Piece(Clean(text[start : cut - position]), style))
            rows.append([])
            start, cut = cut - position, next(remaining)
        if start < len(text):
            rows[-1].append(Piece(Clean(text[start:]), style))
        position += len(text)
    return [tuple(row) for row in rows]


def _stripped(pieces: Pieces) -> Pieces:
    """Without blanks at the end."""
    while pieces and not (last := pieces[-1].text).rstrip(" "):
        pieces = pieces[:-1]
    if pieces and last.endswith(" "):
        pieces = (*pieces[:-1], Piece(Clean(last.rstrip(" ")), pieces[-1].style))
    return pieces


# --- framing -----------------------------------------------------------------------------------


def prefixed(
    lines: Iterable[Line], first: Pieces, rest: Pieces | None = None, *, frame: bool = True
) -> Iterator[Line]:
    """The lines with pieces before them; `frame`: those are no content (see `Drawn.margins`).

    Lines that go on from the first one, and all others, get `rest` (default: the same as `first`).
    """
    rest = first if rest is None else rest
    before = first
    for line in lines:
        margin = width_of(before) + line.margin if frame else line.margin
        yield replace(line, pieces=_stripped((*before, *line.pieces)), margin=margin)
        before = rest


def spread(left: Pieces, right: Pieces, width: int, fill: Piece) -> Pieces:
    """Both ends of a line of exactly `width` cells, `fill` (one cell) between them."""
    gap = width - width_of(left) - width_of(right)
    return (*left, Piece(Clean(fill.text * max(0, gap)), fill.style), *right)


def strip_of(line: Line, width: int) -> Strip:
    """The line as Textual draws it, cut if it is wider all the same."""
    strip = Strip([Segment(text, style) for text, style in line.pieces])
    return strip if strip.cell_length <= width else strip.crop(0, width)
