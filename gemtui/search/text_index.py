"""The inverted index of documents, on disk or in memory.

Only this module and `matching.py` use `tantivy`. The text of documents is not stored; the index
contains its location instead.

The search library maps the index's files into memory and trusts them: a changed byte leads to wrong
hits or a panic, and a FIFO blocks it forever. So every file that will be read is compared with the
checksum at its end. The names of checked files are stored in a small file, so that a file is
checked again only after it has changed.
"""

from __future__ import annotations

import mmap
import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import lru_cache
from heapq import nlargest
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

import msgspec
import orjson
import tantivy
from msgspec import Struct

from gemtui.errors import reason_of
from gemtui.files import open_regular, write_whole
from gemtui.search.documents import DocumentKind, SearchDocument
from gemtui.search.words import analyzer, piece_analyzer
from gemtui.text import composed

# --- integrity -----------------------------------------------------------------------------------


_META = "meta.json"
_END = struct.Struct("<II")
"""The last bytes of an index file.

They are the length of the metadata before them, and a magic number.
"""
_MARK = 1337
_TRIES = 3
"""The number of times to check the files; the writer may replace some during a check."""
_Stamp = tuple[int, int, int]


class IndexDamaged(ValueError):
    """Raised if the index can't be used; the message says why."""


class _Deletes(Struct):
    opstamp: int


class _Segment(Struct):
    segment_id: str
    deletes: _Deletes | None = None


class _Meta(Struct):
    segments: list[_Segment]


class _Footer(Struct):
    crc: int


class Integrity:
    """Checks the files of the text index in the folder `words`.

    `known`: the path of the file in which the checked files are listed.
    """

    def __init__(self, words: Path, known: Path) -> None:
        self._words, self._known = words, known
        self._checked: dict[str, _Stamp] = {}
        with suppress(OSError, msgspec.MsgspecError), open_regular(known) as stream:
            self._checked = msgspec.json.decode(stream.read(), type=dict[str, _Stamp])

    def check(self) -> None:
        """Check the files that have changed since the last check. Raises IndexDamaged."""
        for left in reversed(range(_TRIES)):
            try:
                self._check()
            except FileNotFoundError as error:
                if not left:
                    raise IndexDamaged("its words are missing") from error
            except OSError as error:
                raise IndexDamaged(reason_of(error)) from error
            else:
                return

    def _check(self) -> None:
        stamps: dict[str, _Stamp] = {}
        for file in self._words.iterdir():
            info = file.lstat()
            if not S_ISREG(info.st_mode):
                raise IndexDamaged(f"{file.name} is not a file")
            stamps[file.name] = info.st_size, info.st_ino, info.st_ctime_ns
        used = {name: stamps[name] for name in self._used() if name in stamps}
        new = [name for name, stamp in used.items() if self._checked.get(name) != stamp]
        for name in new:
            if not _is_whole(self._words / name):
                raise IndexDamaged(f"{name} has changed")
        if new:
            self._checked = used
            with suppress(OSError):
                write_whole(self._known, [msgspec.json.encode(used)])

    def _used(self) -> Iterator[str]:
        """Yield the names of the files that the index currently uses.

        Missing files are not reported here, because the search library reports them.
        """
        with open_regular(self._words / _META) as stream:
            data = stream.read()
        try:
            meta = msgspec.json.decode(data, type=_Meta)
        except msgspec.MsgspecError as error:
            raise IndexDamaged(f"{_META} has changed") from error
        for segment in meta.segments:
            id = segment.segment_id.replace("-", "")
            yield from (f"{id}.{kind}" for kind in _ENDINGS)
            if segment.deletes is not None:
                yield f"{id}.{segment.deletes.opstamp}.del"


_ENDINGS = ("idx", "pos", "term", "store", "fast", "fieldnorm")


def _is_whole(path: Path) -> bool:
    """Return whether a file's contents match the checksum at its end."""
    with open_regular(path) as stream:
        try:
            data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # an empty file can't be mapped
            return False
    with data:
        if len(data) < _END.size:
            return False
        length, mark = _END.unpack(data[-_END.size :])
        end = len(data) - _END.size - length
        if mark != _MARK or end < 0:
            return False
        try:
            footer = msgspec.json.decode(data[end : -_END.size], type=_Footer)
        except msgspec.MsgspecError:
            return False
        with memoryview(data) as view, view[:end] as body:
            return zlib.crc32(body) == footer.crc


# --- the index -----------------------------------------------------------------------------------


WORD_TOKENIZER = "words"
"""The name under which `analyzer()` is registered in the index."""
PIECE_TOKENIZER = "pieces"
"""The name under which `piece_analyzer()` is registered in the index."""
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
_RECENT = 4
"""How many times as many documents to search first as matches are wanted: the newest ones."""
_MOST_FILES = 60_000
"""Maximum number of files whose matches the search library counts separately."""


_EngineHit = tuple[float, tantivy.DocAddress]


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
    version = re.search(r"\d+\.\d+", tantivy.__version__)  # type: ignore[attr-defined]
    return "" if version is None else version[0]


@lru_cache(maxsize=1)
def schema() -> tantivy.Schema:
    """Return the fields of a document in the index."""
    made = tantivy.SchemaBuilder()
    made.add_text_field("text", tokenizer_name=WORD_TOKENIZER)
    made.add_text_field("parts", tokenizer_name=WORD_TOKENIZER, index_option="basic")
    made.add_text_field("symbols", tokenizer_name=PIECE_TOKENIZER, index_option="basic")
    made.add_text_field("path", tokenizer_name=WORD_TOKENIZER)
    made.add_text_field("tool", tokenizer_name=WORD_TOKENIZER)
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
        self._index.register_tokenizer(WORD_TOKENIZER, analyzer())
        self._index.register_tokenizer(PIECE_TOKENIZER, piece_analyzer())
        self._index.config_reader("manual")
        self._writer: tantivy.IndexWriter | None = None
        self._heap = _SMALL_HEAP if folder is None else _HEAP

    # --- writing -----------------------------------------------------------------------------

    def add(self, file: int, documents: Iterable[SearchDocument]) -> None:
        """Index all documents of a file; they share `file`, the file's document number."""
        writer = self._written()
        for document in documents:
            writer.add_document(_stored(file, document))

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
        self._times: dict[int, int] = {}
        """What `_time_of` has returned."""

    @property
    def count(self) -> int:
        """The number of documents in the index."""
        return self._searcher.num_docs

    def search(self, query: tantivy.Query, most: int, *, rare: bool = False) -> list[FoundDocument]:
        """Return the matching documents.

        If there are more than `most`, approximately the newest `most` are returned. `rare`: whether
        few matches are expected, which only makes a difference to the time. Raises TooMuch.
        """
        with _engine():
            most = max(1, min(most, self._searcher.num_docs))
            hits = None if rare else self._recent_hits(query, most)
            if hits is None:
                hits = self._newest_hits(query, most)
            at = [address for _, address in hits]
            columns = [self._column(name, at) for name in _COLUMNS]
            return [
                FoundDocument(score, file, _KINDS[kind], time, order, length, address)
                for (score, address), file, kind, time, order, length in zip(
                    hits, *columns, strict=True
                )
            ]

    def _recent_hits(self, query: tantivy.Query, most: int) -> list[_EngineHit] | None:
        """Return what `_newest_hits` does, if the index's newest documents have enough matches.

        Otherwise, returns None. What matches much is so searched only once.
        """
        recent = _RECENT * most
        if recent >= self._searcher.num_docs:
            return None
        wanted = _since(query, self._time_of(recent))
        hits = self._searcher.search(wanted, 2 * recent, count=False).hits
        if not most <= len(hits) < 2 * recent:
            return None
        times = self._column("time", [address for _, address in hits])
        since = nlargest(most, times)[-1]
        return [hit for hit, time in zip(hits, times, strict=True) if time >= since][: 2 * most]

    def _time_of(self, place: int) -> int:
        """Return the time of the index's newest document but `place` - 1."""
        if place not in self._times:
            every = tantivy.Query.all_query()
            newest = self._searcher.search(
                every, 1, count=False, offset=place - 1, order_by_field="time"
            )
            self._times[place] = int(newest.hits[0][0] or 0)
        return self._times[place]

    def _newest_hits(self, query: tantivy.Query, most: int) -> list[_EngineHit]:
        """Return about the `most` newest matches, those with higher scores first.

        A first search, sorted by time, finds out how old these matches are. Its results can't be
        used, because sorting by time loses the scores.
        """
        newest = self._searcher.search(query, most, count=False, order_by_field="time").hits
        if not newest:
            return []
        if len(newest) == most < self._searcher.num_docs:
            query = _since(query, int(newest[-1][0] or 0))
        return self._searcher.search(query, 2 * most, count=False).hits

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
        return {int(bucket["key"]): bucket["doc_count"] for bucket in answer["files"]["buckets"]}

    def numbers(self) -> list[int]:
        """Return all document numbers in the index, which identify the indexed files."""
        return list(self.files(tantivy.Query.all_query()))

    def place(self, found: FoundDocument) -> DocumentPlace:
        """Return the location of a document: its message, its block, and its line."""
        with _engine():
            message, block, tool, line = orjson.loads(self._searcher.doc(found.at)["place"][0])
        return DocumentPlace(message, block, tool, None if line is None else tuple(line))


def _since(query: tantivy.Query, time: int) -> tantivy.Query:
    """Restrict a query to documents that are not older than a time in seconds."""
    since = tantivy.Query.range_query(schema(), "time", tantivy.FieldType.Unsigned, time, LATEST)
    must, filtered = tantivy.Occur.Must, tantivy.Query.const_score_query(since, 0.0)
    return tantivy.Query.boolean_query([(must, query), (must, filtered)])


def _stored(file: int, each: SearchDocument) -> tantivy.Document:
    made = tantivy.Document()
    made.add_text("text", composed(each.text))
    if each.parts:
        made.add_text("parts", each.parts)
    if each.symbols:
        made.add_text("symbols", each.symbols)
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
