"""Lines of styled text: wrap, cut and frame them by their width in terminal cells.

A `Piece` cleans the text that it is made of, and no other module converts text to strips. Text that
could act on the terminal therefore never reaches the screen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import NamedTuple, Self, overload

from msgspec import Struct
from rich.cells import cell_len, split_graphemes
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from gemtui.text import clean_line, one_line
from gemtui.ui.draw.theme import Look, Role

TAB = 4
LEAST = 12
"""The minimum width for content in cells; if there is less, frames are left out."""


class _Piece(NamedTuple):
    text: str
    style: Style


class Piece(_Piece):
    """Text in a single style within a line.

    Whatever it is made of, its text is clean and on one line: control characters have become
    visible marks, and line breaks and tabs have become spaces.
    """

    __slots__ = ()

    def __new__(cls, text: str, style: Style) -> Self:
        """Clean the text; `_replace` and `_make` take text that is clean already."""
        if not text.isprintable():  # usually there is nothing to clean
            text = one_line(text)
        return super().__new__(cls, text, style)


Pieces = tuple[Piece, ...]


class Code(Struct, frozen=True):
    """A block of code, referred to by each `Line` that shows part of it.

    This allows the whole block to be copied from any of its lines.
    """

    text: str
    language: str


class Line(Struct, frozen=True):
    """A rendered line.

    `margin`: the number of cells at the left that belong to the frame rather than the text.
    `joint`: if the line continues the wrapped line above it, the text between the two ("" or a
    space). `ground`: the background of the rest of the line. `code`: the block of code that the
    line belongs to.
    """

    pieces: Pieces = ()
    margin: int = 0
    joint: str | None = None
    code: Code | None = None
    ground: Style | None = None


BLANK = Line()


def flat(text: str) -> str:
    """Sanitize text from outside gemtui so that it can be shown on one line."""
    return clean_line(text)


def tabless(text: str) -> str:
    """Replace tabs with spaces, because a tab's width would depend on its column."""
    return text.expandtabs(TAB) if "\t" in text else text


def width_of(pieces: Iterable[Piece]) -> int:
    """Return the total width of the pieces in cells."""
    return sum(cell_len(piece.text) for piece in pieces)


def plain(pieces: Iterable[Piece]) -> str:
    """Return the pieces' text without styles."""
    return "".join(piece.text for piece in pieces)


# --- wrapping ----------------------------------------------------------------------------------

# a wide character may start a line, along with any closing punctuation after it
_WIDE = "\u2e80-\u2fff\u3021-\ua4cf\uf900-\ufaff\uff10-\uff5a\U00020000-\U0003fffd"
_CLOSING = "\u3001\u3002\u3009\u300b\u300d\u300f\u3011\uff01\uff09\uff0c\uff1a\uff1b\uff1f"


@cache
def _word() -> re.Pattern[str]:
    """Return the pattern of a word; compiling it takes 4 ms, and the first screen needs none."""
    return re.compile(f"[{_WIDE}][{_CLOSING}]* *|[^ {_WIDE}]+ *| +")


def wrap(pieces: Pieces, width: int) -> list[Line]:
    """Wrap pieces to lines of `width` cells, between words where possible."""
    if cell_len(plain(pieces)) <= width:
        return [Line(stripped(pieces))]
    return list(_wrapped(pieces, width))


@lru_cache(maxsize=256)
def _wrapped(pieces: Pieces, width: int) -> tuple[Line, ...]:
    """Return the wrapped lines, from a cache if possible.

    Streamed answers are redrawn often, so the same pieces are wrapped many times.
    """
    text = plain(pieces)
    breaks = _word_breaks(text, width)
    rows = _divide(pieces, breaks)
    joints = [None, *(" " if text[cut - 1] == " " else "" for cut in breaks)]
    return tuple([Line(stripped(row), 0, joint) for row, joint in zip(rows, joints, strict=True)])


def wrap_anywhere(pieces: Pieces, width: int) -> list[Line]:
    """Wrap code or output to lines of `width` cells, at any character."""
    text = plain(pieces)
    if cell_len(text) <= width:
        return [Line(stripped(pieces))]
    rows = _divide(pieces, list(_cell_breaks(text, 0, len(text), width)))
    return [
        Line(stripped(row), 0, "" if index else None)
        for index, row in enumerate(rows)
        if not index or stripped(row)
    ]


def fit(pieces: Pieces, width: int, mark: str) -> Pieces:
    """Cut pieces to `width` cells; if anything is cut, the result ends with `mark`.

    `mark`: usually an ellipsis.
    """
    if width_of(pieces) <= width:
        return pieces
    if width <= cell_len(mark):
        return ()
    text = plain(pieces)
    cut = next(_cell_breaks(text, 0, len(text), width - cell_len(mark)), len(text))
    kept = stripped(_divide(pieces, [cut])[0]) if cut else ()
    style = kept[-1].style if kept else pieces[0].style
    return (*kept, Piece(mark, style))


def cut(pieces: Pieces, look: Look, width: int | None = None) -> Pieces:
    """Cut pieces to `width` cells (by default, the look's width).

    If anything is cut, the result ends with the look's ellipsis.
    """
    return fit(pieces, look.width if width is None else width, look.glyphs.ellipsis)


def fit_start(text: str, width: int, mark: str) -> str:
    """Return the text if it fits into `width` cells, or else its start and `mark`."""
    return plain(fit((Piece(text, Style()),), width, mark))


def fit_end(text: str, width: int, mark: str) -> str:
    """Return the text if it fits into `width` cells, or else `mark` and its end.

    Used for paths, whose end matters most.
    """
    if cell_len(text) <= width:
        return text
    room = width - cell_len(mark)
    kept = len(text)
    for first, _, size in reversed(split_graphemes(text)[0]):
        room -= size
        if room < 0:
            break
        kept = first
    return (mark + text[kept:]) if kept < len(text) else ""


def lay_out(pieces: Pieces, look: Look, *, whole: bool) -> list[Line]:
    """Wrap or cut a line of code or output to the look's width.

    `whole`: wrap the line, into as many lines as it needs; otherwise it is cut.
    """
    if whole:
        return wrap_anywhere(pieces, look.width)
    return [Line(cut(pieces, look))]


def _word_breaks(text: str, width: int) -> list[int]:
    breaks: list[int] = []
    used = 0
    for match in _word().finditer(text):
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


def _cell_breaks(text: str, start: int, end: int, width: int) -> Iterator[int]:
    """Yield the indices that split `text[start:end]` into parts of `width` cells.

    A part may be narrower, because a wide character is never split.
    """
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
    for piece in pieces:
        text = piece.text
        start = 0
        while cut >= 0 and cut <= position + len(text):
            if cut - position > start:
                rows[-1].append(piece._replace(text=text[start : cut - position]))
            rows.append([])
            start = cut - position
            cut = next(remaining)
        if start < len(text):
            rows[-1].append(piece._replace(text=text[start:]))
        position += len(text)
    return [tuple(row) for row in rows]


def stripped(pieces: Pieces) -> Pieces:
    """Remove the pieces' trailing spaces."""
    while pieces and not (last := pieces[-1].text).rstrip(" "):
        pieces = pieces[:-1]
    if pieces and last.endswith(" "):
        pieces = (*pieces[:-1], pieces[-1]._replace(text=last.rstrip(" ")))
    return pieces


# --- framing -----------------------------------------------------------------------------------


def prefixed(
    lines: Iterable[Line], first: Pieces, rest: Pieces | None = None, *, frame: bool = True
) -> Iterator[Line]:
    """Yield the lines, with `first` before the first one and `rest` before all others.

    `rest`: None means `first`. `frame`: whether the prefix is a frame, which isn't copied along
    with the text (see `Drawn.margins`).
    """
    rest = first if rest is None else rest
    before = first
    margin = width_of(first) if frame else 0
    for line in lines:
        pieces = stripped((*before, *line.pieces))
        yield Line(pieces, margin + line.margin, line.joint, line.code, line.ground)
        if before is not rest:
            before = rest
            margin = width_of(rest) if frame else 0


def spread(left: Pieces, right: Pieces, width: int, fill: Piece) -> Pieces:
    """Place `left` and `right` at the ends of a line, filling the space between them.

    `fill`: repeated as needed; it must be one cell wide.
    """
    gap = width - width_of(left) - width_of(right)
    return (*left, Piece(fill.text * max(0, gap), fill.style), *right)


def two_ended(
    left: Pieces, right: Pieces, look: Look, role: Role = Role.MUTED, *, gap: int = 0
) -> Pieces:
    """Place pieces at both ends of a line, cutting `left` if there is too little room.

    `role`: the style of the space between them. `gap`: the minimum width of that space in cells.
    """
    left = cut(left, look, max(0, look.width - width_of(right) - gap))
    return spread(left, right, look.width, Piece(" ", look[role]))


def strip_of(line: Line, width: int) -> Strip:
    """Return a line as a Textual strip, cut to `width` cells if necessary."""
    strip = Strip([Segment(text, style) for text, style in line.pieces])
    return strip if strip.cell_length <= width else strip.crop(0, width)


class Strips(Sequence[Strip]):
    """Lines as a sequence of Textual strips, cut to `width` cells where necessary.

    Each strip is created when it is accessed, because only a few lines of a long message are
    visible.
    """

    def __init__(self, lines: Sequence[Line], width: int) -> None:
        self._lines, self._width = lines, width
        self._made: dict[int, Strip] = {}

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, index: int) -> Strip: ...

    @overload
    def __getitem__(self, index: slice) -> list[Strip]: ...

    def __getitem__(self, index: int | slice) -> Strip | list[Strip]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        strip = self._made.get(index)
        if strip is None:
            self._made[index] = strip = strip_of(self._lines[index], self._width)
        return strip
