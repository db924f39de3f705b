"""Tokenization: how strings are split into words, and compound names into parts.

A word is a run of letters and digits, converted to lower case; everything else separates words. So
`parse_message` is two adjacent words, as is `messages.py`. `parseMessage` is one word with two
parts. The search library splits documents itself when it indexes them; these functions do the same
for queries and for the few lines that are shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from gemtui.text import composed

if TYPE_CHECKING:
    from tantivy import TextAnalyzer

LONGEST = 4096
"""Maximum length of a word in bytes; a longer run is data and is not indexed."""
_LONGEST_NAME = 255
"""Maximum length in characters of a name that is split into parts."""

_CLASSES = bytearray(b" " * 256)
_CLASSES[ord("a") : ord("z") + 1] = b"a" * 26
_CLASSES[ord("0") : ord("9") + 1] = b"a" * 10
_CLASSES[ord("A") : ord("Z") + 1] = b"A" * 26
"""Maps each byte to its class: a capital, a small letter or digit, or neither."""
_SEAMS = (b"aA", b"AAa")
"""Sequences of classes at which two parts of a name meet.

They are in `parseMessage` (small letter, capital) and `HTMLPage` (two capitals, small letter).
"""
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")


@lru_cache(maxsize=1)
def analyzer() -> TextAnalyzer:
    """Return the search library's tokenizer, with which documents are indexed.

    The first call imports the library.
    """
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    simple = TextAnalyzerBuilder(Tokenizer.simple())
    return simple.filter(Filter.remove_long(LONGEST + 1)).filter(Filter.lowercase()).build()


def words(text: str) -> list[str]:
    """Return the words of a string in order, composed (see `composed`)."""
    return analyzer().analyze(composed(text))


def parts(text: str) -> str:
    """Return the parts of all compound names in a string, each only once.

    The parts of `parseMessage` are "parse message". Only ASCII letters and digits with a capital
    inside form a compound name.
    """
    classes = text.encode("latin-1", "replace").translate(_CLASSES)
    names = dict.fromkeys(name for seam in _SEAMS for name in _names_with(seam, text, classes))
    found: dict[str, None] = {}
    for name in names:
        found.update(_parts_of(name))
    return " ".join(found)


def _names_with(seam: bytes, text: str, classes: bytes) -> Iterator[str]:
    """Yield the names in `text` that contain a given sequence of character classes.

    `classes`: the class of each character of `text`, such as lower case or upper case. `seam`: the
    sequence of classes to find, such as a lower-case letter before a capital.
    """
    end = 0
    while (at := classes.find(seam, end)) >= 0:
        start = classes.rfind(b" ", 0, at) + 1
        end = classes.find(b" ", at)
        if end < 0:
            end = len(classes)
        if end - start <= _LONGEST_NAME:
            yield text[start:end]


@lru_cache(maxsize=50_000)
def _parts_of(name: str) -> dict[str, None]:
    return dict.fromkeys(part.lower() for part in _PART.findall(name))
