"""Limits for long text, applied before it is sanitized and rendered."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from msgspec import Struct

from gemtui.text import BLANKS, Clean, clean, newlines

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

    head: tuple[Clean, ...]
    tail: tuple[Clean, ...] = ()
    left_out: int = 0
    cut: bool = False
    blank: int = 0


def bounded_excerpt(
    text: str, *, head: int = LINES // 2, tail: int = LINES // 2, cleaned: Callable[[str], Clean] = clean
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
        head, tail = total, 0
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


def _lines(lines: list[str], cleaned: Callable[[str], Clean]) -> tuple[Clean, ...]:
    text = cleaned("\n".join(line[:LONG_LINE].removesuffix("\r") for line in lines))
    return tuple(Clean(line) for line in text.split("\n")) if lines else ()
