"""Where a growing Markdown text has settled: what stands before stays as it is, whatever comes.

An answer that streams in is drawn many times a second. Its finished parts are drawn once, so that
the cost of a frame is that of the last paragraph and not of the whole answer.
"""

from __future__ import annotations

import re

_DEFINITION = re.compile(r"^ {0,3}\[[^\]\n]+\]:", re.MULTILINE)
"""A link definition is meant for the whole text, before and after it."""
_UNCERTAIN = re.compile(
    r"^(?:[ \t]+(?:```|~~~)| {0,3}<|[ \t]*(?:[-+*>]|\d+[.)])[ \t]+.*(?:```|~~~|<))"
)
"""Fences inside of something, HTML that may hold empty lines: no splitting from here on."""
_FENCE = re.compile(r"^(`{3,}|~{3,})")
_GOES_ON = re.compile(r"\s|[-+*](?:\s|$)|\d+[.)](?:\s|$)")
"""Beginnings of a line that may belong to a list before it."""


def chunks(text: str) -> list[str]:
    """Split a text into parts that look the same drawn alone as together.

    Only the last one may still grow; joined by empty lines they are the text again. A text that
    can't safely be split is one part.
    """
    if "\n\n" not in text or _DEFINITION.search(text):
        return [text]
    lines = text.split("\n")
    parts: list[str] = []
    start, fence = 0, ""
    for number, line in enumerate(lines):
        if not fence and _UNCERTAIN.match(line):
            break
        if not line and not fence and number > start and _ends(lines, number):
            parts.append("\n".join(lines[start:number]))
            start = number + 1
        fence = _fence_after(line, fence)
    return [*parts, "\n".join(lines[start:])]


def _ends(lines: list[str], number: int) -> bool:
    """Whether a block surely ends at this empty line, and another one begins behind it."""
    if number + 1 >= len(lines) or not lines[number - 1]:
        return False
    following = lines[number + 1]
    return bool(following) and not _GOES_ON.match(following)


def _fence_after(line: str, fence: str) -> str:
    """The fence that is open behind this line, "" for none."""
    found = _FENCE.match(line)
    if found is None:
        return fence
    if not fence:
        is_inline = found[1][0] == "`" and "`" in line[len(found[1]) :]
        return "" if is_inline else found[1]
    closes = line.rstrip(" \t") == found[1] and found[1].startswith(fence)
    return "" if closes else fence
