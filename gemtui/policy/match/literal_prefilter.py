"""Letters that a text must hold for a pattern to be found in it: they are looked for much faster.

Most calls are told apart by them, and a pattern is run on the others only.
"""

from __future__ import annotations

import re

_LETTERS = re.compile(r"(?:[^\\^$.*+?()\[\]{}|]|\\[^a-zA-Z0-9])*")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def is_literal(source: str) -> bool:
    """Whether a pattern is nothing but letters: it is found where they are."""
    return _LETTERS.fullmatch(source) is not None


def required_literal(source: str, *, prefix: bool) -> str:
    """The letters with which a pattern begins, as far as every match needs them; "" = none.

    `prefix`: the pattern was made of a commandPrefix, whose one alternative is at its end.
    """
    if "|" in source and not prefix and not is_literal(source):
        return ""
    found = _LETTERS.match(source)
    letters = found[0] if found else ""
    if source[len(letters) : len(letters) + 1] in ("*", "?", "{"):
        letters = re.sub(r"\\?.\Z", "", letters, flags=re.DOTALL)
    return _ESCAPED.sub(r"\1", letters)
