"""Rows of a card: a gutter and a text, of which a folded card shows a few, each on one line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec import Struct
from rich.style import Style

from gemtui.text import Clean, counted
from gemtui.ui.draw.bounds import LINES, Excerpt, excerpt
from gemtui.ui.draw.code import LIMIT, highlight
from gemtui.ui.draw.lines import (
    EMPTY,
    Line,
    Piece,
    Pieces,
    chop,
    fit,
    own,
    prefixed,
    tabless,
    width_of,
    wrap,
)
from gemtui.ui.draw.theme import Look, Role

_JSON_PIECES = 6_000


class Row(NamedTuple):
    """One line of what a tool gave; the gutter is frame (see `Drawn.margins`)."""

    gutter: Pieces
    text: Pieces


class Body(Struct, frozen=True, kw_only=True):
    """What stands inside a card.

    `hidden`: lines left out because it is folded; `cut`: lines that lost their end by that; `more`:
    unfolding shows more than it does now.
    `facts`: counts for the card's first line; `note`: a word for its last one.
    """

    lines: tuple[Line, ...] = ()
    hidden: int = 0
    cut: int = 0
    more: bool = False
    facts: Pieces = ()
    note: Clean = EMPTY


def whole(rows: Iterable[Row], look: Look, *, prose: bool = False) -> Iterator[Line]:
    """All rows, each on as many lines as it needs; `prose` breaks between words."""
    lay = wrap if prose else chop
    for gutter, text in rows:
        size = width_of(gutter)
        blank = (Piece(own(" " * size), look[Role.TEXT]),) if size else ()
        lines = lay(text, max(1, look.width - size))
        yield from prefixed(lines, gutter, blank) if size else lines


def preview(rows: Sequence[Row], look: Look, *, total: int) -> Body:
    """A few rows, each cut to one line; `total`: how many there are in all."""
    lines = []
    cut = 0
    for gutter, text in rows:
        room = look.width - width_of(gutter)
        cut += width_of(text) > room
        line = Line(fit(text, room, own(look.glyphs.ellipsis)))
        lines += list(prefixed([line], gutter)) if gutter else [line]
    hidden = total - len(rows)
    return Body(lines=tuple(lines), hidden=hidden, cut=cut, more=cut + hidden > 0)


def some_rows(rows: Sequence[Row], look: Look, *, folded: bool, keep: int) -> Body:
    """`keep` rows if folded, else all up to a bound."""
    if folded:
        return preview(rows[:keep], look, total=len(rows))
    lines = list(whole(rows[:LINES], look))
    if len(rows) > LINES:
        lines.append(left_out(len(rows) - LINES, look))
    return Body(lines=tuple(lines))


def some_lines(lines: Sequence[Line], *, folded: bool, keep: int) -> Body:
    """`keep` lines that are drawn already if folded, else all."""
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
) -> Body:
    """Lines of a text: `head` and `tail` ones if folded, else all up to a bound."""
    style = look[role]
    if folded:
        some = excerpt(text, head=head, tail=tail)
        rows = [*_plain(some.head, style), *_plain(some.tail, style)]
        return preview(rows, look, total=len(rows) + some.left_out)
    some = excerpt(text)
    code = "\n".join(some.head) if language and not some.left_out else ""
    if 0 < len(code) <= LIMIT:
        rows = [Row((), pieces) for pieces in highlight(Clean(code), language, look)]
    else:
        rows = list(_plain(some.head, style))
    return Body(lines=(*whole(rows, look, prose=prose), *_rest(some, style, look)))


def _rest(some: Excerpt, style: Style, look: Look) -> Iterator[Line]:
    if some.left_out:
        yield left_out(some.left_out, look)
    yield from whole(_plain(some.tail, style), look)
    if some.cut:
        yield remark("the ends of very long lines are left out", look)


def _plain(lines: Iterable[Clean], style: Style) -> Iterator[Row]:
    return (Row((), styled(line, style)) for line in lines)


def left_out(number: int, look: Look) -> Line:
    """Says that lines are missing here, and how many."""
    return remark(f"{counted(number, 'line')} left out", look)


def remark(words: str, look: Look) -> Line:
    """A word of ours between foreign lines."""
    mark = look.glyphs.ellipsis
    pieces = fit((Piece(own(f"{mark} {words} {mark}"), look[Role.MUTED]),), look.width, own(mark))
    return Line(pieces, width_of(pieces))


def as_json(value: object, pieces: int = _JSON_PIECES) -> str:
    """A value as indented JSON, as far as it is shown; what can't be JSON by its type."""
    written = json.JSONEncoder(indent=2, ensure_ascii=False, default=str).iterencode(value)
    try:
        text = "".join(islice(written, pieces))
        return text if next(written, None) is None else f"{text} …"
    except (RecursionError, TypeError, ValueError):
        return repr(type(value))


def styled(text: Clean, style: Style) -> Pieces:
    """One piece as pieces."""
    return (Piece(tabless(text), style),)
