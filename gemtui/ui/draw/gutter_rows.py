"""Rows of a card's text with a gutter, for example for line numbers.

A card shows one message or tool call. A folded card shows only a few of its rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice, takewhile
from typing import NamedTuple

from msgspec import Struct
from rich.style import Style

from gemtui.text import Clean, counted
from gemtui.ui.draw.bounds import LINES, Excerpt, bounded_excerpt
from gemtui.ui.draw.code import LIMIT, highlight
from gemtui.ui.draw.lines import EMPTY, Line, Piece, Pieces, fit, own, prefixed, tabless, width_of, wrap, wrap_anywhere
from gemtui.ui.draw.theme import Look, Role

_JSON_PIECES = 6_000


class GutterRow(NamedTuple):
    """A row of a tool's result, with a gutter to its left.

    The gutter isn't copied along with the text (see `Drawn.margins`).
    """

    gutter: Pieces
    text: Pieces


class Body(Struct, frozen=True, kw_only=True):
    """The lines inside a card.

    `hidden`: the number of lines left out because the card is folded. `cut`: the number of long
    lines that were truncated. `more`: whether unfolding the card would show more. `facts`: counts
    to show in the card's first line. `note`: a note to show in the card's last line.
    """

    lines: tuple[Line, ...] = ()
    hidden: int = 0
    cut: int = 0
    more: bool = False
    facts: Pieces = ()
    note: Clean = EMPTY


def wrapped_rows(rows: Iterable[GutterRow], look: Look, *, prose: bool = False) -> Iterator[Line]:
    """Yield the lines of all rows, wrapping each row if needed.

    `prose`: wrap only between words.
    """
    lay = wrap if prose else wrap_anywhere
    for gutter, text in rows:
        size = width_of(gutter)
        blank = (Piece(own(" " * size), look[Role.TEXT]),) if size else ()
        lines = lay(text, max(1, look.width - size))
        yield from prefixed(lines, gutter, blank) if size else lines


def preview(rows: Sequence[GutterRow], look: Look, *, total: int) -> Body:
    """Render the given rows, each cut to one line, as the body of a folded card.

    `total`: how many rows there are in all, including those not passed.
    """
    lines = []
    cut = 0
    for gutter, text in rows:
        room = look.width - width_of(gutter)
        cut += width_of(text) > room
        line = Line(fit(text, room, own(look.glyphs.ellipsis)))
        lines += list(prefixed([line], gutter)) if gutter else [line]
    hidden = total - len(rows)
    return Body(lines=tuple(lines), hidden=hidden, cut=cut, more=cut + hidden > 0)


def some_rows(rows: Sequence[GutterRow], look: Look, *, folded: bool, keep: int) -> Body:
    """Render the first `keep` rows if folded; otherwise all rows, up to `LINES`.

    A folded card's rows are cut to one line each.
    """
    if folded:
        return preview(rows[:keep], look, total=len(rows))
    lines = list(wrapped_rows(rows[:LINES], look))
    if len(rows) > LINES:
        lines.append(left_out_line(len(rows) - LINES, look))
    return Body(lines=tuple(lines))


def fold_lines(lines: Sequence[Line], *, folded: bool, keep: int) -> Body:
    """Return a card's body with all lines or, if folded, the first few.

    `keep`: how many non-empty lines to show if folded.
    """
    if not folded:
        return Body(lines=tuple(lines))
    full = [line for line in lines if line.pieces]
    hidden = max(0, len(full) - keep)
    return Body(lines=tuple(full[:keep]), hidden=hidden, more=hidden > 0)


def text_rows(
    text: str,
    look: Look,
    *,
    folded: bool,
    head: int = 0,
    tail: int = 0,
    language: Clean = EMPTY,
    role: Role = Role.TEXT,
    prose: bool = False,
    first: int | None = None,
) -> Body:
    """Render the lines of `text` or, if folded, only the first and last ones.

    `head`, `tail`: how many lines to show at each end if folded. `language`: highlight the lines as
    code in this language. `role`: the style of lines that have no language. `prose`: wrap only
    between words. `first`: the first line's number; if it is given, the gutter of unfolded text
    shows line numbers.
    """
    style = look[role]
    if folded:
        some = bounded_excerpt(text, head=head, tail=tail)
        parts = (some.head, some.tail)
        rows = [row for part in parts for row in _rows(part, language, style, look)]
        return preview(rows, look, total=len(rows) + some.left_out)
    some = bounded_excerpt(text)
    rows = [*_rows(some.head, language, style, look)]
    rest = [*_plain(some.tail, style)]
    if first is not None:
        first += some.blank
        last = first + len(rows) + some.left_out
        digits = len(str(last + len(rest) - 1))
        rows = [*_numbered(rows, first, digits, look)]
        rest = [*_numbered(rest, last, digits, look)]
    return Body(lines=(*wrapped_rows(rows, look, prose=prose), *_rest(some, rest, look)))


def _rows(lines: Sequence[Clean], language: Clean, style: Style, look: Look) -> Iterable[GutterRow]:
    return _coloured(lines, language, look) if language else _plain(lines, style)


def _coloured(lines: Sequence[Clean], language: Clean, look: Look) -> Iterator[GutterRow]:
    """Yield lines of code, highlighting them only up to `LIMIT` characters."""
    ends = accumulate(len(line) + 1 for line in lines)
    some = sum(1 for _ in takewhile(lambda end: end <= LIMIT, ends))
    if some:
        for pieces in highlight(Clean("\n".join(lines[:some])), language, look):
            yield GutterRow((), pieces)
    yield from _plain(lines[some:], look[Role.TEXT])


def _numbered(rows: Iterable[GutterRow], first: int, digits: int, look: Look) -> Iterator[GutterRow]:
    for number, row in enumerate(rows, first):
        yield GutterRow((Piece(own(f"{number:>{digits}}  "), look[Role.MUTED]),), row.text)


def _rest(some: Excerpt, rows: Iterable[GutterRow], look: Look) -> Iterator[Line]:
    if some.left_out:
        yield left_out_line(some.left_out, look)
    yield from wrapped_rows(rows, look)
    if some.cut:
        yield cut_lines(look)


def _plain(lines: Iterable[Clean], style: Style) -> Iterator[GutterRow]:
    return (GutterRow((), styled(line, style)) for line in lines)


def left_out_line(number: int, look: Look) -> Line:
    """Return a note line that says how many lines are not shown."""
    return note_line(f"{counted(number, 'line')} not shown", look)


def cut_lines(look: Look) -> Line:
    """Return a note line that says that very long lines are cut off."""
    return note_line("very long lines are cut off", look)


def note_line(words: str, look: Look) -> Line:
    """Return a line with a note by gemtui, marked so that it isn't taken for content."""
    mark = look.glyphs.ellipsis
    pieces = fit((Piece(own(f"{mark} {words} {mark}"), look[Role.MUTED]),), look.width, own(mark))
    return Line(pieces, width_of(pieces))


def as_json(value: object, pieces: int = _JSON_PIECES) -> str:
    """Return a value as indented JSON, truncated if it is long.

    `pieces`: how many pieces of the JSON encoder's output to keep. A value that can't be encoded,
    such as one nested too deeply, is replaced by its type's `repr`.
    """
    written = json.JSONEncoder(indent=2, ensure_ascii=False, default=str).iterencode(value)
    try:
        text = "".join(islice(written, pieces))
        return text if next(written, None) is None else f"{text} …"
    except (RecursionError, TypeError, ValueError):
        return repr(type(value))


def styled(text: Clean, style: Style) -> Pieces:
    """Return text as pieces in a single style."""
    return (Piece(tabless(text), style),)
