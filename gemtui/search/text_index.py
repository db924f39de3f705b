"""The inverted index of documents, on disk or in memory.

Only this module and `matching.py` use `tantivy`. The text of documents is not stored; the index
contains its location instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import orjson
import tantivy

from gemtui.search.documents import DocumentKind, SearchDocument
from gemtui.search.integrity import IndexDamaged, Integrity
from gemtui.search.words import analyzer
from gemtui.text import composed

WORDS = "words"
"""The name under which `analyzer()` is registered in the index."""
CHECKED = "checked"
"""The name of the file that lists the files whose checksums have been verified."""
_HEAP = 96_000_000
_SMALL_HEAP = 16_000_000
_KINDS = tuple(DocumentKind)
_COLUMNS = ("file", "kind", "time", "order", "length")
_LONG = 100_000
"""Maximum stored length of a document in words; longer ones count as this long."""
LATEST = 2**53
"""A time in seconds that is later than any real one."""
_MOST_FILES = 60_000
"""Maximum number of files whose matches the search library counts separately."""


class TooMuch(Exception):
    """Raised if the search library rejects a query as too expensive.

    The index itself is fine.
    """


@contextmanager
def _engine() -> Iterator[None]:
    """Convert the search library's errors and panics to IndexDamaged or TooMuch."""
    try:
        yield
    except IndexDamaged:
        raise
    except BaseException as error:
        if isinstance(error, ValueError) and str(error).startswith("An invalid argument was"):
            raise TooMuch from error
        if isinstance(error, ValueError | OSError) or type(error).__name__ == "PanicException":
            raise IndexDamaged(str(error)) from error
        raise


class FoundDocument(NamedTuple):
    """A matching document.

    `file`: the document number, which identifies its file. `time`: seconds since 1970; 0 if
    unknown. `order`: as in `SearchDocument`. `length`: how many words it has, up to a maximum.
    `at`: the document's address in the index.
    """

    score: float
    file: int
    kind: DocumentKind
    time: int
    order: int
    length: int
    at: tantivy.DocAddress


class DocumentPlace(NamedTuple):
    """A document's location, as in `SearchDocument`, and its tool."""

    message: str
    block: int
    tool: str
    line: tuple[int, int] | None


def minor_version() -> str:
    """Return the search library's major and minor version, such as `0.27`.

    The format of the index depends on it.
    """
    found = re.search(r"\d+\.\d+", tantivy.__version__)  # type: ignore[attr-defined]
    return "" if found is None else found[0]


@lru_cache(maxsize=1)
def schema() -> tantivy.Schema:
    """Return the fields of a document in the index."""
    made = tantivy.SchemaBuilder()
    made.add_text_field("text", tokenizer_name=WORDS)
    made.add_text_field("parts", tokenizer_name=WORDS, index_option="basic")
    made.add_text_field("path", tokenizer_name=WORDS)
    made.add_text_field("tool", tokenizer_name=WORDS)
    made.add_unsigned_field("file", indexed=True, fast=True)
    made.add_unsigned_field("kind", indexed=True, fast=True)
    made.add_unsigned_field("time", indexed=True, fast=True)
    made.add_unsigned_field("order", fast=True)
    made.add_unsigned_field("length", fast=True)
    made.add_unsigned_field("failed", indexed=True)
    made.add_unsigned_field("dropped", indexed=True)
    made.add_bytes_field("place", stored=True)
    return made.build()


class TextIndex:
    """Documents indexed by their words.

    `folder`: the index's folder; None keeps the index in memory. `new`: create an empty index in
    the folder. Otherwise, IndexDamaged is raised if the folder doesn't contain a valid index.
    """

    def __init__(self, folder: Path | None = None, *, new: bool = False) -> None:
        self._integrity = None if folder is None else Integrity(folder, folder.parent / CHECKED)
        if self._integrity is not None and not new:
            self._integrity.check()
        with _engine():
            self._index = tantivy.Index(schema(), path=None if folder is None else str(folder))
        self._index.register_tokenizer(WORDS, analyzer())
        self._index.config_reader("manual")
        self._writer: tantivy.IndexWriter | None = None
        self._heap = _SMALL_HEAP if folder is None else _HEAP

    # --- writing -----------------------------------------------------------------------------

    def add(self, file: int, documents: Iterable[SearchDocument]) -> None:
        """Index all documents of a file; they share `file`, the file's document number."""
        writer = self._written()
        for each in documents:
            writer.add_document(_stored(file, each))

    def remove(self, files: Iterable[int]) -> None:
        """Remove all documents with these document numbers, which identify their files."""
        if numbers := list(files):  # deleting by term does not find unsigned numbers
            asked = tantivy.Query.term_set_query(schema(), "file", numbers)
            self._written().delete_documents_by_query(asked)

    def commit(self) -> None:
        """Commit additions and removals; readers created from now on see them."""
        self._written().commit()

    def close(self) -> None:
        """Stop writing, discarding whatever hasn't been committed."""
        if self._writer is not None:
            with suppress(ValueError):
                self._writer.rollback()
        self._writer = None

    def _written(self) -> tantivy.IndexWriter:
        if self._writer is None:
            self._writer = self._index.writer(self._heap, 1)
        return self._writer

    # --- reading -----------------------------------------------------------------------------

    def reader(self) -> TextReader:
        """Return a reader for everything committed so far. Raises IndexDamaged.

        Other programs' commits are included.
        """
        if self._integrity is not None:
            self._integrity.check()
        with _engine():
            self._index.reload()
            return TextReader(self._index.searcher())


class TextReader:
    """An index frozen at one moment. All methods may raise IndexDamaged."""

    def __init__(self, searcher: tantivy.Searcher) -> None:
        self._searcher = searcher

    @property
    def count(self) -> int:
        """The number of documents in the index."""
        return self._searcher.num_docs

    def search(self, query: tantivy.Query, most: int) -> list[FoundDocument]:
        """Return the matching documents.

        If there are more than `most`, approximately the newest `most` are returned. Raises TooMuch.
        """
        with _engine():
            most = max(1, min(most, self._searcher.num_docs))
            if (wanted := self._newest(query, most)) is None:
                return []
            hits = self._searcher.search(wanted, 2 * most, count=False).hits
            at = [address for _, address in hits]
            columns = [self._column(name, at) for name in _COLUMNS]
            return [
                FoundDocument(score, file, _KINDS[kind], time, order, length, address)
                for (score, address), file, kind, time, order, length in zip(hits, *columns, strict=True)
            ]

    def _newest(self, query: tantivy.Query, most: int) -> tantivy.Query | None:
        """Restrict a query to about its `most` newest matches; None if it has none.

        A first search, sorted by time, finds out how old these matches are. Its results can't be
        used, because sorting by time loses the scores.
        """
        newest = self._searcher.search(query, most, count=False, order_by_field="time").hits
        if len(newest) < most or most == self._searcher.num_docs:
            return query if newest else None
        since = tantivy.Query.range_query(schema(), "time", tantivy.FieldType.Unsigned, int(newest[-1][0] or 0), LATEST)
        must, filtered = tantivy.Occur.Must, tantivy.Query.const_score_query(since, 0.0)
        return tantivy.Query.boolean_query([(must, query), (must, filtered)])

    def _column(self, name: str, at: list[tantivy.DocAddress]) -> list[int]:
        return [int(value or 0) for value in self._searcher.fast_field_values(name, at)]

    def files(self, query: tantivy.Query) -> dict[int, int]:
        """Return how many matches each file has, by document number.

        Files without matches are left out.
        """
        most = max(1, min(_MOST_FILES, self._searcher.num_docs))
        terms = {"field": "file", "size": most, "segment_size": most}
        with _engine():
            answer = self._searcher.aggregate(query, {"files": {"terms": terms}})
        return {int(each["key"]): each["doc_count"] for each in answer["files"]["buckets"]}

    def numbers(self) -> list[int]:
        """Return all document numbers in the index, which identify the indexed files."""
        return list(self.files(tantivy.Query.all_query()))

    def place(self, found: FoundDocument) -> DocumentPlace:
        """Return the location of a document: its message, its block, and its line."""
        with _engine():
            message, block, tool, line = orjson.loads(self._searcher.doc(found.at)["place"][0])
        return DocumentPlace(message, block, tool, None if line is None else tuple(line))


def _stored(file: int, each: SearchDocument) -> tantivy.Document:
    made = tantivy.Document()
    made.add_text("text", composed(each.text))
    if each.parts:
        made.add_text("parts", each.parts)
    if each.tool:
        made.add_text("tool", composed(each.tool_words))
    for path in each.paths:
        made.add_text("path", composed(path))
    made.add_unsigned("file", file)
    made.add_unsigned("kind", each.kind)
    made.add_unsigned("time", epoch_seconds(each.time))
    made.add_unsigned("order", each.order)
    made.add_unsigned("length", min(_LONG, each.text.count(" ") + each.text.count("\n")))
    made.add_unsigned("failed", each.failed)
    made.add_unsigned("dropped", each.dropped)
    made.add_bytes("place", orjson.dumps((each.message, each.block, each.tool, each.line)))
    return made


def epoch_seconds(time: datetime | None) -> int:
    """Return a time as the index stores it: whole seconds since 1970.

    Returns 0 if the time is unknown or before 1970.
    """
    return 0 if time is None else max(0, int(time.timestamp()))
