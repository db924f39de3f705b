"""Translate a query for the search library (tantivy), and return matches, scored, ranked and
counted.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import IntEnum
from functools import partial
from heapq import nsmallest
from math import log2
from typing import NamedTuple

from msgspec.structs import replace
from tantivy import FieldType, Occur
from tantivy import Query as Engine

from gemtui.search.documents import DocumentKind
from gemtui.search.results import Hit, Page, Rank, Results, SessionHits
from gemtui.search.scope import SearchScope
from gemtui.search.text_index import (
    LATEST,
    DocumentPlace,
    FoundDocument,
    TextReader,
    TooMuch,
    epoch_seconds,
    schema,
)
from gemtui.search.words import ends_with_symbol, holds_phrase, needed_symbols, typos, words
from gemtui.sessions.catalog.query import Field, Narrowed, Query, Term, is_of_sessions
from gemtui.text import clean_line, or_list


class Likeness(IntEnum):
    """The ways to search for a term that occurs nowhere in the searched files."""

    SAME = 0
    SIMILAR = 1
    """Match words that differ only by typos; see `gemtui.search.words`."""
    INSIDE = 2
    """Match the term inside other words."""


_SHORTEST_INSIDE, _LONGEST_INSIDE = 3, 100
"""Length limits, in bytes, of words to search for inside other words."""
_LONGEST_PATTERN = 255
"""How many bytes of a word are compared with the beginnings of other words."""
_PART_WEIGHT, _BEGUN_WEIGHT, _SIMILAR_WEIGHT = 0.7, 0.5, 0.2
_EXACT_WEIGHT = 10.0
"""The weight of a term's symbols, so that what has `C++` comes before what only has `C`."""
_KINDS = {
    "prompt": DocumentKind.USER,
    "answer": DocumentKind.MODEL,
    "thought": DocumentKind.THOUGHT,
    "tool": DocumentKind.TOOL,
}

_Clause = tuple[Occur, Engine]


def engine_query(
    query: Query,
    *,
    files: Iterable[int] | None = None,
    likeness: Likeness = Likeness.SAME,
    missing: Collection[Term] = (),
    dropped: bool = False,
    in_a_row: bool = True,
) -> Engine:
    """Return the search library's query for the documents that match `query`.

    * `files`: document numbers of the files to search; None means all.
    * `likeness`: how to search for the terms in `missing`; all other terms are matched exactly.
    * `dropped`: search messages that are no longer part of the conversation instead of those that
      are.
    * `in_a_row`: whether the words of a phrase must be adjacent even if the last one is incomplete.
      If False, such a last word may occur anywhere in the document. Use False if the library
      rejects the query because too many words begin like this one (`TooMuch`).

    A document's score doesn't depend on other documents, so it is the same in every index.
    Conditions on sessions are left to the caller, who chooses `files` accordingly.
    """
    kept = Engine.term_query(schema(), "dropped", int(dropped))
    clauses = [_only(kept), *_times(query)]
    if files is not None:
        clauses.append(_only(Engine.term_set_query(schema(), "file", list(files))))
    clauses += [
        _clause(field.excluded, _field(field))
        for field in query.fields
        if not is_of_sessions(field)
    ]
    clauses += _terms(query, likeness, missing, in_a_row)
    return Engine.boolean_query(clauses)


def required_terms(query: Query) -> list[Term]:
    """Return the terms that must occur in a hit; terms without words and symbols are left out."""
    return [
        term
        for term in query.terms
        if not term.excluded and needed_symbols(term.text) + words(term.text)
    ]


def cut_phrases(query: Query) -> list[list[str]]:
    """Return the required phrases that the engine compares only in part: their beginnings.

    Their last word is incomplete and too long for a pattern. Matches must be checked by their text.
    """
    phrases = [words(term.text) for term in required_terms(query) if _is_begun(term)]
    return [phrase for phrase in phrases if phrase and len(phrase[-1].encode()) > _LONGEST_PATTERN]


def _only(query: Engine) -> _Clause:
    """Return a clause that documents must match, but that doesn't affect their score."""
    return Occur.Must, Engine.const_score_query(query, 0.0)


def _clause(excluded: bool, query: Engine) -> _Clause:
    return (Occur.MustNot, query) if excluded else _only(query)


# --- fields --------------------------------------------------------------------------------------


def _field(narrowed: Narrowed) -> Engine:
    match narrowed.field, narrowed.value:
        case Field.IS, "failed":
            return Engine.term_query(schema(), "failed", 1)
        case ((Field.IS | Field.IN), who):
            return Engine.term_query(schema(), "kind", int(_KINDS[who]))
        case Field.TOOL, name:
            return _in_a_row("tool", words(name), Likeness.SAME, prefix=True)
        case _, path:
            return _in_a_row("path", words(path), Likeness.SAME, prefix=True)


def _times(query: Query) -> Iterator[_Clause]:
    if query.before is None and query.after is None:
        return
    least = max(1, epoch_seconds(query.after))
    most = LATEST if query.before is None else epoch_seconds(query.before)
    if least >= most:
        yield Occur.Must, Engine.empty_query()
        return
    yield _only(Engine.range_query(schema(), "time", FieldType.Unsigned, least, most - 1))


# --- words ---------------------------------------------------------------------------------------


def _terms(
    query: Query, likeness: Likeness, missing: Collection[Term], in_a_row: bool
) -> Iterator[_Clause]:
    if not all(term.excluded for term in query.terms) and not required_terms(query):
        yield Occur.Must, Engine.empty_query()
    for term in query.terms:
        row, exact = words(term.text), _with_symbols(term)
        if row:
            how = likeness if term in missing else Likeness.SAME
            occur, clause = _of_term(term, row, how, in_a_row)
            if exact is not None and term.excluded:
                clause = Engine.boolean_query([(Occur.Must, clause), (Occur.Must, exact)])
            elif exact is not None:
                exact = Engine.const_score_query(exact, _EXACT_WEIGHT)
                clause = Engine.boolean_query([(Occur.Must, clause), (Occur.Should, exact)])
            yield occur, clause
        elif exact is not None:
            yield (
                Occur.MustNot if term.excluded else Occur.Must,
                Engine.const_score_query(exact, 1.0),
            )


def _with_symbols(term: Term) -> Engine | None:
    """Return a query for the documents with all symbols of a term; None if it has none."""
    pieces = needed_symbols(term.text)
    if not pieces:
        return None
    return Engine.boolean_query(
        [_only(Engine.term_query(schema(), "symbols", piece, "basic")) for piece in pieces]
    )


def _is_begun(term: Term) -> bool:
    """Return whether the last word of a term may be incomplete."""
    return term.prefix and not ends_with_symbol(term.text)


def _of_term(term: Term, row: list[str], likeness: Likeness, in_a_row: bool) -> _Clause:
    if term.excluded:
        return Occur.MustNot, _term(row, Likeness.SAME, prefix=False)
    if in_a_row or len(row) == 1 or not (_is_begun(term) or likeness is Likeness.INSIDE):
        return Occur.Must, _term(row, likeness, prefix=_is_begun(term))
    head = _term(row[:-1], Likeness.SAME, prefix=False)
    both = head.and_must_match(_begun("text", row[-1]))
    return Occur.Must, Engine.const_score_query(both, 1.0)


def _term(row: list[str], likeness: Likeness, *, prefix: bool) -> Engine:
    """Return a query for the phrase `row`, a list of words.

    If it is a single word, the query also matches parts of compound names.
    """
    if len(row) > 1:
        phrase = _in_a_row("text", row, likeness, prefix=prefix)
        return Engine.const_score_query(phrase, 1.0)
    ways = _ways(row[0], likeness, prefix)
    weighed = [Engine.const_score_query(query, weight) for query, weight in ways]
    return Engine.disjunction_max_query(weighed)


def _ways(word: str, likeness: Likeness, prefix: bool) -> Iterator[tuple[Engine, float]]:
    yield Engine.term_query(schema(), "text", word), 1.0
    yield Engine.term_query(schema(), "parts", word, "basic"), _PART_WEIGHT
    if prefix:
        for field in ("text", "parts"):
            yield _begun(field, word), _BEGUN_WEIGHT
    if likeness is Likeness.SIMILAR and (errors := typos(word)):
        for field in ("text", "parts"):
            fuzzy = Engine.fuzzy_term_query(schema(), field, word, errors, True, prefix)
            yield fuzzy, _SIMILAR_WEIGHT
    if likeness is Likeness.INSIDE and may_be_inside(word):
        yield Engine.regex_query(schema(), "text", f".*{word}.*"), _SIMILAR_WEIGHT


def may_be_inside(word: str) -> bool:
    """Return whether a word is neither too short nor too long to search inside others."""
    return _SHORTEST_INSIDE <= len(word.encode()) <= _LONGEST_INSIDE


def _begun(field: str, word: str) -> Engine:
    return Engine.regex_query(schema(), field, _beginning(word))


def _beginning(word: str) -> str:
    """Return a pattern for words that begin with `word`.

    Of a very long word, only the beginning counts, because the library rejects long patterns; see
    `cut_phrases`.
    """
    return f"{word.encode()[:_LONGEST_PATTERN].decode(errors='ignore')}.*"


def _in_a_row(field: str, row: list[str], likeness: Likeness, *, prefix: bool) -> Engine:
    if not row:
        return Engine.empty_query()
    inside = likeness is Likeness.INSIDE
    if not prefix and not inside:
        if len(row) == 1:
            return Engine.term_query(schema(), field, row[0])
        return Engine.phrase_query(schema(), field, list(row))
    first, *_, last = row if len(row) > 1 else (row[0], row[0])
    if len(row) == 1:
        return _begun(field, first)
    head = f".*{first}" if inside else first
    return Engine.regex_phrase_query(schema(), field, [head, *row[1:-1], _beginning(last)])


# --- matches -------------------------------------------------------------------------------------


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
    one. `text`: returns the text of the document at a place in the file with this path.
    """

    query: Query
    dropped: bool
    limit: int
    page: Page | None
    text: Callable[[str, DocumentPlace], str | None]

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
        self,
        likeness: Likeness = Likeness.SAME,
        missing: Collection[Term] = (),
        now: float | None = None,
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
        searched_files = source.files
        ask_engine = partial(
            engine_query,
            ask.query,
            files=files,
            likeness=self.likeness,
            missing=self.missing,
            dropped=ask.dropped,
        )
        phrases = cut_phrases(ask.query)
        most = source.words.count if phrases else ask.most
        wanted, rare = ask_engine(), self.likeness is not Likeness.SAME
        try:
            matches = source.words.search(wanted, most, rare=rare)
        except TooMuch:
            wanted = ask_engine(in_a_row=False)
            matches = source.words.search(wanted, most, rare=rare)
        found = [
            match
            for match in matches
            if match.file in searched_files and _holds_all(phrases, match, source, ask)
        ]
        cut = most <= len(matches) < source.words.count
        if cut and files is None and len(found) < ask.limit:
            return False
        counts = Counter([document.file for document in found])
        self._add_counts(searched_files, counts)
        if cut:
            self.since = max(self.since, min(match.time for match in matches))
            self._uncounted.append((source, wanted, counts))
        self.matches += [
            _Match(_score(document, self._now), document, source) for document in found
        ]
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


def _holds_all(
    phrases: Sequence[list[str]], found: FoundDocument, source: SearchedIndex, ask: SearchRequest
) -> bool:
    """Return whether the text of a document has these phrases, which the engine has not
    compared.
    """
    if not phrases:
        return True
    text = ask.text(source.files[found.file], source.words.place(found))
    return text is not None and all(holds_phrase(text, phrase) for phrase in phrases)


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
    document = match.found
    return -match.score, -document.time, match.source.files[document.file], document.order


def results_of(
    found: Matches,
    ask: SearchRequest,
    *,
    scope: SearchScope,
    complete: bool,
    unindexed: int,
    unread: int,
) -> Results:
    """Return the best matches grouped by session.

    Hits in subagents are listed under the sessions that called them. `complete`, `unindexed`,
    `unread`: as in `Results`.
    """
    best, following = _page(found, ask)
    scope.prepare([match.source.files[match.found.file] for match in best])
    hits: dict[str, list[Hit]] = {}
    for rank, match in enumerate(best):
        hit = _hit(match, scope, rank)
        hits.setdefault(hit.session.name, []).append(hit)
    counts = _by_session(found, scope)
    return Results(
        query=ask.query,
        groups=tuple(
            SessionHits(session=group[0].session, hits=tuple(group), count=counts[name])
            for name, group in hits.items()
        ),
        total_sessions=len(counts),
        total_hits=found.count,
        complete=complete,
        unindexed=unindexed,
        unread=unread,
        next=following,
        note=_note(found, ask.query),
    )


def _page(found: Matches, ask: SearchRequest) -> tuple[list[_Match], Page | None]:
    """Return a page's matches, best first, and the next page; None if it is the last."""
    page = ask.page
    if page is None:
        return nsmallest(ask.limit, found.matches, key=_rank), None
    since = found.since if page.after is None else page.since
    section = [match for match in found.matches if match.found.time >= since]
    if page.after is not None:
        section = [match for match in section if _rank(match) > page.after]
    best = nsmallest(ask.limit, section, key=_rank)
    if len(section) > len(best):
        return best, replace(page, since=since, after=_rank(best[-1]))
    return best, Page(now=page.now, before=since) if since else None


def recounted(results: Results, found: Matches, *, scope: SearchScope, complete: bool) -> Results:
    """Return `results` with exact totals, once `found` has counted all matches."""
    counts = _by_session(found, scope)
    return replace(
        results,
        groups=tuple(replace(group, count=counts[group.session.name]) for group in results.groups),
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
    seconds = match.found.time
    return Hit(
        session=scope.session(name),
        file=scope.file(name),
        message=place.message,
        block=place.block,
        kind=match.found.kind,
        tool=place.tool,
        time=datetime.fromtimestamp(seconds, UTC) if seconds else None,
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
