"""Find the line of a string that best matches a query, and mark the matches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from gemtui.search.similar import similar_in
from gemtui.search.words import words
from gemtui.sessions.catalog.query import Query, Term
from gemtui.text import Clean, clean_line, either_form

WIDTH = 200
"""Default maximum length of a snippet in characters."""
_LOOKS = 200
"""Maximum number of lines that are compared to find the best one."""
_MOST_WORDS = 50_000
"""Maximum number of words that are searched for similar ones."""
_CUT = "…"


class Snippet(NamedTuple):
    """One line of a document, sanitized.

    `spans`: the start and end index of each matching word.
    """

    text: Clean
    spans: tuple[tuple[int, int], ...] = ()


def snippet(text: str, query: Query, *, width: int = WIDTH) -> Snippet:
    """Return the line of `text` with the most query words, cut to `width` characters.

    If the query has no words, or none of them is found, the first non-empty line is returned.
    """
    patterns = _patterns(text, query)
    if (line := _best_line(text, patterns)) is not None:
        return _marked(line, patterns, width)
    first = next((line for line in text.splitlines() if line.strip()), "")
    return Snippet(Clean(clean_line(first[: 4 * width])[:width]))


def pattern_for(text: str, query: Query) -> re.Pattern[str] | None:
    """Return a pattern for the words by which `text` matches a query.

    Returns None if no word matches.
    """
    patterns = [each.pattern for each in _patterns(text, query)]
    return re.compile("|".join(patterns), re.IGNORECASE) if patterns else None


# --- patterns ------------------------------------------------------------------------------------


def _patterns(text: str, query: Query) -> list[re.Pattern[str]]:
    """Return a pattern for each term of a query that `text` contains.

    A pattern matches whole words, or else parts of words, or else similar words.
    """
    found = []
    for term, whole, inside in _ways(query):
        pattern = next((each for each in (whole, inside) if each.search(text)), None)
        pattern = pattern or _similar(text, term)
        if pattern is not None:
            found.append(pattern)
    return found


@lru_cache(maxsize=16)
def _ways(query: Query) -> Sequence[tuple[Term, re.Pattern[str], re.Pattern[str]]]:
    """Return each required term with two patterns: for whole words, and inside words."""
    rows = [(term, row) for term in query.terms if not term.excluded and (row := words(term.text))]
    return [(term, _pattern(row, r"(?<![^\W_])", _end(term)), _pattern(row, "", "")) for term, row in rows]


def _end(term: Term) -> str:
    return "" if term.prefix else r"(?![^\W_])"


def _pattern(row: list[str], start: str, end: str) -> re.Pattern[str]:
    return re.compile(start + r"[\W_]+".join(map(either_form, row)) + end, re.IGNORECASE)


def _similar(text: str, term: Term) -> re.Pattern[str] | None:
    """Return a pattern for the words in `text` that are similar to a one-word term."""
    row = words(term.text)
    if term.quoted or len(row) != 1:
        return None
    found = similar_in(text, row[0], prefix=term.prefix, most=_MOST_WORDS)
    return re.compile("|".join(map(re.escape, found)), re.IGNORECASE) if found else None


# --- lines ---------------------------------------------------------------------------------------


def _best_line(text: str, patterns: Sequence[re.Pattern[str]]) -> str | None:
    """Return the line that matches the most patterns; None if no line matches any.

    If several lines match as many, the first of them is returned.
    """
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
    """Yield the start and end index of each line with a match.

    A span may cover several lines, because a phrase may continue on the next line.
    """
    for pattern in patterns:
        at = 0
        while (match := pattern.search(text, at)) is not None:
            start = text.rfind("\n", 0, match.start()) + 1
            end = text.find("\n", match.end())
            at = end = len(text) if end < 0 else end
            yield start, end


def _marked(line: str, patterns: Sequence[re.Pattern[str]], width: int) -> Snippet:
    """Return the part of a line around its first match, at most `width` characters."""
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
    """Return the matching spans in order, joining those that overlap."""
    found = sorted(match.span() for pattern in patterns for match in pattern.finditer(line))
    joined: list[tuple[int, int]] = []
    for start, end in found:
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        elif end > start:
            joined.append((start, end))
    return tuple(joined)
