"""Score, rank, and count the matches in several text indexes."""

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
from gemtui.search.results import Hit, Page, Rank, Results, SessionHits
from gemtui.search.scope import SearchScope
from gemtui.search.text_index import FoundDocument, TextReader, TooMuch
from gemtui.sessions.catalog.query import Query, Term
from gemtui.text import clean_line, or_list

_RANKED = 2000
"""Maximum number of matches that are ranked by all criteria.

If there are more, only the newest are ranked.
"""
_BRIEF = 50
"""Number of words up to which a document counts as brief."""
_MONTH = 30 * 24 * 3600
_WEIGHTS = {
    DocumentKind.USER: 1.5,
    DocumentKind.MODEL: 1.2,
    DocumentKind.THOUGHT: 0.9,
    DocumentKind.TOOL: 0.8,
    DocumentKind.NOTICE: 0.8,
}


class SearchedIndex(NamedTuple):
    """A text index to search.

    `words`: a reader for it. `files`: the paths of the files to search, by document number.
    `total`: how many files the whole text index has.
    """

    words: TextReader
    files: Mapping[int, str]
    total: int


class SearchRequest(NamedTuple):
    """A search request.

    `dropped`: search messages that are no longer part of the conversation instead of those that
    are. `limit`: the maximum number of hits to show. `page`: the page to show; None means the first
    one.
    """

    query: Query
    dropped: bool
    limit: int
    page: Page | None = None

    @property
    def most(self) -> int:
        """The maximum number of matches to fetch, which is more than the number to show."""
        most = max(2 * self.limit, _RANKED)
        return most if self.page is None or self.page.after is None else 2 * most


class _Match(NamedTuple):
    score: float
    found: FoundDocument
    source: SearchedIndex


_NEARLY = 0.9
"""If at least this share of an index's files is to be searched, the whole index is searched.

Removing the matches in other files afterwards is then faster.
"""


class Matches:
    """The matches in several text indexes, and the number of matches in each file.

    `missing`: the terms that occur nowhere, which are searched with `likeness`. `now`: the time
    from which ages are measured; None means the current time. Only some matches are fetched; the
    rest are counted separately, which takes as long again.
    """

    def __init__(
        self, likeness: Likeness = Likeness.SAME, missing: Collection[Term] = (), now: float | None = None
    ) -> None:
        self.likeness, self.missing = likeness, missing
        self._now = time.time() if now is None else now
        self.since = 0
        """A time in seconds; some of the matches before it were not fetched."""
        self.matches: list[_Match] = []
        self.counts: dict[str, int] = {}
        self.count = 0
        """The number of matches; `count_all` adds those that were not fetched."""
        self._uncounted: list[tuple[SearchedIndex, Engine, Mapping[int, int]]] = []

    def add(self, source: SearchedIndex, ask: SearchRequest) -> None:
        """Search one more text index, and add its matches."""
        whole = len(source.files) >= _NEARLY * source.total
        if not (whole and self._add(source, ask, None)):
            self._add(source, ask, source.files)

    def _add(self, source: SearchedIndex, ask: SearchRequest, files: Iterable[int] | None) -> bool:
        """Add the matches in these files; return False if some may be missing.

        `files`: the document numbers of the files to search. None searches the whole index and
        discards matches that are not in `source.files`; because only a limited number of matches is
        fetched, discarded ones may then have taken the place of others. In that case, nothing is
        added.
        """
        known = source.files
        ask_engine = partial(
            engine_query, ask.query, files=files, likeness=self.likeness, missing=self.missing, dropped=ask.dropped
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
            self.since = max(self.since, min(each.time for each in matches))
            self._uncounted.append((source, wanted, counts))
        self.matches += [_Match(_score(each, self._now), each, source) for each in found]
        if len(self.matches) > ask.most:
            self.matches.sort(key=lambda match: -match.found.time)
            oldest = self.matches[ask.most - 1].found.time
            self.since = max(self.since, oldest)
            self.matches = [match for match in self.matches if match.found.time >= oldest]
        return True

    def _add_counts(self, known: Mapping[int, str], counts: Mapping[int, int]) -> None:
        for number, count in counts.items():
            if (name := known.get(number)) is not None:
                self.counts[name] = self.counts.get(name, 0) + count
                self.count += count

    @property
    def counted(self) -> bool:
        """Whether `count` and `counts` include all matches."""
        return not self._uncounted

    def count_all(self) -> None:
        """Add the matches that were not fetched to the counts."""
        uncounted, self._uncounted = self._uncounted, []
        for source, wanted, fetched in uncounted:
            counts = source.words.files(wanted)
            more = {number: count - fetched.get(number, 0) for number, count in counts.items()}
            self._add_counts(source.files, more)


def _score(found: FoundDocument, now: float) -> float:
    """Return a match's score, based on its relevance, author, length, and age.

    Half of the score decreases with age, over months. Very long documents lose more than half of
    their score.
    """
    age = max(0.0, now - found.time) / _MONTH if found.time else 12.0
    brief = 1.0 / (1.0 + log2(1.0 + found.length / _BRIEF) / 4)
    return (0.05 + found.score) * _WEIGHTS[found.kind] * brief * (0.5 + 0.5 / (1.0 + age))


def _rank(match: _Match) -> Rank:
    """Return a match's sort key, which is the same in every index."""
    found = match.found
    return -match.score, -found.time, match.source.files[found.file], found.order


def results_of(found: Matches, ask: SearchRequest, *, scope: SearchScope, complete: bool, unindexed: int) -> Results:
    """Return the best matches grouped by session.

    Hits in subagents are listed under the sessions that called them. `complete`, `unindexed`: as in
    `Results`.
    """
    best, following = _page(found, ask)
    hits: dict[str, list[Hit]] = {}
    for rank, match in enumerate(best):
        hit = _hit(match, scope, rank)
        hits.setdefault(hit.session.name, []).append(hit)
    counts = _by_session(found, scope)
    return Results(
        query=ask.query,
        groups=tuple(
            SessionHits(session=group[0].session, hits=tuple(group), count=counts[name]) for name, group in hits.items()
        ),
        total_sessions=len(counts),
        total_hits=found.count,
        complete=complete,
        unindexed=unindexed,
        next=following,
        note=_note(found, ask.query),
    )


def _page(found: Matches, ask: SearchRequest) -> tuple[list[_Match], Page | None]:
    """Return a page's matches, best first, and the next page; None if it is the last."""
    page = ask.page
    if page is None:
        return nsmallest(ask.limit, found.matches, key=_rank), None
    since = found.since if page.after is None else page.since
    section = [each for each in found.matches if each.found.time >= since]
    if page.after is not None:
        section = [each for each in section if _rank(each) > page.after]
    best = nsmallest(ask.limit, section, key=_rank)
    if len(section) > len(best):
        return best, replace(page, since=since, after=_rank(best[-1]))
    return best, Page(now=page.now, before=since) if since else None


def recounted(results: Results, found: Matches, *, scope: SearchScope, complete: bool) -> Results:
    """Return `results` with exact totals, once `found` has counted all matches."""
    counts = _by_session(found, scope)
    return replace(
        results,
        groups=tuple(replace(each, count=counts[each.session.name]) for each in results.groups),
        total_sessions=len(counts),
        total_hits=found.count,
        complete=complete,
    )


def _by_session(found: Matches, scope: SearchScope) -> Mapping[str, int]:
    """Return the number of matches in each session, by the path of its file."""
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
    Likeness.SIMILAR: "no matches for {words}: showing similar words instead",
    Likeness.INSIDE: "no whole words match {words}: showing matches inside other words",
}


def _note(found: Matches, query: Query) -> str | None:
    how = _NOTES.get(found.likeness) if found.count else None
    if how is not None:
        quoted = (f"“{clean_line(term.text)}”" for term in found.missing)
        how = how.format(words=or_list(quoted))
    return "; ".join(filter(None, (query.note, how))) or None
