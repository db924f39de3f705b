"""Read many session files through a cache; only changed files are read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from typing import TypeVar

from gemtui.errors import NotASession, SessionTooLarge
from gemtui.sessions.catalog.cache import Cache, CachedRows
from gemtui.sessions.catalog.index import never
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.readers import Readers
from gemtui.sessions.store.store import ChatFile, Problem, place_of

T = TypeVar("T")
_AT_ONCE = 200
"""Number of files after which results are written to the cache."""


def read_cached(
    sessions: Sequence[Summary],
    rows: CachedRows[T],
    read: Callable[[SessionLog, Summary], T],
    *,
    home: Path,
    cache: Path | None,
    helper: str | None = None,
    progress: Callable[[int], None] = lambda _: None,
    cancelled: Callable[[], bool] = never,
) -> Iterator[tuple[Summary, T | Problem]]:
    """Yield each session with the result of `read`, or the reason it can't be read.

    Cached sessions come first, then the rest, each roughly in the given order. `rows`: how results
    are stored in the cache. `home`: the CLI's folder. `cache`: gemtui's cache folder; None reads
    all files. `helper`: the function for several processes that read the same data (`readers.py`),
    used for large amounts. `progress`: called with the number of finished files. `cancelled`:
    called between files and within large ones; once it returns True, reading stops.
    """
    with closing(Cache(cache, home, rows)) as cached:
        places = {each.name: _place(each, home) for each in sessions}
        known = cached.get(place for place in places.values() if place is not None)
        unread = [each for each in sessions if each.name not in known]
        fresh: list[tuple[ChatFile, T]] = []
        found = chain(
            ((each, known[each.name]) for each in sessions if each.name in known),
            _read_all(unread, places, read, helper, cancelled),
        )
        for done, (session, one) in enumerate(found, 1):
            if cancelled():
                break
            place = places[session.name]
            if session.name not in known and place is not None and not isinstance(one, Problem):
                fresh.append((place, one))
            if len(fresh) == _AT_ONCE:
                cached.put(fresh)
                fresh = []
            yield session, one
            progress(done)
        cached.put(fresh)
        if not cancelled():
            cached.remove_gone(known)


def _place(session: Summary, home: Path) -> ChatFile | None:
    """Return the store's entry for a session's file, with its current size and times.

    Returns None if the file can't be accessed or is not in the store.
    """
    with suppress(OSError):
        return place_of(session.path, home)
    return None


def _read_all(
    sessions: Sequence[Summary],
    places: Mapping[str, ChatFile | None],
    read: Callable[[SessionLog, Summary], T],
    helper: str | None,
    cancelled: Callable[[], bool],
) -> Iterator[tuple[Summary, T | Problem]]:
    left = {each.name: each for each in sessions}
    files = [place for name in left if (place := places[name]) is not None]
    if helper is not None:
        for place, found in Readers[T | Problem](helper, files).read(cancelled):
            yield left.pop(place.name), found
    for session in left.values():
        if cancelled():
            return
        yield session, _read(session, read, cancelled)


def _read(session: Summary, read: Callable[[SessionLog, Summary], T], cancelled: Callable[[], bool]) -> T | Problem:
    return read_log(session.path, lambda log: read(log, session), cancelled)


def read_log(path: Path, read: Callable[[SessionLog], T], cancelled: Callable[[], bool] = never) -> T | Problem:
    """Open the log at `path` and return `read(log)`, or why it can't be read."""
    try:
        with SessionLog(path) as log:
            log.refresh(cancelled=cancelled)
            return read(log)
    except (NotASession, SessionTooLarge) as error:
        return Problem(path=path, line=None, what=str(error))
    except OSError as error:
        return Problem(path=path, line=None, what=f"can't be read: {error.strerror}")
