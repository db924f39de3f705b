"""Merge two changes to the same text, unless they overlap or are adjacent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

MOST_LINES = 20_000
"""The most lines to compare; comparing longer files could take minutes."""
MOST_CHANGED = 4_000

LineHunk = tuple[int, int, Sequence[bytes]]
"""A change to lines: start and end (exclusive) in the base, and the new lines."""


def merge(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return `ours` with the change from `base` to `theirs` applied to it.

    Returns None if the two changes overlap or no unchanged line lies between them, or if any of the
    three versions is binary or too long to compare.
    """
    if theirs in (base, ours):
        return ours
    if ours == base:
        return theirs
    if any(b"\0" in text for text in (base, ours, theirs)):
        return None
    lines = [text.splitlines(keepends=True) for text in (base, ours, theirs)]
    if max(map(len, lines)) > MOST_LINES:
        return None
    mine, other = line_hunks(lines[0], lines[1]), line_hunks(lines[0], lines[2])
    if _touch(mine, other):
        return None
    merged = list[bytes]()
    at = 0
    for start, end, new in _together(mine, other):
        merged += [*lines[0][at:start], *new]
        at = end
    return b"".join([*merged, *lines[0][at:]])


def line_hunks(base: Sequence[bytes], text: Sequence[bytes]) -> list[LineHunk]:
    """Return the changes that turn the lines `base` into the lines `text`.

    To save time, a very long change is returned as a single hunk.
    """
    head = 0
    while head < min(len(base), len(text)) and base[head] == text[head]:
        head += 1
    tail = 0
    while tail < min(len(base), len(text)) - head and base[-1 - tail] == text[-1 - tail]:
        tail += 1
    old, new = base[head : len(base) - tail], text[head : len(text) - tail]
    if max(len(old), len(new)) > MOST_CHANGED:
        return [(head, head + len(old), new)]
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [(head + i, head + j, new[k:m]) for kind, i, j, k, m in codes if kind != "equal"]


def _together(mine: Sequence[LineHunk], other: Sequence[LineHunk]) -> Iterator[LineHunk]:
    """Yield the hunks of both lists, in order; a hunk that is in both is yielded once."""
    both = {hunk[:2]: hunk for hunk in mine}
    yield from sorted(
        [*mine, *(hunk for hunk in other if not _same(both.get(hunk[:2]), hunk))],
        key=lambda hunk: hunk[:2],
    )


def _same(one: LineHunk | None, other: LineHunk) -> bool:
    return one is not None and list(one[2]) == list(other[2])


def _touch(mine: Sequence[LineHunk], other: Sequence[LineHunk]) -> bool:
    return any(
        one[0] <= two[1] and two[0] <= one[1] and not (one[:2] == two[:2] and _same(one, two))
        for one in mine
        for two in other
    )
