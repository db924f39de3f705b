"""What a word is: how texts are cut into words, and which parts names of code have.

A word is a run of letters and digits in lower case; whatever stands between them separates words.
So `parse_message` is two words in a row, as `messages.py` is. `parseMessage` is one, and has two
parts. The text engine does this itself while it indexes; the functions here do the same for queries
and for the few lines that are shown.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tantivy import TextAnalyzer

LONGEST = 255
"""Bytes of a word; a longer one is no word but data, and is not found."""

_SEAM = re.compile(r"[a-z0-9][A-Z]|[A-Z][A-Z][a-z]")
"""Where the parts of a name meet."""
_NAME = re.compile(r"[A-Za-z0-9]+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")


@lru_cache(maxsize=1)
def analyzer() -> TextAnalyzer:
    """Return what cuts texts into words; it is the text engine's own, which is loaded for it."""
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    simple = TextAnalyzerBuilder(Tokenizer.simple())
    return simple.filter(Filter.remove_long(LONGEST + 1)).filter(Filter.lowercase()).build()


def words(text: str) -> list[str]:
    """Return the words of a text in order."""
    return analyzer().analyze(text)


def parts(text: str) -> str:
    """Return the parts of all names in a text, each part once: "parse message" of `parseMessage`.

    Only names with a capital inside have parts, those in plain letters and digits.
    """
    if _SEAM.search(text) is None:
        return ""
    found: dict[str, None] = {}
    for name in set(_NAME.findall(text)):
        found.update(_parts_of(name))
    return " ".join(found)


@lru_cache(maxsize=50_000)
def _parts_of(name: str) -> dict[str, None]:
    if len(name) > LONGEST or _SEAM.search(name) is None:
        return {}
    return dict.fromkeys(part.lower() for part in _PART.findall(name))
