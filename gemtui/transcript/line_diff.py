"""Compare strings line by line, including long ones."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import Match, SequenceMatcher
from typing import Any

_MOST = 2000
"""Maximum number of lines, in both strings, to compare with `difflib` at a time.

Longer strings are divided at lines that occur once in both. A part that is still longer is replaced
as a whole.
"""


def hunks_of(old: str, new: str) -> Iterator[str]:
    """Yield the hunks of a unified diff of two strings, as lines with line endings.

    A missing newline at the end of a string is ignored.
    """
    before, after = _lines(old), _lines(new)
    if before == after:
        return
    for steps in _Compared(before, after).get_grouped_opcodes():
        start, _, begin, *_ = steps[0][1:]
        end, stop = steps[-1][2], steps[-1][4]
        yield f"@@ -{_range(start, end)} +{_range(begin, stop)} @@\n"
        for tag, *places in steps:
            yield from _step(tag, before[slice(*places[:2])], after[slice(*places[2:])])


def _range(start: int, end: int) -> str:
    return f"{start + (end > start)},{end - start}"


def _step(tag: str, old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    if tag == "equal":
        yield from (f" {line}" for line in old)
    else:
        yield from (f"-{line}" for line in old)
        yield from (f"+{line}" for line in new)


class _Compared(SequenceMatcher[str]):
    """A SequenceMatcher for long lists of lines, which are compared in shorter parts."""

    def __init__(self, before: Sequence[str], after: Sequence[str]) -> None:
        super().__init__()
        self._before, self._after = before, after

    def get_matching_blocks(self) -> list[Match]:
        """Return the positions and lengths of equal lines, as in `SequenceMatcher`.

        The last item has length 0 and holds the lengths of both lists.
        """
        blocks: list[Match] = []
        for block in _alike_blocks(self._before, self._after):
            if not block.size:
                continue
            last = blocks[-1] if blocks else Match(0, 0, 0)
            if (last.a + last.size, last.b + last.size) == block[:2]:
                blocks[-1:] = [Match(last.a, last.b, last.size + block.size)]
            else:
                blocks.append(block)
        return [*blocks, Match(len(self._before), len(self._after), 0)]


def _alike_blocks(
    before: Sequence[str], after: Sequence[str], at: int = 0, to: int = 0, *, part: bool = False
) -> Iterator[Match]:
    """Yield the blocks of equal lines of `before` and `after`, in order.

    Two blocks may be adjacent. `at`, `to`: numbers to add to the positions in `before` and `after`.
    `part`: whether the lines are already a part of longer lists; if so, they are not divided again.
    """
    head = _alike(before, after)
    tail = _alike(before[head:][::-1], after[head:][::-1])
    yield Match(at, to, head)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if len(old) + len(new) <= _MOST:
        for block in SequenceMatcher(None, old, new).get_matching_blocks():
            yield Match(at + head + block.a, to + head + block.b, block.size)
    elif not part:
        yield from _around(_landmarks(old, new), old, new, at + head, to + head)
    yield Match(at + len(before) - tail, to + len(after) - tail, tail)


def _around(
    marks: Sequence[tuple[int, int]], old: Sequence[str], new: Sequence[str], at: int, to: int
) -> Iterator[Match]:
    """Divide two lists of lines at equal lines, and yield the blocks of equal lines.

    `marks`: the positions in `old` and `new` of the equal lines at which to divide. `at`, `to`: as
    in `_alike_blocks`.
    """
    start, begin = 0, 0
    for end, stop in [*marks, (len(old), len(new))] if marks else ():
        yield from _alike_blocks(old[start:end], new[begin:stop], at + start, to + begin, part=True)
        yield Match(at + end, to + stop, int(end < len(old)))
        start, begin = end + 1, stop + 1


def _landmarks(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the (old, new) positions of lines at which two lists can be divided.

    They are the longest sequence of lines that each occur once in each list and are in the same
    order in both.
    """
    once = {line for line, count in Counter(old).items() if count == 1}
    places = {line: at for at, line in enumerate(old) if line in once}
    counts = Counter(line for line in new if line in once)
    ends: list[int] = []
    rows: list[tuple[int, int, Any]] = []
    for to, line in enumerate(new):
        if counts[line] == 1:
            length = bisect_left(ends, places[line])
            row = (places[line], to, rows[length - 1] if length else None)
            ends[length : length + 1], rows[length : length + 1] = [places[line]], [row]
    found, last = [], rows[-1] if rows else None
    while last is not None:
        found.append(last[:2])
        last = last[2]
    return found[::-1]


def _alike(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the number of equal lines at the beginning of two lists of lines."""
    pairs = enumerate(zip(first, second, strict=False))
    differs = (at for at, (one, other) in pairs if one != other)
    return next(differs, min(len(first), len(second)))


def _lines(text: str) -> list[str]:
    return [f"{line}\n" for line in text.removesuffix("\n").split("\n")] if text else []
