"""Long text as rows with a gutter, for example for line numbers, or as prose; and its limits.

The limits apply before text is sanitized and rendered. A card shows one message or tool call; a
folded card shows only a few of its rows. Prose is Markdown up to a limit, and unformatted beyond
it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice, takewhile
from typing import NamedTuple, TypeVar

from msgspec import Struct
from rich.style import Style

from gemtui.text import BLANKS, clean, counted, newlines
from gemtui.ui.draw.code import LIMIT, highlight
from gemtui.ui.draw.lines import (
    BLANK,
    Line,
    Piece,
    Pieces,
    fit,
    prefixed,
    tabless,
    width_of,
    wrap,
    wrap_anywhere,
)
from gemtui.ui.draw.theme import Look, Role

LINES = 2_000
CHARACTERS = 100_000
LONG_LINE = 20_000
"""The maximum length of a single line in characters.

`LINES` and `CHARACTERS` limit the text as a whole.
"""

T = TypeVar("T")


class Excerpt(Struct, frozen=True, kw_only=True):
    """An excerpt of a long text: some lines from its start and some from its end.

    `left_out`: the number of lines omitted between the two parts. `cut`: whether a long line was
    truncated. `blank`: how many empty lines at the start of the text were skipped.
    """

    head: tuple[str, ...]
    tail: tuple[str, ...] = ()
    left_out: int = 0
    cut: bool = False
    blank: int = 0


def bounded_excerpt(
    text: str,
    *,
    head: int = LINES // 2,
    tail: int = LINES // 2,
    cleaned: Callable[[str], str] = clean,
) -> Excerpt:
    """Return up to `head` lines from the start of `text` and `tail` from its end.

    Empty lines at the start and end of the text are skipped. Each of the two parts is also limited
    to half of `CHARACTERS` characters. `cleaned`: the function that sanitizes the lines, either
    `clean` or `visible`.
    """
    whole = newlines(text) if cleaned is clean else text
    text = _trimmed(whole)
    if not text:
        return Excerpt(head=())
    blank = whole.count("\n", 0, len(whole) - len(whole.lstrip(BLANKS)))
    total = text.count("\n") + 1
    if total <= head + tail:
        head = total
        tail = 0
    first = bounded(text.split("\n", head)[:head] if head else [], size=len)
    last = bounded(reversed(text.rsplit("\n", tail)[1:]), size=len) if tail else []
    shown = [*first, *last]
    return Excerpt(
        head=_lines(first, cleaned),
        tail=_lines(last[::-1], cleaned),
        left_out=total - len(shown),
        cut=any(len(line) > LONG_LINE for line in shown),
        blank=blank,
    )


def line_count(text: str) -> int:
    """Return the number of lines in `text`, ignoring empty lines at its start and end."""
    text = _trimmed(newlines(text))
    return text.count("\n") + 1 if text else 0


def _trimmed(text: str) -> str:
    text = text.rstrip(BLANKS)
    start = len(text) - len(text.lstrip(BLANKS))
    return text[text.rfind("\n", 0, start) + 1 :]


def bounded(lines: Iterable[T], *, size: Callable[[T], int]) -> list[T]:
    """Return the first lines, until their total length reaches half the limit.

    The limit is `CHARACTERS`, and the line that reaches half of it is included. `size`: a function
    that returns a line's length in characters.
    """
    kept: list[T] = []
    room = CHARACTERS // 2
    for line in lines:
        if room <= 0:
            break
        kept.append(line)
        room -= min(size(line), LONG_LINE)
    return kept


def _lines(lines: list[str], cleaned: Callable[[str], str]) -> tuple[str, ...]:
    text = cleaned("\n".join(line[:LONG_LINE].removesuffix("\r") for line in lines))
    return tuple(line for line in text.split("\n")) if lines else ()


_JSON_PIECES = 6_000


class GutterRow(NamedTuple):
    """A row of a tool's result, with a gutter to its left.

    The gutter isn't copied along with the text (see `Drawn.margins`).
    """

    gutter: Pieces
    text: Pieces


class Body(Struct, frozen=True, kw_only=True):
    """The lines inside a card.

    `hidden`: the number of lines left out because the card is folded. `more`: whether unfolding the
    card would show more. `facts`: counts to show in the card's first line. `note`: a note to show
    in the card's last line.
    """

    lines: tuple[Line, ...] = ()
    hidden: int = 0
    more: bool = False
    facts: Pieces = ()
    note: str = ""


def wrapped_rows(rows: Iterable[GutterRow], look: Look, *, prose: bool = False) -> Iterator[Line]:
    """Yield the lines of all rows, wrapping each row if needed.

    `prose`: wrap only between words.
    """
    lay = wrap if prose else wrap_anywhere
    for gutter, text in rows:
        size = width_of(gutter)
        blank = (Piece(" " * size, look[Role.TEXT]),) if size else ()
        lines = lay(text, max(1, look.width - size))
        yield from prefixed(lines, gutter, blank) if size else lines


def preview(rows: Sequence[GutterRow], look: Look, *, total: int) -> Body:
    """Render the given rows, each cut to one line, as the body of a folded card.

    `total`: how many rows there are in all, including those not passed.
    """
    lines = []
    cut = False
    for gutter, text in rows:
        room = look.width - width_of(gutter)
        cut = cut or width_of(text) > room
        line = Line(fit(text, room, look.glyphs.ellipsis))
        lines += list(prefixed([line], gutter)) if gutter else [line]
    hidden = total - len(rows)
    return Body(lines=tuple(lines), hidden=hidden, more=cut or hidden > 0)


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
    language: str = "",
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


def _rows(lines: Sequence[str], language: str, style: Style, look: Look) -> Iterable[GutterRow]:
    return _coloured(lines, language, look) if language else _plain(lines, style)


def _coloured(lines: Sequence[str], language: str, look: Look) -> Iterator[GutterRow]:
    """Yield lines of code, highlighting them only up to `LIMIT` characters."""
    ends = accumulate(len(line) + 1 for line in lines)
    some = sum(1 for _ in takewhile(lambda end: end <= LIMIT, ends))
    if some:
        for pieces in highlight("\n".join(lines[:some]), language, look):
            yield GutterRow((), pieces)
    yield from _plain(lines[some:], look[Role.TEXT])


def _numbered(
    rows: Iterable[GutterRow], first: int, digits: int, look: Look
) -> Iterator[GutterRow]:
    for number, row in enumerate(rows, first):
        yield GutterRow((Piece(f"{number:>{digits}}  ", look[Role.MUTED]),), row.text)


def _rest(some: Excerpt, rows: Iterable[GutterRow], look: Look) -> Iterator[Line]:
    if some.left_out:
        yield left_out_line(some.left_out, look)
    yield from wrapped_rows(rows, look)
    if some.cut:
        yield cut_lines(look)


def _plain(lines: Iterable[str], style: Style) -> Iterator[GutterRow]:
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
    pieces = fit((Piece(f"{mark} {words} {mark}", look[Role.MUTED]),), look.width, mark)
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


def styled(text: str, style: Style) -> Pieces:
    """Return text as pieces in a single style."""
    return (Piece(tabless(text), style),)


_PARSED_CHARACTERS = 30_000
_PARSED_LINES = 1_000
_PARSED_MARKS = 2_000
"""The maximum number of brackets and bars in text that is parsed as Markdown.

Together with `_PARSED_CHARACTERS` and `_PARSED_LINES`, it limits parsing to about 50 ms.
"""

DrawText = Callable[[str, Look], Iterator[Line]]


def draw_prose(text: str, look: Look, draw: DrawText) -> Iterator[Line]:
    """Yield the lines of `text`: rendered by `draw` up to a limit, then unformatted.

    If the unformatted rest is very long as well, a note replaces its middle.
    """
    text = text.strip("\n").rstrip(BLANKS)
    cut = _bound(text)
    if cut:
        yield from draw(clean(text[:cut]), look)
    rest = text[cut:]
    if rest:
        if cut:
            yield from (
                BLANK,
                note_line("too long for Markdown; the rest is shown as plain text", look),
            )
        yield from text_rows(rest, look, folded=False, prose=True).lines


def _bound(text: str) -> int:
    """Return how many characters of `text` to parse; 0 if it has too many brackets.

    If the text is too long, the cut is at the end of a paragraph, or else at the end of a line.
    """
    end = min(len(text), _PARSED_CHARACTERS)
    if text.count("[", 0, end) + text.count("|", 0, end) > _PARSED_MARKS:
        return 0
    for _ in range(text.count("\n", 0, end) - _PARSED_LINES):
        end = text.rindex("\n", 0, end)
    if end == len(text):
        return end
    return max(text.rfind("\n\n", 0, end), 0) or max(text.rfind("\n", 0, end), 0)
