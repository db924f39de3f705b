"""Split a growing Markdown text into parts, of which all but the last are final.

An answer that streams in is drawn many times per second. Its final parts are drawn once, so that a
frame costs as much as the last paragraph instead of the whole answer.
"""

from __future__ import annotations

import re

_DEFINITION = re.compile(r"^ {0,3}\[[^\]\n]+\]:", re.MULTILINE)
"""A link definition, which affects the whole text, before and after it."""
_UNCERTAIN = re.compile(
    r"^(?:[ \t]+(?:```|~~~)| {0,3}<|[ \t]*(?:[-+*>]|\d+[.)])[ \t]+.*(?:```|~~~|<))"
)
"""A nested fence, or HTML that may contain empty lines: the text is not split after it."""
_FENCE = re.compile(r"^(`{3,}|~{3,})")
_GOES_ON = re.compile(r"\s|[-+*](?:\s|$)|\d+[.)](?:\s|$)")
"""The beginning of a line that may continue a list."""


def chunks(text: str) -> list[str]:
    """Split a text into parts that look the same whether drawn separately or together.

    Joined by empty lines, they are the text again; only the last one may still grow. A text that
    can't be split safely is a single part.
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
    """Whether a block certainly ends at this empty line, and another one begins after it."""
    if number + 1 >= len(lines) or not lines[number - 1]:
        return False
    following = lines[number + 1]
    return bool(following) and not _GOES_ON.match(following)


def _fence_after(line: str, fence: str) -> str:
    """The fence that is open after this line; "" = none."""
    found = _FENCE.match(line)
    if found is None:
        return fence
    if not fence:
        is_inline = found[1][0] == "`" and "`" in line[len(found[1]) :]
        return "" if is_inline else found[1]
    closes = line.rstrip(" \t") == found[1] and found[1].startswith(fence)
    return "" if closes else fence
