"""Read session files' documents, in several processes if there is much to read.

Each process runs `serve` (`gemtui.sessions.store.readers`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import msgspec.msgpack

from gemtui.search.documents import FileDocuments, SearchDocument, documents_of
from gemtui.search.file_list import session_of
from gemtui.sessions.catalog.summarise import kind_and_id
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.readers import answer_reads, packed, read_in_processes
from gemtui.sessions.store.store import UNREADABLE, ChatFile
from gemtui.worker import Parent

_HUGE = 64 * 1024 * 1024
"""File size, in bytes, from which a file is read in this process.

That way, its documents are never all in memory.
"""
_KEPT = 8 * 1024 * 1024
"""Number of bytes of a log's lines to keep parsed, to avoid parsing them twice."""


def read_documents(
    places: Sequence[ChatFile], *, cancelled: Callable[[], bool]
) -> Iterator[tuple[ChatFile, FileDocuments]]:
    """Yield each file with its documents, roughly in the given order.

    Callers must consume the documents before asking for the next file. Files that can't be read or
    contain no session have no documents. `cancelled`: called between files; once it returns True,
    reading stops.
    """
    left = dict.fromkeys(places)
    small = [place for place in places if place.size < _HUGE]
    for place, contents in read_in_processes(f"{__name__}:serve", small, cancelled):
        del left[place]
        yield place, _unpacked(contents) if isinstance(contents, bytes) else contents
    for place in left:
        if cancelled():
            return
        with SessionLog(place.path, keep=_KEPT) as log:
            yield place, _contents(log, place)


def _contents(log: SessionLog, place: ChatFile) -> FileDocuments:
    try:
        log.refresh()
    except UNREADABLE:
        return FileDocuments()
    return FileDocuments(session_of(*kind_and_id(log, place)), readable_documents(log))


def readable_documents(
    log: SessionLog, *, start: int = 0, stop: int | None = None
) -> Iterator[SearchDocument]:
    """Yield a log's documents, up to the first one that can't be read.

    The arguments are the same as for `documents_of`.
    """
    with suppress(*UNREADABLE):
        yield from documents_of(log, start=start, stop=stop)


def _read(place: ChatFile) -> object:
    with SessionLog(place.path, keep=_KEPT) as log:
        session, documents = _contents(log, place)
        return packed(FileDocuments(session, list(documents)))


_decode = msgspec.msgpack.Decoder(tuple[str, list[SearchDocument]]).decode


def _unpacked(contents: bytes) -> FileDocuments:
    return FileDocuments(*_decode(contents))


def serve(parent: Parent) -> None:
    """Read documents for the process that has started this one."""
    answer_reads(parent, _read)
