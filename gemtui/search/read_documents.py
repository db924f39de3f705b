"""Read the documents of many session files: here, or in several processes where there are many.

Each process runs this module as a program (`gemtui.sessions.readers`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gemtui.errors import NotASession, SessionTooLarge
from gemtui.search.documents import Document, documents_of
from gemtui.sessions.readers import Readers, serve
from gemtui.sessions.records import SessionLog
from gemtui.sessions.store import ChatFile

MUCH = 32 * 1024 * 1024
"""Bytes; fewer are read here."""


def read_documents(
    places: Sequence[ChatFile], *, cancelled: Callable[[], bool]
) -> Iterator[tuple[ChatFile, list[Document]]]:
    """Yield each file with its documents, roughly in the given order, until `cancelled`.

    A file that is no session, or can't be read, has none.
    """
    left = dict.fromkeys(places)
    if sum(place.size for place in places) >= MUCH:
        for place, documents in Readers[list[Document]](__name__, places).read(cancelled):
            del left[place]
            yield place, documents
    for place in left:
        if cancelled():
            return
        yield place, documents_in(place)


def documents_in(place: ChatFile) -> list[Document]:
    """Return the documents of a file; none of one that is no session, or can't be read."""
    try:
        with SessionLog(place.path) as log:
            log.refresh()
            return list(documents_of(log))
    except (NotASession, SessionTooLarge, OSError, RecursionError, MemoryError):
        return []


if __name__ == "__main__":
    serve(documents_in)
