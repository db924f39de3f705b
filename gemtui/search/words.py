"""What a word is: how texts are cut into words, and which parts names of code have.

A word is a run of letters and digits in lower case; whatever stands between them separates words.
So `parse_message` is two words in a row, as `messages.py` is. `parseMessage` is one, and has two
parts. The text engine does this itself while it indexes; the functions here do the same for queries
and for the few lines that are shown.
"""

from __future__ import annotations

import re
from functools import lru_cache
from string import ascii_letters, digits
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tantivy import TextAnalyzer

LONGEST = 255
"""Bytes of a word; a longer one is no word but data, and is not found."""

_SEAM = re.compile(r"[A-Z](?:(?<=[a-z0-9].)|(?<=[A-Z].)[a-z])[A-Za-z0-9]*")
"""From the first place in a name where parts of it meet to the name's end."""
_LETTERS = frozenset(ascii_letters + digits)
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
    found: dict[str, None] = {}
    for match in _SEAM.finditer(text):
        start, end = match.span()
        while start and text[start - 1] in _LETTERS:
            start -= 1
        if end - start <= LONGEST:
            found.update(_parts_of(text[start:end]))
    return " ".join(found)


@lru_cache(maxsize=50_000)
def _parts_of(name: str) -> dict[str, None]:
    return dict.fromkeys(part.lower() for part in _PART.findall(name))
