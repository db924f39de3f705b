"""The line of a text that matches a query, clean, with the words marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from gemtui.search.query import Query, Term
from gemtui.search.similar import similar_in
from gemtui.search.words import words
from gemtui.text import Clean, clean_line

WIDTH = 200
"""Characters of a snippet, unless told otherwise."""
_LOOKS = 200
"""Lines that are compared; the best of them is shown."""
_MOST_WORDS = 50_000
"""Words that are looked at for those that are similar."""
_CUT = "…"


class Snippet(NamedTuple):
    """One line: `spans` are pairs of start and end of the words that match, in characters."""

    text: Clean
    spans: tuple[tuple[int, int], ...] = ()


def snippet(text: str, query: Query, *, width: int = WIDTH) -> Snippet:
    """Return the line of a text that has most of a query's words, of `width` characters at most.

    The text's first line where a query has no words, or none is found.
    """
    patterns = _patterns(text, query)
    if (line := _best_line(text, patterns)) is not None:
        return _marked(line, patterns, width)
    first = next((line for line in text.splitlines() if line.strip()), "")
    return Snippet(Clean(clean_line(first[: 4 * width])[:width]))


def pattern_for(text: str, query: Query) -> re.Pattern[str] | None:
    """Return a pattern for the words by which a text matches a query; None if it has none."""
    patterns = [each.pattern for each in _patterns(text, query)]
    return re.compile("|".join(patterns), re.IGNORECASE) if patterns else None


# --- which words are looked for ------------------------------------------------------------------


def _patterns(text: str, query: Query) -> list[re.Pattern[str]]:
    """What a text has of each term: as whole words, else inside of words, else similar ones."""
    found = []
    for term, whole, inside in _ways(query):
        pattern = next((each for each in (whole, inside) if each.search(text)), None)
        pattern = pattern or _similar(text, term)
        if pattern is not None:
            found.append(pattern)
    return found


@lru_cache(maxsize=16)
def _ways(query: Query) -> Sequence[tuple[Term, re.Pattern[str], re.Pattern[str]]]:
    """The terms of a query with patterns for them as whole words, and anywhere in words."""
    rows = [(term, row) for term in query.terms if not term.excluded and (row := words(term.text))]
    return [
        (term, _pattern(row, r"(?<![^\W_])", _end(term)), _pattern(row, "", ""))
        for term, row in rows
    ]


def _end(term: Term) -> str:
    return "" if term.prefix else r"(?![^\W_])"


def _pattern(row: list[str], start: str, end: str) -> re.Pattern[str]:
    return re.compile(start + r"[\W_]+".join(map(re.escape, row)) + end, re.IGNORECASE)


def _similar(text: str, term: Term) -> re.Pattern[str] | None:
    """A pattern for the words of a text that are similar to a term of one word."""
    row = words(term.text)
    if term.quoted or len(row) != 1:
        return None
    found = similar_in(text, row[0], prefix=term.prefix, most=_MOST_WORDS)
    return re.compile("|".join(map(re.escape, found)), re.IGNORECASE) if found else None


# --- the line ------------------------------------------------------------------------------------


def _best_line(text: str, patterns: Sequence[re.Pattern[str]]) -> str | None:
    """The first line with most of the patterns; None if there is none with any."""
    best, most = None, 0
    for start, end in islice(_lines_with(text, patterns), _LOOKS):
        line = text[start:end]
        count = sum(pattern.search(line) is not None for pattern in patterns)
        if count > most:
            best, most = line, count
        if most == len(patterns):
            break
    return best


def _lines_with(text: str, patterns: Iterable[re.Pattern[str]]) -> Iterator[tuple[int, int]]:
    """Where lines begin and end in which something is found; a phrase may go on in the next."""
    for pattern in patterns:
        at = 0
        while (match := pattern.search(text, at)) is not None:
            start = text.rfind("\n", 0, match.start()) + 1
            end = text.find("\n", match.end())
            at = end = len(text) if end < 0 else end
            yield start, end


def _marked(line: str, patterns: Sequence[re.Pattern[str]], width: int) -> Snippet:
    """The line around the first match, cut to `width`."""
    first = min((match.start() for p in patterns if (match := p.search(line))), default=0)
    near = max(0, first - 4 * width)
    shown = clean_line(line[near : first + 4 * width])
    first = min((match.start() for p in patterns if (match := p.search(shown))), default=0)
    start = 0 if len(shown) <= width or first < width // 2 else first - width // 3
    piece = shown[start : start + width]
    if start or near:
        piece = _CUT + piece[1:]
    if start + width < len(shown):
        piece = piece[:-1] + _CUT
    return Snippet(Clean(piece), _spans(piece, patterns))


def _spans(line: str, patterns: Iterable[re.Pattern[str]]) -> tuple[tuple[int, int], ...]:
    """Where the patterns match, in order, those that overlap as one."""
    found = sorted(match.span() for pattern in patterns for match in pattern.finditer(line))
    joined: list[tuple[int, int]] = []
    for start, end in found:
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        elif end > start:
            joined.append((start, end))
    return tuple(joined)
