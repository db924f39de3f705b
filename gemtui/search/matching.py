"""Translate a query into a query of the search library (tantivy)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from enum import IntEnum

from tantivy import FieldType, Occur
from tantivy import Query as Engine

from gemtui.search.documents import DocumentKind
from gemtui.search.similar import typos
from gemtui.search.text_index import LATEST, epoch_seconds, schema
from gemtui.search.words import words
from gemtui.sessions.catalog.query import Field, Narrowed, Query, Term, is_of_sessions


class Likeness(IntEnum):
    """How to search for a term that occurs nowhere in the searched files."""

    SAME = 0
    SIMILAR = 1
    """Match words that differ only by typos; see `gemtui.search.similar`."""
    INSIDE = 2
    """Match the term inside other words."""


_SHORTEST_INSIDE, _LONGEST_INSIDE = 3, 100
"""Length limits, in bytes, of words to search for inside other words."""
_LONGEST_PATTERN = 255
"""How many bytes of a word are compared with the beginnings of other words."""
_PART_WEIGHT, _BEGUN_WEIGHT, _SIMILAR_WEIGHT = 0.7, 0.5, 0.2
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
    clauses += [_clause(each.excluded, _field(each)) for each in query.fields if not is_of_sessions(each)]
    clauses += _terms(query, likeness, missing, in_a_row)
    return Engine.boolean_query(clauses)


def required_terms(query: Query) -> list[Term]:
    """Return the terms that must occur in a hit.

    Terms without letters and digits are left out.
    """
    return [term for term in query.terms if not term.excluded and words(term.text)]


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


def _terms(query: Query, likeness: Likeness, missing: Collection[Term], in_a_row: bool) -> Iterator[_Clause]:
    if not all(term.excluded for term in query.terms) and not required_terms(query):
        yield Occur.Must, Engine.empty_query()
    for term in query.terms:
        if row := words(term.text):
            how = likeness if term in missing else Likeness.SAME
            yield _of_term(term, row, how, in_a_row)


def _of_term(term: Term, row: list[str], likeness: Likeness, in_a_row: bool) -> _Clause:
    if term.excluded:
        return Occur.MustNot, _term(row, Likeness.SAME, prefix=False)
    if in_a_row or len(row) == 1 or not (term.prefix or likeness is Likeness.INSIDE):
        return Occur.Must, _term(row, likeness, prefix=term.prefix)
    head = _term(row[:-1], Likeness.SAME, prefix=False)
    both = head.and_must_match(_begun("text", row[-1]))
    return Occur.Must, Engine.const_score_query(both, 1.0)


def _term(row: list[str], likeness: Likeness, *, prefix: bool) -> Engine:
    """Return a query for the phrase `row`, a list of words.

    If it is a single word, the query also matches parts of compound names.
    """
    if len(row) > 1:
        found = _in_a_row("text", row, likeness, prefix=prefix)
        return Engine.const_score_query(found, 1.0)
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

    Of a very long word, only the beginning counts, because the library rejects long patterns.
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
