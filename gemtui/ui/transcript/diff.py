"""Render a file's change: line numbers, gutter markers, and marked words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace
from rich.style import Style

from gemtui.text import visible
from gemtui.transcript.diffs import GAP, diff_lines, is_diff_text
from gemtui.transcript.displays import has_line_numbers
from gemtui.transcript.model import DiffDisplay
from gemtui.ui.draw.code import highlight, language_of
from gemtui.ui.draw.lines import Line, Piece, Pieces, flat, lay_out, prefixed, tabless
from gemtui.ui.draw.text_rows import LINES, Body, bounded_excerpt, left_out_line, text_rows
from gemtui.ui.draw.theme import Look, Role

_ALIKE = 0.5
"""Minimum share of equal characters in two lines whose differing words are marked."""
_FOLDED = 6
"""Maximum number of changed lines that a folded diff shows."""


def draw_diff(display: DiffDisplay, look: Look, *, folded: bool) -> Body:
    """Render a file's changed lines with their context, or a few of them if folded."""
    facts = change_counts(display.added, display.removed, look)
    some = bounded_excerpt(display.diff, head=LINES, tail=0, cleaned=visible)
    changes = read_diff(some.head)
    if not has_line_numbers(display):
        changes = [replace(change, number=0) for change in changes]
    if not changes and not any(map(is_diff_text, some.head)):
        empty = not display.new and (display.is_new or not display.original)
        return Body(facts=facts, note="empty file" if empty else "no changes")
    if not changes:
        return replace(text_rows(display.diff, look, folded=folded, head=_FOLDED), facts=facts)
    language = language_of(flat((display.name or display.path)[-200:]))
    if folded:
        shown = first_changes(changes, _FOLDED)
        lines = tuple(draw_changes(shown, look, language=language, whole=False))
        hidden = len(changes) + some.left_out - len(shown)
        cut = sum(line.pieces[-1].text.endswith(look.glyphs.ellipsis) for line in lines)
        return Body(lines=lines, hidden=hidden, more=hidden + cut > 0, facts=facts)
    lines = tuple(draw_changes(changes, look, language=language))
    if some.left_out:
        lines = (*lines, left_out_line(some.left_out, look))
    return Body(lines=lines, facts=facts)


def change_counts(
    added: int | None, removed: int | None, look: Look, *, front: str = ""
) -> tuple[Piece, ...]:
    """Return the numbers of added and removed lines, such as `+6 −2`, if known.

    `front`: spaces to put before the number of added lines.
    """
    pieces = []
    if added is not None:
        pieces.append(Piece(f"{front}{look.glyphs.added}{added}", look[Role.ADDED]))
    if removed:
        pieces.append(Piece(f" {look.glyphs.removed}{removed}", look[Role.REMOVED]))
    return tuple(pieces)


class Change(Struct, frozen=True):
    """A line of a diff.

    `sign`: "+", "-" or " ", or `GAP` for the gap between two hunks. `number`: the 1-based line
    number, in the old file for a removed line and otherwise in the new one; 0 if it is unknown.
    `differs`: the start and end of the part of `text` that isn't in the corresponding removed or
    added line; None if nothing is marked.
    """

    sign: str
    text: str
    number: int = 0
    differs: tuple[int, int] | None = None


def read_diff(diff: Sequence[str]) -> list[Change]:
    """Return the lines of one file's unified diff.

    Headers and notes about missing newlines are left out.
    """
    return _compared(
        [
            Change(line.sign, line.text, line.old if line.sign == "-" else line.new)
            for line in diff_lines(diff)
        ]
    )


def first_line(diff: str) -> int | None:
    """Return the number of a diff's first changed line, as counted in the new file.

    Returns None if the diff changes no line.
    """
    changed = (line.new for line in diff_lines(diff.split("\n")) if line.sign in ("+", "-"))
    return next((max(1, number) for number in changed), None)


def draw_changes(
    changes: Sequence[Change], look: Look, *, language: str = "", whole: bool = True
) -> Iterator[Line]:
    """Render the lines of a diff with line numbers and markers.

    `language`: the file's language. `whole`: wrap long lines; otherwise, they are cut off. A
    changed line has a background colour; if the theme has none, its text is coloured instead.
    """
    digits = max(3, len(str(max((change.number for change in changes), default=0))))
    for change, pieces in zip(changes, _highlighted(changes, language, look), strict=True):
        if change.sign == GAP:
            yield from _gap(digits, look)
        else:
            yield from _drawn(change, pieces, digits, look, whole)


def _highlighted(changes: Sequence[Change], language: str, look: Look) -> list[Pieces]:
    """Return the text of each line of a diff, highlighted as part of the whole file.

    This is the old file for removed lines, and otherwise the new one.
    """
    rows: list[Pieces] = [(Piece(tabless(each.text), look[Role.TEXT]),) for each in changes]
    for signs in (("-", " "), ("+", " ")):
        places = [at for at, change in enumerate(changes) if change.sign in signs]
        code = "\n".join(changes[at].text for at in places)
        lines = list(highlight(code, language, look)) if places else []
        if len(lines) == len(places):
            for at, line in zip(places, lines, strict=True):
                rows[at] = line
    return rows


def first_changes(changes: Sequence[Change], limit: int) -> Sequence[Change]:
    """Return the first lines of a diff, at most `limit`.

    The first and the last of them are changed lines.
    """
    where = [index for index, change in enumerate(changes) if change.sign in "+-"]
    start = where[0] if where else 0
    end = max((index + 1 for index in where if index < start + limit), default=limit)
    return changes[start:end]


def _gap(digits: int, look: Look) -> Iterator[Line]:
    yield Line((Piece(f"{look.glyphs.ellipsis:>{digits}}", look[Role.MUTED]),), digits)


def _drawn(change: Change, pieces: Pieces, digits: int, look: Look, whole: bool) -> Iterator[Line]:
    role = _ROLES.get(change.sign, Role.TEXT)
    sign = {"+": look.glyphs.added, "-": look.glyphs.removed}.get(change.sign, " ")
    number = Piece(f"{change.number or '':>{digits}} ", look[Role.MUTED])
    ground = ground_of(change.sign, look)
    before = (number, Piece(f"{sign} ", look[role] + ground))
    after = (Piece(f"{look.glyphs.wrapped:>{digits + 2}} ", look[Role.MUTED]),)
    text = _worded(change, on_ground(change.sign, pieces, look), look)
    for line in prefixed(lay_out(text, look.narrowed(digits + 3), whole=whole), before, after):
        yield Line(line.pieces, line.margin, line.joint, line.code, ground)


_ROLES = {"+": Role.ADDED, "-": Role.REMOVED}
_GROUNDS = {"+": Role.ADDED_LINE, "-": Role.REMOVED_LINE}
_WORDS = {"+": Role.ADDED_WORD, "-": Role.REMOVED_WORD}


def ground_of(sign: str, look: Look) -> Style | None:
    """Return the background style of a line with this sign.

    Returns None for unchanged lines, and if the theme has no background for changed lines.
    """
    return (look[_GROUNDS[sign]] or None) if sign in _GROUNDS else None


def on_ground(sign: str, pieces: Pieces, look: Look) -> Pieces:
    """Give the text of a changed line its background or, if there is none, its colour."""
    if sign not in _ROLES:
        return pieces
    over = ground_of(sign, look) or look[_ROLES[sign]]
    return tuple(Piece(piece.text, piece.style + over) for piece in pieces)


def _worded(change: Change, pieces: Pieces, look: Look) -> Pieces:
    """Mark the part of a changed line that differs from its counterpart."""
    if change.differs is None:
        return pieces
    start, end = (len(tabless(change.text[:at])) for at in change.differs)
    strong = look[_WORDS[change.sign]]
    marked: list[Piece] = []
    at = 0
    for piece in pieces:
        size = len(piece.text)
        cuts = [max(0, min(cut - at, size)) for cut in (0, start, end, at + size)]
        for number, (left, right) in enumerate(pairwise(cuts)):
            if left < right:
                style = piece.style + strong if number == 1 else piece.style
                marked.append(Piece(piece.text[left:right], style))
        at += size
    return tuple(marked)


# --- words ---------------------------------------------------------------------------------------


def _compared(changes: list[Change]) -> list[Change]:
    """Set `differs` in removed and added lines that correspond to each other."""
    result = list(changes)
    index = 0
    while index < len(changes):
        removed = _run(changes, index, "-")
        added = _run(changes, index + removed, "+")
        for old in range(index, index + min(removed, added)):
            new = old + removed
            result[old], result[new] = _pair(changes[old], changes[new])
        index += max(1, removed + added)
    return result


def _run(changes: Sequence[Change], start: int, sign: str) -> int:
    end = start
    while end < len(changes) and changes[end].sign == sign:
        end += 1
    return end - start


def _pair(old: Change, new: Change) -> tuple[Change, Change]:
    first = _alike(old.text, new.text)
    shorter = min(len(old.text), len(new.text)) - first
    last = min(shorter, _alike(old.text[::-1], new.text[::-1]))
    longer = max(len(old.text), len(new.text))
    if not longer or (first + last) / longer < _ALIKE:
        return old, new
    return _marked(old, first, last), _marked(new, first, last)


def _alike(one: str, other: str) -> int:
    """Return how many characters at the start of two strings are equal."""
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return index
    return min(len(one), len(other))


def _marked(change: Change, first: int, last: int) -> Change:
    span = (first, len(change.text) - last)
    differs = span if span[0] < span[1] else None
    return Change(change.sign, change.text, change.number, differs)
