"""A message's head line: author, time, model and token counts."""

from __future__ import annotations

from collections.abc import Iterator

from gemtui.transcript.media import image_words
from gemtui.transcript.model import Author, Image, Message, Usage
from gemtui.ui.draw.formats import format_time, short_count
from gemtui.ui.draw.lines import Line, Piece, Pieces, cut, flat, own, spread, width_of
from gemtui.ui.draw.theme import BOLD, Look, Role


def draw_head(message: Message, look: Look) -> Line:
    """Return a message's head line.

    If there isn't enough room, some of the facts on the right are left out.
    """
    who, role = {
        Author.USER: ("You", Role.ACCENT),
        Author.MODEL: ("Gemini", Role.MODEL),
        Author.SYSTEM: ("Gemini CLI", Role.MUTED),
    }[message.author]
    left = [*author_bar(message, look), Piece(own(who), look[role] + BOLD)]
    if message.time is not None:
        left.append(Piece(own(f"  {format_time(message.time, look)}"), look[Role.MUTED]))
    if message.checkpoint:
        left.append(Piece(own(f"  {look.glyphs.undo} checkpoint"), look[Role.MUTED]))
    if message.dropped is not None:
        left.append(Piece(own(f"  {message.dropped.word}"), look[Role.WARNING]))
    front = cut(tuple(left), look)
    room = look.width - width_of(front) - 2
    end: Pieces = next((end for end in _ends(message, look) if width_of(end) <= room), ())
    blank = Piece(own(" "), look[Role.MUTED])
    return Line(spread(front, end, look.width, blank) if end else front, 2)


def _ends(message: Message, look: Look) -> Iterator[Pieces]:
    """Yield the model and token counts in several versions, the longest first."""
    model = flat((message.model or "")[:100]).removeprefix("gemini-")
    total, details = _tokens(message.usage, look)
    named = (Piece(own(model), look[Role.MUTED]),) if model else ()
    for groups in ((named, details, total), (named, total), (total,), (named,)):
        pieces = [piece for group in filter(None, groups) for piece in (*group, _gap(look))]
        yield tuple(pieces[:-1])


def _gap(look: Look) -> Piece:
    return Piece(own("  "), look[Role.MUTED])


def _tokens(usage: Usage | None, look: Look) -> tuple[Pieces, Pieces]:
    """Return the total number of tokens, and the numbers that add up to it.

    If they don't add up, the total is marked.
    """
    if usage is None or usage == Usage():
        return (), ()
    muted = look[Role.MUTED]
    total = "tokens unknown" if usage.total is None else f"{short_count(usage.total)} tokens"
    pieces = [Piece(own(total), muted)]
    if not usage.adds_up:
        mark = own(f"{look.glyphs.warning} tokens don't add up  ")
        pieces.insert(0, Piece(mark, look[Role.WARNING]))
    known = [("in", usage.input), ("out", usage.output), ("thoughts", usage.thoughts)]
    words = [
        f"{name} {'unknown' if number is None else short_count(number)}"
        for name, number in known
        if number != 0 or name != "thoughts"
    ]
    return tuple(pieces), (Piece(own(f" {look.glyphs.dot} ".join(words)), muted),)


def author_bar(message: Message, look: Look) -> Pieces:
    """Return the bar at the left of a message's lines, in its author's colour."""
    role = {Author.USER: Role.ACCENT, Author.MODEL: Role.MODEL, Author.SYSTEM: Role.MUTED}
    return (Piece(own(f"{look.glyphs.bar} "), look[role[message.author]]),)


def draw_image(image: Image, look: Look) -> Pieces:
    """Return a description of an image or other binary content."""
    return (Piece(own(f"[{image_words(image)}]"), look[Role.TEXT]),)
