"""Compare texts line by line, including long ones, and create patches in git's format."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from difflib import Match, SequenceMatcher, unified_diff
from itertools import dropwhile
from typing import Any, NamedTuple

_MOST = 2000
"""Maximum number of lines, in both strings, to compare with `difflib` at a time.

Longer strings are divided at lines that occur once in both. A part that is still longer is replaced
as a whole.
"""


def hunks_of(old: str, new: str) -> Iterator[str]:
    """Yield the hunks of a unified diff of two strings, as lines with line endings.

    A missing newline at the end of a string is ignored.
    """
    before, after = _text_lines(old), _text_lines(new)
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
    landmarks = []
    last = rows[-1] if rows else None
    while last is not None:
        landmarks.append(last[:2])
        last = last[2]
    return landmarks[::-1]


def _alike(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the number of equal lines at the beginning of two lists of lines."""
    pairs = enumerate(zip(first, second, strict=False))
    differs = (at for at, (one, other) in pairs if one != other)
    return next(differs, min(len(first), len(second)))


def _text_lines(text: str) -> list[str]:
    return [f"{line}\n" for line in text.removesuffix("\n").split("\n")] if text else []


_LONGEST = 10_000
"""Maximum number of lines, before and after together, for comparing a file line by line.

A longer file is replaced as a whole, because comparing lines takes more than linear time.
"""
_NO_NEWLINE = "\\ No newline at end of file\n"
_CORRUPT = "the recorded diff is incomplete or corrupt"
_SEVERAL = "the recorded diff contains changes to more than one file"
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@(?:\s|$)", re.A)
_GIT = re.compile(r"(?:\.git|git~1)[ .]*(?:[:\\].*)?", re.IGNORECASE | re.DOTALL)
"""Matches all names that Windows or macOS treat as `.git`.

git refuses them on every system.
"""
_INVISIBLE = re.compile(r"[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""Characters that a macOS file system ignores in names."""
_REPLACED = "\ufffd"
"""The character as which Gemini CLI and gemtui read bytes and escapes that are not valid UTF-8."""
_LONGEST_NAME = 255
"""Maximum length of one component of a path in bytes."""
_LONGEST_PATH = 4095
"""Maximum length of a path in bytes, relative to the folder in which git applies the patch."""
_PLAIN_NAME = re.compile(r'[^\x00-\x1f\x7f"\\]+')


class NoPatch(ValueError):
    """Raised for a change that can't be put into a patch; the message says why."""


def file_patch(name: str, before: str | None, after: str | None) -> str:
    """Return the change to one file for `git apply`; "" if nothing changed.

    `name`: the path relative to where the patch will be applied, with slashes. `before`, `after`:
    the whole contents; None if the file does not exist. Raises NoPatch if git would refuse the
    patch, because git would then also refuse the changes to all other files.
    """
    if before == after:
        return ""
    why = _bad_name(name)
    if why:
        raise NoPatch(why)
    hunks = list(_hunks(before or "", after or ""))
    if not _is_utf8("".join(hunks)) or any(map(_was_replaced, hunks)):
        raise NoPatch("its contents are not valid UTF-8")
    head = _head(name, is_new=before is None, gone=after is None, changed=bool(hunks))
    return head + "".join(hunks)


def apply_diff(before: str, diff: str) -> str:
    """Return the text that results from applying a unified diff to `before`.

    `diff`: may have any header before its first `@@`, as stored by Gemini CLI. Raises NoPatch if
    the diff does not fit, is truncated, or has anything besides its hunks. Without any hunk, its
    header must be complete: anything else says nothing about the text.
    """
    old = _lines(before)
    new = list[str]()
    at = 0
    hunks = hunks_of_diff(diff)
    if not hunks and not diff.rpartition("\n+++ ")[1]:
        raise NoPatch(_CORRUPT)
    for hunk in hunks:
        taken = len(hunk.removed)
        first = hunk.old_first - (taken > 0)
        if first < at or old[first : first + taken] != hunk.removed:
            raise NoPatch("the recorded diff does not match the earlier contents")
        new += [*old[at:first], *hunk.added]
        at = first + taken
    new += old[at:]
    if not all(line.endswith("\n") for line in new[:-1]):
        raise NoPatch(_CORRUPT)
    return "".join(new)


class Hunk(NamedTuple):
    """One hunk of a unified diff: its line numbers, and the lines before and after."""

    old_first: int
    removed: list[str]
    new_first: int
    added: list[str]


def hunks_of_diff(diff: str) -> list[Hunk]:
    """Return the hunks of a unified diff, which may have any header.

    Raises NoPatch if a hunk is truncated, or if anything but a hunk follows.
    """
    hunks = []
    rest = deque(dropwhile(lambda line: not line.startswith("@@ "), _lines(diff)))
    while rest:
        line = rest.popleft()
        head = _HUNK.match(line)
        if head is None:
            raise NoPatch(_CORRUPT if line.startswith("@@ ") else _SEVERAL)
        removed, added = _hunk(rest, int(head[2] or 1), int(head[4] or 1))
        hunks.append(Hunk(int(head[1]), removed, int(head[3]), added))
    return hunks


GAP = "@"


class DiffLine(NamedTuple):
    """A line of a diff, as it is shown.

    `sign`: "+", "-" or " ", or `GAP` for the gap between two hunks. `old`, `new`: the 1-based
    numbers of the line in both files, or of the next line in the file that lacks it.
    """

    sign: str
    text: str = ""
    old: int = 0
    new: int = 0


def diff_lines(diff: Iterable[str]) -> Iterator[DiffLine]:
    """Yield the lines of one file's unified diff, even if it is truncated.

    Headers and notes about missing newlines are left out.
    """
    old = new = 0
    for line in diff:
        head = _HUNK.match(line)
        if head:
            if old or new:
                yield DiffLine(GAP)
            old, new = int(head[1]), int(head[3])
        elif (old or new) and not line.startswith("\\"):
            sign = line[:1] if line[:1] in ("+", "-") else " "
            yield DiffLine(sign, line[1:], old, new)
            old, new = old + (sign != "+"), new + (sign != "-")


def is_diff_text(line: str) -> bool:
    """Return whether a line of a diff without hunks has content, and isn't part of a header."""
    return bool(line.strip()) and not line.startswith(("Index: ", "=====", "--- ", "+++ "))


def _hunk(rest: deque[str], taken: int, inserted: int) -> tuple[list[str], list[str]]:
    """Remove one hunk's lines from the start of `rest`; return (old lines, new lines).

    `rest`: the lines of a diff after the hunk's header. `taken`, `inserted`: how many old and new
    lines the header announces. Raises NoPatch if there are fewer or more, or if a line follows one
    without a line feed.
    """
    removed, added = list[str](), list[str]()
    sides: tuple[list[str], ...] = ()
    while rest and (len(removed) < taken or len(added) < inserted or rest[0].startswith("\\")):
        line = rest.popleft()
        if line.startswith("\\"):  # the line before it has no line feed
            for side in sides:
                side[-1] = side[-1].removesuffix("\n")
        else:
            sides = {"-": (removed,), "+": (added,), " ": (removed, added)}.get(line[0], ())
            if any(side and not side[-1].endswith("\n") for side in sides):
                break
            for side in sides:
                side.append(line[1:])
            if not line.endswith("\n"):
                break
        if not sides:
            break
    else:
        if (len(removed), len(added)) == (taken, inserted):
            return removed, added
    raise NoPatch(_CORRUPT)


def _bad_name(name: str) -> str:
    """Return why git would refuse a patch to a file with this name; "" if it wouldn't."""
    parts = name.split("/")
    if not _is_utf8(name) or _REPLACED in name:
        return "its name is not valid UTF-8"
    too_long = len(name.encode()) > _LONGEST_PATH or any(
        len(part.encode()) > _LONGEST_NAME for part in parts
    )
    if "\0" in name or too_long:
        return "its name is not a valid file name"
    if not {"", ".", ".."}.isdisjoint(parts):
        return "its path leads outside of the folder"
    if any(_GIT.fullmatch(_INVISIBLE.sub("", part)) for part in parts):
        return "git does not apply changes under .git"
    return ""


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _was_replaced(line: str) -> bool:
    """Return whether a line of the earlier contents may have had bytes that are not valid UTF-8.

    A patch can't match such a line. In new lines, the character is what Gemini CLI has written,
    even for a lone surrogate.
    """
    return line.startswith((" ", "-")) and _REPLACED in line


def _head(name: str, *, is_new: bool, gone: bool, changed: bool) -> str:
    old, new = _quoted(f"a/{name}"), _quoted(f"b/{name}")
    head = f"diff --git {old} {new}\n"
    if is_new:
        head += "new file mode 100644\n"
    elif gone:
        head += "deleted file mode 100644\n"
    if changed:
        end = "\t" if " " in name else ""  # programs other than git need it
        head += "--- /dev/null\n" if is_new else f"--- {old}{end}\n"
        head += "+++ /dev/null\n" if gone else f"+++ {new}{end}\n"
    return head


def _quoted(name: str) -> str:
    """Return a name as in git's headers, quoted if necessary."""
    if _PLAIN_NAME.fullmatch(name):
        return name
    escaped = re.sub(r'[\x00-\x1f\x7f"\\]', lambda match: f"\\{ord(match[0]):03o}", name)
    return f'"{escaped}"'


def _hunks(before: str, after: str) -> Iterator[str]:
    old, new = _lines(before), _lines(after)
    if len(old) + len(new) <= _LONGEST:
        changed = list(unified_diff(old, new))[2:]
    else:
        changed = [f"@@ -{_span(old)} +{_span(new)} @@\n"]
        changed += [f"-{line}" for line in old] + [f"+{line}" for line in new]
    for line in changed:
        yield line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}"


def _span(lines: list[str]) -> str:
    return f"1,{len(lines)}" if lines else "0,0"


def _lines(text: str) -> list[str]:
    """Split text after each line feed; as in git, nothing else ends a line."""
    return re.findall(r"[^\n]*\n|[^\n]+$", text)
