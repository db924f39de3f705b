"""Find the literal text that every match of a pattern needs; searching for it is much faster.

Most calls are told apart by it, and the pattern is run on the others only.
"""

from __future__ import annotations

import re

_LETTERS = re.compile(r"(?:[^\\^$.*+?()\[\]{}|]|\\[^a-zA-Z0-9])*")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def is_literal(source: str) -> bool:
    """Whether a pattern is plain text, so that finding the text is a match."""
    return _LETTERS.fullmatch(source) is not None


def required_literal(source: str, *, prefix: bool) -> str:
    """Return the text with which every match of a pattern begins; "" = none.

    `prefix`: the pattern was made of a commandPrefix, whose one alternative is at its end.
    """
    if "|" in source and not prefix and not is_literal(source):
        return ""
    found = _LETTERS.match(source)
    letters = found[0] if found else ""
    if source[len(letters) : len(letters) + 1] in ("*", "?", "{"):
        letters = re.sub(r"\\?.\Z", "", letters, flags=re.DOTALL)
    return _ESCAPED.sub(r"\1", letters)
