"""Predict the result of an edit by Gemini CLI's `replace` tool.

The CLI searches for the old string exactly, then by trimmed lines, then by words, then by
similarity, and uses the first match. The last three strategies re-indent the new string
(assets/gemini-cli.md#effects).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gemtui.calls.javascript import BLANKS, length, lines, units, without_blanks

_THRESHOLD = 0.1
_BLANK_COSTS = 0.1
_MOST_WORK = 4e8
"""The most work that a search by similarity may take.

The work is the file's number of lines times the square of the old string's length.
"""
_SHORTEST = 10
"""The shortest old string, in UTF-16 code units, to search for by similarity."""
_INDENT = re.compile("[ \t]*")
_DELIMITERS = "():[]{}><="
_JS_BLANKS = f"[{BLANKS}]*"
_LINE_START = "(?:\\A|(?<=[\n\r\u2028\u2029]))"


@dataclass(frozen=True, slots=True)
class EditOutcome:
    r"""The result of an edit.

    `after`: the whole file contents, with `\n` line endings. `count`: how many places were found.
    `exact`: whether the old string was found verbatim.
    """

    after: str
    count: int
    exact: bool = False


def edited(before: str, old: str, new: str, *, several: bool) -> EditOutcome | None:
    r"""Return the result of replacing `old` with `new`; None if `old` was not found.

    `before`: the contents to edit, with `\n` line endings. `several`: whether more than one place
    may change. If not, and the exact old string is found more than once, nothing is replaced; the
    result's `count` shows this.
    """
    size = length(old)
    old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    if not old:
        return None
    count = before.count(old)
    if count:
        after = before if count > 1 and not several else _ended(before, before.replace(old, new))
        return EditOutcome(after, count, exact=True)
    return (
        _by_trimmed_lines(before, old, new)
        or _by_words(before, old, new, several=several)
        or _by_similarity(before, old, new, size)
    )


def block(before: str, after: str) -> tuple[str, str]:
    """Return the smallest blocks of lines, old and new, that describe an edit exactly.

    The old block occurs in `before` exactly once, and replacing it with the new block yields
    `after`. `before` and `after` must differ.
    """
    if after.endswith("\n") and not before.endswith("\n"):
        after += "\n"  # the CLI will remove one
    was, now = before.splitlines(keepends=True), after.splitlines(keepends=True)
    first = 0
    same = min(len(was), len(now))
    while first < same and was[first] == now[first]:
        first += 1
    last = 0
    while last < same - first and was[-1 - last] == now[-1 - last]:
        last += 1
    while True:
        old = "".join(was[first : len(was) - last])
        if old and before.count(old) == 1:
            return old, "".join(now[first : len(now) - last])
        if not first and not last:
            return before, after
        if first:
            first -= 1
        if last:
            last -= 1


def _ended(before: str, after: str) -> str:
    """Return `after` with a final newline exactly if `before` has one."""
    if before.endswith("\n") and not after.endswith("\n"):
        return f"{after}\n"
    if not before.endswith("\n") and after.endswith("\n"):
        return after[:-1]
    return after


def _indent(line: str) -> str:
    match = _INDENT.match(line)
    return match[0] if match else ""


def _indented(new: Sequence[str], indent: str) -> str:
    own = _indent(new[0])
    return "\n".join(
        ""
        if not line.strip(BLANKS)
        else indent + (line[len(own) :] if line.startswith(own) else line.lstrip(BLANKS))
        for line in new
    )


def _by_trimmed_lines(before: str, old: str, new: str) -> EditOutcome | None:
    source = lines(before)
    wanted = [line.strip(BLANKS) for line in old.split("\n")]
    count = at = 0
    trimmed = [line.strip(BLANKS) for line in source]
    while at <= len(source) - len(wanted):
        if trimmed[at : at + len(wanted)] == wanted:
            count += 1
            text = _indented(new.split("\n"), _indent(source[at]))
            if new and source[at + len(wanted) - 1].endswith("\n") and not text.endswith("\n"):
                text += "\n"
            source[at : at + len(wanted)] = [text]
            trimmed[at : at + len(wanted)] = [text.strip(BLANKS)]
        at += 1
    return EditOutcome(_ended(before, "".join(source)), count) if count else None


def _by_words(before: str, old: str, new: str, *, several: bool) -> EditOutcome | None:
    for delimiter in _DELIMITERS:
        old = old.replace(delimiter, f" {delimiter} ")
    words = [word for word in re.split(f"[{BLANKS}]+", old) if word]
    if not words:
        return None
    pattern = re.compile(f"{_LINE_START}([ \t]*){_JS_BLANKS.join(map(re.escape, words))}")
    count = len(pattern.findall(before))
    if not count:
        return None
    parts = new.split("\n")
    after = pattern.sub(lambda match: _indented(parts, match[1]), before, count=0 if several else 1)
    return EditOutcome(_ended(before, after), count)


def _by_similarity(before: str, old: str, new: str, size: int) -> EditOutcome | None:
    r"""Replace each block of lines that resembles `old`.

    `size`: the length of the old string before `\r\n` was replaced, which the CLI uses for its
    limits.
    """
    source = lines(before)
    wanted = [line.rstrip(BLANKS) for line in lines(old)]
    text = "\n".join(wanted)
    if size < _SHORTEST or len(source) * size**2 > _MOST_WORK or not text:
        return None
    places = _similar_places([line.rstrip(BLANKS) for line in source], text, len(wanted))
    if not places:
        return None
    parts = new.split("\n")
    many = len(wanted)
    for at in sorted(places, reverse=True):
        replacement = _indented(parts, _indent(source[at]))
        if source[at + many - 1].endswith("\n"):
            replacement += "\n"
        source[at : at + many] = [replacement]
    return EditOutcome(_ended(before, "".join(source)), len(places))


def _similar_places(source: Sequence[str], text: str, many: int) -> list[int]:
    """Return where the blocks of lines that resemble `text` start, best match first.

    `source`: the file's lines. `many`: the number of lines in `text`, and so in each block. The
    result contains indexes into `source`. The blocks don't overlap.
    """
    from rapidfuzz.distance import Levenshtein  # slow to import

    size = length(text)
    plain = units(without_blanks(text))
    raw = units(text)
    most = int(size * _THRESHOLD) + 1
    differences: list[tuple[float, int]] = []
    for at in range(len(source) - many + 1):
        window = "\n".join(source[at : at + many])
        if abs(length(window) - size) / size > _THRESHOLD / _BLANK_COSTS:
            continue
        bare = Levenshtein.distance(units(without_blanks(window)), plain, score_cutoff=most)
        if bare > most:
            continue
        whole = Levenshtein.distance(units(window), raw)
        score = (bare + (whole - bare) * _BLANK_COSTS) / size
        if score <= _THRESHOLD:
            differences.append((score, at))
    places: list[int] = []
    for _, at in sorted(differences):
        if all(abs(at - other) >= many for other in places):
            places.append(at)
    return places
