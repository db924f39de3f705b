"""Keep the index of a store up to date, newest sessions first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from gemtui.errors import NotASession, SessionTooLarge
from gemtui.search.documents import Document, documents_of
from gemtui.search.index import WriteIndex
from gemtui.sessions.records import SessionLog
from gemtui.sessions.store import ChatFile, SessionKind, Store

_FIRST, _LONGEST = 0.5, 8.0
"""Seconds between commits: few at first, so that the newest sessions are found soon."""


def update(
    index: WriteIndex,
    home: Path,
    *,
    told: Callable[[int, int], None] = lambda *_: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> None:
    """Read what changed in a store since it was indexed, newest first, and forget what is gone.

    `told` is called with the number of files that are in the index, and of all. When `cancelled`,
    what was read is kept. Raises OSError where the index can't be written.
    """
    places = [place for place in Store(home).files() if place.kind is not SessionKind.CHECKPOINT]
    gone = index.rows.keys() - {place.name for place in places}
    stale = sorted(index.stale(places), key=lambda place: place.mtime_ns, reverse=True)
    index.commit(gone)
    wait, last = _FIRST, time.monotonic()
    for number, place in enumerate(stale):
        if cancelled():
            break
        told(len(places) - len(stale) + number, len(places))
        index.add(place, _read(place))
        if time.monotonic() - last > wait:
            index.commit()
            wait, last = min(2 * wait, _LONGEST), time.monotonic()
    index.commit()
    if not cancelled():
        told(len(places), len(places))


def _read(place: ChatFile) -> Iterator[Document]:
    """The documents of a file; none of one that is no session."""
    try:
        with SessionLog(place.path) as log:
            log.refresh()
            yield from documents_of(log)
    except (NotASession, SessionTooLarge, OSError, RecursionError, MemoryError):
        return
