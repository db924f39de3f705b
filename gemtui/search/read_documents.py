"""Read the documents of many session files: here, or in several processes where there are many.

Each process runs this module as a program (`gemtui.sessions.readers`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from gemtui.errors import NotASession, SessionTooLarge
from gemtui.search.documents import Document, documents_of
from gemtui.sessions.readers import Readers, serve
from gemtui.sessions.records import SessionLog
from gemtui.sessions.store import ChatFile

MUCH = 32 * 1024 * 1024
"""Bytes; fewer are read here."""
_HUGE = 64 * 1024 * 1024
"""Bytes of a file whose documents are never all in memory: it is read here."""


def read_documents(
    places: Sequence[ChatFile], *, cancelled: Callable[[], bool]
) -> Iterator[tuple[ChatFile, Iterable[Document]]]:
    """Yield each file with its documents, roughly in the given order, until `cancelled`.

    A file that is no session, or can't be read, has none.
    """
    left = dict.fromkeys(places)
    small = [place for place in places if place.size < _HUGE]
    if sum(place.size for place in small) >= MUCH:
        for place, documents in Readers[list[Document]](__name__, small).read(cancelled):
            del left[place]
            yield place, documents
    for place in left:
        if cancelled():
            return
        yield place, _documents_in(place)


def _documents_in(place: ChatFile) -> Iterator[Document]:
    try:
        with SessionLog(place.path) as log:
            log.refresh()
            yield from documents_of(log)
    except (NotASession, SessionTooLarge, OSError, RecursionError, MemoryError):
        return


def _read(place: ChatFile) -> list[Document]:
    return list(_documents_in(place))


if __name__ == "__main__":
    serve(_read)
