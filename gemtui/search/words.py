"""What a word is: how texts are cut into words, and which parts names of code have.

A word is a run of letters and digits in lower case; whatever stands between them separates words.
So `parse_message` is two words in a row, as `messages.py` is. `parseMessage` is one, and has two
parts. The text engine does this itself while it indexes; the functions here do the same for queries
and for the few lines that are shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tantivy import TextAnalyzer

LONGEST = 255
"""Bytes of a word; a longer one is no word but data, and is not found."""

_CLASSES = bytearray(b" " * 256)
_CLASSES[ord("a") : ord("z") + 1] = b"a" * 26
_CLASSES[ord("0") : ord("9") + 1] = b"a" * 10
_CLASSES[ord("A") : ord("Z") + 1] = b"A" * 26
"""Each letter of a text as what counts for the parts of names."""
_SEAMS = (b"aA", b"AAa")
"""Where parts of a name meet."""
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
    classes = text.encode("latin-1", "replace").translate(_CLASSES)
    names = dict.fromkeys(name for seam in _SEAMS for name in _names_with(seam, text, classes))
    found: dict[str, None] = {}
    for name in names:
        found.update(_parts_of(name))
    return " ".join(found)


def _names_with(seam: bytes, text: str, classes: bytes) -> Iterator[str]:
    """The names in a text that have such a seam."""
    end = 0
    while (at := classes.find(seam, end)) >= 0:
        start = classes.rfind(b" ", 0, at) + 1
        end = classes.find(b" ", at)
        if end < 0:
            end = len(classes)
        if end - start <= LONGEST:
            yield text[start:end]


@lru_cache(maxsize=50_000)
def _parts_of(name: str) -> dict[str, None]:
    return dict.fromkeys(part.lower() for part in _PART.findall(name))
