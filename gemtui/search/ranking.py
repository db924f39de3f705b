"""Which matches of several sources are the best, and how many there are in all."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from heapq import nsmallest
from math import log2
from typing import NamedTuple

from msgspec.structs import replace
from tantivy import Query as Engine

from gemtui.search.documents import DocumentKind
from gemtui.search.matching import Likeness, engine_query
from gemtui.search.query import Query, Term
from gemtui.search.results import Hit, Results, SessionHits
from gemtui.search.scope import SearchScope
from gemtui.search.text_index import FoundDocument, TextReader, TooMuch
from gemtui.text import clean_line, listed

_RANKED = 2000
"""Hits that are ordered by all that counts; of more only the newest are."""
_BRIEF = 50
"""Words of a text that is brief."""
_MONTH = 30 * 24 * 3600
_WEIGHTS = {
    DocumentKind.USER: 1.5,
    DocumentKind.MODEL: 1.2,
    DocumentKind.THOUGHT: 0.9,
    DocumentKind.TOOL: 0.8,
    DocumentKind.NOTICE: 0.8,
}


class SearchedIndex(NamedTuple):
    """Words to search in, the name of the file of each number, and how many there are in all."""

    words: TextReader
    files: Mapping[int, str]
    total: int


class SearchRequest(NamedTuple):
    """What is searched; `dropped`: in messages that were dropped. `limit`: hits to show at most."""

    query: Query
    dropped: bool
    limit: int

    @property
    def most(self) -> int:
        """Matches that are fetched."""
        return max(2 * self.limit, _RANKED)


class _Match(NamedTuple):
    score: float
    found: FoundDocument
    source: SearchedIndex


_NEARLY = 0.9
"""Where so much of an index is asked, the rest is left out afterwards: that is quicker."""


class Matches:
    """Matches of several sources, and how many each file has, by the file's path.

    `missing`: the terms that nobody wrote, which are looked for with `likeness`. Where there are
    more than were fetched, these are counted apart, which takes as long again.
    """

    def __init__(self, likeness: Likeness = Likeness.SAME, missing: Collection[Term] = ()) -> None:
        self.likeness, self.missing = likeness, missing
        self._now = time.time()
        self.matches: list[_Match] = []
        self.counts: dict[str, int] = {}
        self.count = 0
        """The number of matches; with those that were not fetched, once they are counted."""
        self._uncounted: list[tuple[SearchedIndex, Engine, Mapping[int, int]]] = []

    def add(self, source: SearchedIndex, ask: SearchRequest) -> None:
        """Search in one more source."""
        whole = len(source.files) >= _NEARLY * source.total
        if not (whole and self._add(source, ask, None)):
            self._add(source, ask, source.files)

    def _add(self, source: SearchedIndex, ask: SearchRequest, files: Iterable[int] | None) -> bool:
        """The matches in these files; False if so many others match that some may be missing."""
        known = source.files
        ask_engine = partial(
            engine_query,
            ask.query,
            files=files,
            likeness=self.likeness,
            missing=self.missing,
            dropped=ask.dropped,
        )
        wanted = ask_engine()
        try:
            matches = source.words.search(wanted, ask.most)
        except TooMuch:
            wanted = ask_engine(in_a_row=False)
            matches = source.words.search(wanted, ask.most)
        found = [each for each in matches if each.file in known]
        cut = ask.most <= len(matches) < source.words.count
        if cut and files is None and len(found) < ask.limit:
            return False
        counts = Counter([each.file for each in found])
        self._add_counts(known, counts)
        if cut:
            self._uncounted.append((source, wanted, counts))
        self.matches += [_Match(_score(each, self._now), each, source) for each in found]
        if len(self.matches) > ask.most:
            self.matches.sort(key=lambda match: -match.found.time)
            oldest = self.matches[ask.most - 1].found.time
            self.matches = [match for match in self.matches if match.found.time >= oldest]
        return True

    def _add_counts(self, known: Mapping[int, str], counts: Mapping[int, int]) -> None:
        for number, count in counts.items():
            if (name := known.get(number)) is not None:
                self.counts[name] = self.counts.get(name, 0) + count
                self.count += count

    @property
    def counted(self) -> bool:
        """Whether `count` and `counts` are of all matches."""
        return not self._uncounted

    def count_all(self) -> None:
        """Count those that were not fetched, too."""
        uncounted, self._uncounted = self._uncounted, []
        for source, wanted, fetched in uncounted:
            counts = source.words.files(wanted)
            more = {number: count - fetched.get(number, 0) for number, count in counts.items()}
            self._add_counts(source.files, more)


def _score(found: FoundDocument, now: float) -> float:
    """How well it fits, who says it, in how many words, and how long ago.

    Half of it fades within months; of long texts more than half.
    """
    age = max(0.0, now - found.time) / _MONTH if found.time else 12.0
    brief = 1.0 / (1.0 + log2(1.0 + found.length / _BRIEF) / 4)
    return (0.05 + found.score) * _WEIGHTS[found.kind] * brief * (0.5 + 0.5 / (1.0 + age))


def _rank(match: _Match) -> tuple[float, int, str, int]:
    """The place of a match, the same in every index."""
    found = match.found
    return -match.score, -found.time, match.source.files[found.file], found.order


def results_of(
    found: Matches, *, scope: SearchScope, query: Query, limit: int, complete: bool, unindexed: int
) -> Results:
    """Return the best of what was found, by session; hits of sub-agents count for who called them.

    `complete`, `unindexed`: as `Results` has them.
    """
    best = nsmallest(limit, found.matches, key=_rank)
    hits: dict[str, list[Hit]] = {}
    for rank, match in enumerate(best):
        hit = _hit(match, scope, rank)
        hits.setdefault(hit.session.name, []).append(hit)
    counts = _by_session(found, scope)
    return Results(
        query=query,
        groups=tuple(
            SessionHits(session=group[0].session, hits=tuple(group), count=counts[name])
            for name, group in hits.items()
        ),
        total_sessions=len(counts),
        total_hits=found.count,
        complete=complete,
        unindexed=unindexed,
        note=_note(found, query),
    )


def recounted(results: Results, found: Matches, *, scope: SearchScope, complete: bool) -> Results:
    """Return results with how many there are of what was found, now that all are counted."""
    counts = _by_session(found, scope)
    return replace(
        results,
        groups=tuple(replace(each, count=counts[each.session.name]) for each in results.groups),
        total_sessions=len(counts),
        total_hits=found.count,
        complete=complete,
    )


def _by_session(found: Matches, scope: SearchScope) -> Mapping[str, int]:
    """How many matches each session has."""
    counts = Counter(found.counts)
    for name in scope.askers.keys() & counts.keys():
        counts[scope.askers[name]] += counts.pop(name)
    return counts


def _hit(match: _Match, scope: SearchScope, rank: int) -> Hit:
    place = match.source.words.place(match.found)
    name = match.source.files[match.found.file]
    said = match.found.time
    return Hit(
        session=scope.session(name),
        file=scope.file(name),
        message=place.message,
        block=place.block,
        kind=match.found.kind,
        tool=place.tool,
        time=datetime.fromtimestamp(said, UTC) if said else None,
        score=match.score,
        rank=rank,
        line=place.line,
    )


_NOTES = {
    Likeness.SIMILAR: "no {words}: similar words were searched",
    Likeness.INSIDE: "no {words}: found only inside other words",
}


def _note(found: Matches, query: Query) -> str | None:
    how = _NOTES.get(found.likeness) if found.count else None
    if how is not None:
        quoted = (f"“{clean_line(term.text)}”" for term in found.missing)
        how = how.format(words=listed(quoted))
    return "; ".join(filter(None, (query.note, how))) or None
