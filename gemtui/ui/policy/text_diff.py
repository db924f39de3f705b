"""Compare two strings line by line, marking changes with `+` and `-` (pure functions)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

MOST_LINES = 2_000
"""The maximum number of lines to show; a longer diff is cut to its changes."""
_AROUND = 3
_MOST_COMPARED = 4_000


class TextDiffLine(NamedTuple):
    """A line of a diff.

    `sign`: "+", "-" or " ", or "…" where lines have been left out. `line`: the 1-based line number
    in the new text; None if the line isn't in it.
    """

    sign: str
    text: str
    line: int | None


class TextDiff(NamedTuple):
    """The lines of a diff, and how many separate changes there are."""

    lines: tuple[TextDiffLine, ...]
    changes: int


def text_diff(old: str, new: str) -> TextDiff:
    """Return the new text as a diff, with removed lines where they used to be.

    If the part that differs is thousands of lines long, its lines aren't compared with each other,
    and it counts as one change.
    """
    before, after = _split(old), _split(new)
    blocks = list(_blocks(before, after))
    changes = sum(tag != "equal" for tag, *_ in blocks)
    lines = list(_lines(blocks, before, after))
    if len(lines) > MOST_LINES:
        lines = list(_cut(lines))
    return TextDiff(tuple(lines), changes)


def lines_changed(old: str, new: str) -> range:
    """Return the range of 1-based line numbers in `new` that contains all changes.

    It covers everything between the lines at the start and at the end that both strings share.
    """
    before, after = _split(old), _split(new)
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    return range(start + 1, max(start + 2, len(after) - end + 1))


def _split(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _blocks(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield the differences in the form of `SequenceMatcher.get_opcodes`.

    For speed, equal lines at the start and end of both strings are skipped.
    """
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    last, until = len(old) - end, len(new) - end
    if start:
        yield "equal", 0, start, 0, start
    if last - start > _MOST_COMPARED or until - start > _MOST_COMPARED:
        yield "replace", start, last, start, until
    else:
        matcher = SequenceMatcher(None, old[start:last], new[start:until], autojunk=False)
        for tag, a, b, c, d in matcher.get_opcodes():
            yield tag, a + start, b + start, c + start, d + start
    if end:
        yield "equal", last, len(old), until, len(new)


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(old), len(new)))


def _lines(
    blocks: Sequence[tuple[str, int, int, int, int]], old: Sequence[str], new: Sequence[str]
) -> Iterator[TextDiffLine]:
    for tag, a, b, c, d in blocks:
        if tag == "equal":
            yield from (TextDiffLine(" ", new[at], at + 1) for at in range(c, d))
        else:
            yield from (TextDiffLine("-", old[at], None) for at in range(a, b))
            yield from (TextDiffLine("+", new[at], at + 1) for at in range(c, d))


def _cut(lines: Sequence[TextDiffLine]) -> Iterator[TextDiffLine]:
    """Yield only the changed lines and a few lines around them, up to a limit.

    A line with the sign "…" replaces lines that are left out.
    """
    near = {
        each for at, line in enumerate(lines) if line.sign != " " for each in range(at - _AROUND, at + _AROUND + 1)
    } or set(range(MOST_LINES))
    shown = sorted(at for at in near if 0 <= at < len(lines))[:MOST_LINES]
    last = -1
    for at in shown:
        if at != last + 1:
            yield TextDiffLine("…", f"{at - last - 1:,} lines", None)
        yield lines[at]
        last = at
    if last + 1 < len(lines):
        yield TextDiffLine("…", f"{len(lines) - last - 1:,} lines", None)
