"""The inverted index of documents: the one module, with `matching.py`, that speaks to `tantivy`.

On disk or in memory. Bodies are not stored; a document holds where its text stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import orjson
import tantivy

from gemtui.search.documents import Document, Kind
from gemtui.search.words import analyzer

WORDS = "words"
"""The name under which the index knows `analyzer()`."""
_HEAP = 96_000_000
_SMALL_HEAP = 16_000_000
_KINDS = tuple(Kind)
_MOST_FILES = 60_000
"""What the engine counts apart."""


class Found(NamedTuple):
    """A document that matches. `file`: the number of its file; `time`: seconds, 0 = unknown."""

    score: float
    file: int
    kind: Kind
    time: int
    at: tantivy.DocAddress


class Place(NamedTuple):
    """Where a document stands, as `Document` says it, and the tool."""

    message: str
    block: int
    tool: str
    line: tuple[int, int] | None


def minor_version() -> str:
    """Return the version of the text engine as far as indexes depend on it, such as `0.27`."""
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
    made.add_unsigned_field("failed", indexed=True)
    made.add_unsigned_field("dropped", indexed=True)
    made.add_bytes_field("place", stored=True)
    return made.build()


class TextIndex:
    """Documents by their words.

    `folder`: where it is kept; None = in memory. `new`: make it there. Raises ValueError where what
    is there is no index of this form.
    """

    def __init__(self, folder: Path | None = None, *, new: bool = False) -> None:
        if folder is not None and not new and not tantivy.Index.exists(str(folder)):
            raise ValueError("its words are missing")
        self._index = tantivy.Index(schema(), path=None if folder is None else str(folder))
        self._index.register_tokenizer(WORDS, analyzer())
        self._index.config_reader("manual")
        self._writer: tantivy.IndexWriter | None = None
        self._heap = _SMALL_HEAP if folder is None else _HEAP

    # --- writing -----------------------------------------------------------------------------

    def add(self, file: int, documents: Iterable[Document]) -> None:
        """Add the documents of a file under a number."""
        writer = self._written()
        for each in documents:
            writer.add_document(_stored(file, each))

    def remove(self, files: Iterable[int]) -> None:
        """Remove all documents of files."""
        writer = self._written()
        for file in files:
            writer.delete_documents_by_term("file", file)

    def commit(self) -> None:
        """Keep what was added and removed, for readers that are made from now on."""
        self._written().commit()

    def close(self) -> None:
        """End writing: what was not committed is lost."""
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
        """Return what has been committed until now, by other programs too."""
        self._index.reload()
        return TextReader(self._index.searcher())


class TextReader:
    """An index as it is at one moment."""

    def __init__(self, searcher: tantivy.Searcher) -> None:
        self._searcher = searcher

    def search(self, query: tantivy.Query, most: int) -> list[Found]:
        """Return the documents that match, the best first, at most so many."""
        most = max(1, min(most, self._searcher.num_docs))
        hits = self._searcher.search(query, most, count=False).hits
        at = [address for _, address in hits]
        columns = [self._column(name, at) for name in ("file", "kind", "time")]
        return [
            Found(score, file, _KINDS[kind], time, address)
            for (score, address), file, kind, time in zip(hits, *columns, strict=True)
        ]

    def _column(self, name: str, at: list[tantivy.DocAddress]) -> list[int]:
        return [int(value or 0) for value in self._searcher.fast_field_values(name, at)]

    def files(self, query: tantivy.Query) -> dict[int, int]:
        """Return the numbers of the files with matches, each with the count of them."""
        most = max(1, min(_MOST_FILES, self._searcher.num_docs))
        terms = {"field": "file", "size": most, "segment_size": most}
        answer = self._searcher.aggregate(query, {"files": {"terms": terms}})
        return {int(each["key"]): each["doc_count"] for each in answer["files"]["buckets"]}

    def numbers(self) -> list[int]:
        """Return the numbers of all files that have documents."""
        return list(self.files(tantivy.Query.all_query()))

    def place(self, found: Found) -> Place:
        """Return where a document stands."""
        message, block, tool, line = orjson.loads(self._searcher.doc(found.at)["place"][0])
        return Place(message, block, tool, None if line is None else tuple(line))


def _stored(file: int, each: Document) -> tantivy.Document:
    made = tantivy.Document()
    made.add_text("text", each.text)
    if each.parts:
        made.add_text("parts", each.parts)
    if each.tool:
        made.add_text("tool", each.tool_words)
    for path in each.paths:
        made.add_text("path", path)
    made.add_unsigned("file", file)
    made.add_unsigned("kind", each.kind)
    made.add_unsigned("time", seconds(each.time))
    made.add_unsigned("failed", each.failed)
    made.add_unsigned("dropped", each.dropped)
    made.add_bytes("place", orjson.dumps((each.message, each.block, each.tool, each.line)))
    return made


def seconds(time: datetime | None) -> int:
    """Return a time as the index holds it: whole seconds since 1970, 0 = unknown or before."""
    return 0 if time is None else max(0, int(time.timestamp()))
