"""Split strings into words and symbols, and compare words that differ only by typos.

A word is a run of letters and digits, converted to lower case; everything else separates words. So
`parse_message` is two adjacent words, as is `messages.py`. `parseMessage` is one word with two
parts. The search library splits documents itself when it indexes them; these functions do the same
for queries and for the few lines that are shown.

What is no word may still be searched: emoji one by one, and ASCII punctuation such as `->` in
pieces of up to three characters. Of words that are written together with a symbol, such as `C++`
and `$HOME`, both together are a piece, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from string import punctuation
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


@lru_cache(maxsize=1)
def piece_analyzer() -> TextAnalyzer:
    """Return the search library's tokenizer for the pieces of symbols, which blanks separate."""
    from tantivy import TextAnalyzerBuilder, Tokenizer

    return TextAnalyzerBuilder(Tokenizer.whitespace()).build()


def words(text: str) -> list[str]:
    """Return the words of a string in order, composed (see `composed`)."""
    return analyzer().analyze(composed(text))


def holds_phrase(text: str, phrase: Sequence[str]) -> bool:
    """Return whether a string has these words in a row; the last one need only begin so.

    `phrase`: words as returned by `words`.
    """
    *head, last = phrase
    row = words(text)
    ends = (at for at, word in enumerate(row) if at >= len(head) and word.startswith(last))
    return any(row[at - len(head) : at] == head for at in ends)


def parts(text: str) -> str:
    """Return the parts of all compound names in a string, each only once.

    The parts of `parseMessage` are "parse message". Only ASCII letters and digits with a capital
    inside form a compound name.
    """
    classes = text.encode("latin-1", "replace").translate(_CLASSES)
    names: dict[str, None] = {}
    for seam in _SEAMS:
        at = classes.find(seam)
        while at >= 0:
            start = classes.rfind(b" ", 0, at) + 1
            if (end := classes.find(b" ", at)) < 0:
                end = len(classes)
            if end - start <= _LONGEST_NAME:
                names[text[start:end]] = None
            at = classes.find(seam, end)
    found: dict[str, None] = {}
    for name in names:
        found.update(_parts_of(name))
    return " ".join(found)


@lru_cache(maxsize=50_000)
def _parts_of(name: str) -> dict[str, None]:
    return dict.fromkeys(part.lower() for part in _PART.findall(name))


# --- symbols -------------------------------------------------------------------------------------


_PUNCTUATION = bytes([byte if chr(byte) in punctuation else ord(" ") for byte in range(256)])
"""Maps each byte that is no ASCII punctuation to a blank."""
_SIGN = re.compile(r"[^\w\s\x00-\x7f]")
"""Matches a symbol beyond ASCII, such as an emoji."""
_LONGEST_PIECE = 3
_SEPARATORS = "_.,;:/\\'\"()[]{}-"
"""Punctuation between words, which distinguishes no word from another."""
_JOINED = "+#$@!%&|~^*?"
"""Punctuation that may belong to the word beside it, as in `C++`, `$HOME`, and `#include`."""
_JOINED_MARKS = bytes([ord("+") if chr(byte) in _JOINED else ord(" ") for byte in range(256)])
_JOINED_RUN = re.compile(rf"[{re.escape(_JOINED)}]+")
_JOINED_WORD = re.compile(rf"[^\W_]{{1,{_LONGEST_NAME}}}")


def symbols(text: str) -> dict[str, None]:
    """Return a string's symbols, and the words joined to them, as lower-case pieces."""
    text = composed(text).lower()
    found: dict[str, None] = {}
    runs = set(text.encode(errors="surrogatepass").translate(_PUNCTUATION).split())
    for pieces in map(_pieces, sorted(runs)):
        found.update(pieces)
    if not text.isascii():
        found.update(dict.fromkeys(_SIGN.findall(text)))
    for match in _joined_runs(text):
        run, (start, end) = match[0], match.span()
        # Read backwards from the run: a pattern of word and run would try every start in a long
        # word, and as many lengths from each.
        behind = _JOINED_WORD.match(text[max(0, start - _LONGEST_NAME) : start][::-1])
        ahead = _JOINED_WORD.match(text, end)
        for length in range(1, _LONGEST_PIECE + 1):
            if behind is not None:
                found[f"{behind[0][::-1]}{run[:length]}"] = None
            if ahead is not None:
                found[f"{run[-length:]}{ahead[0]}"] = None
    return found


def _joined_runs(text: str) -> Iterator[re.Match[str]]:
    # Finding bytes is much faster than a pattern; a "?" may also stand for a letter beyond latin-1.
    marks = text.encode("latin-1", "replace").translate(_JOINED_MARKS)
    at = marks.find(b"+")
    while at >= 0:
        match = _JOINED_RUN.match(text, at)
        if match is not None:
            yield match
        at = marks.find(b"+", at + 1 if match is None else match.end())


@lru_cache(maxsize=10_000)
def _pieces(punctuation_run: bytes) -> dict[str, None]:
    run = punctuation_run.decode()
    starts, lengths = range(min(len(run), _LONGEST_NAME)), range(1, _LONGEST_PIECE + 1)
    return dict.fromkeys(run[start : start + length] for start in starts for length in lengths)


def needed_symbols(text: str) -> list[str]:
    """Return the pieces that a document must have to contain a query's term exactly.

    If the term has words, punctuation that only separates them is left out.
    """
    pieces = symbols(text)
    if words(text):
        pieces = {piece: None for piece in pieces if set(piece) - set(_SEPARATORS)}
    return list(pieces)


def ends_with_symbol(text: str) -> bool:
    """Return whether a term's last word is complete, because a symbol follows it."""
    last = composed(text)[-1:]
    return bool(last) and not last.isalnum() and last not in _SEPARATORS


# --- similar words -------------------------------------------------------------------------------


_FIXED, _SHORT = 4, 7
"""Maximum lengths of words in which no typo, or at most one, is allowed."""
_TOO_LONG = 100
"""Length from which a word is taken for data, in which no typo is allowed."""
_WORD = re.compile(r"[^\W_]+")


def typos(word: str) -> int:
    """Return how many typos a word may have and still count as similar.

    The number is 0 for short words, very long words, and words with digits.
    """
    if not _FIXED < len(word) < _TOO_LONG or any(map(str.isdigit, word)):
        return 0
    return 1 if len(word) <= _SHORT else 2


def similar_in(text: str, word: str, *, prefix: bool, most: int) -> list[str]:
    """Return the words in `text`, and parts of compound names, similar to `word`.

    They are spelled as in `text`. `prefix`: include words that only begin similarly. `most`:
    compare at most this many words of `text`.
    """
    if not (errors := typos(word)):
        return []
    found: dict[str, bool] = {}
    for match, _ in zip(_WORD.finditer(text), range(most), strict=False):
        name = match[0]
        if name not in found:
            whole = _is_similar(name.lower(), word, errors, prefix)
            found[name] = whole
            for part in () if whole else parts(name).split():
                at = name.lower().find(part)
                found[name[at : at + len(part)]] = _is_similar(part, word, errors, prefix)
    return [name for name, similar in found.items() if similar]


def _is_similar(found: str, word: str, most: int, prefix: bool) -> bool:
    """Return whether two words differ by at most `most` typos.

    A typo is a letter that is added, left out, replaced, or swapped with its neighbour. `prefix`:
    compare only the beginning of `found`.
    """
    if len(found) < len(word) - most or (not prefix and len(found) > len(word) + most):
        return False
    found = found[: len(word) + most]
    before: list[int] = []
    row = list(range(len(found) + 1))
    for at, letter in enumerate(word, 1):
        last, before, row = before, row, [at]
        for to, other in enumerate(found, 1):
            cost = min(before[to] + 1, row[-1] + 1, before[to - 1] + (letter != other))
            if at > 1 and to > 1 and word[at - 2] == other and letter == found[to - 2]:
                cost = min(cost, last[to - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return False
    return (min(row) if prefix else row[-1]) <= most
