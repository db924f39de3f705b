"""Read facts about many sessions through a cache: only files that have changed are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from gemtui.sessions.catalog.cache import Cache, CachedRows
from gemtui.sessions.store.store import ChatFile, Problem, never, place_of

if TYPE_CHECKING:
    from gemtui.sessions.read.session_log import SessionLog


class Stored(Protocol):
    """A session whose file is at the path `name`."""

    @property
    def name(self) -> str:
        """The path of the session's file."""


S = TypeVar("S", bound=Stored)
T = TypeVar("T")
_SAVED = 200
"""Number of files after which results are written to the cache."""


def read_cached(
    sessions: Sequence[S],
    rows: CachedRows[T],
    read: Callable[[SessionLog, S], T],
    *,
    home: Path,
    cache: Path | None,
    places: Mapping[str, ChatFile] | None = None,
    helper: str | None = None,
    progress: Callable[[int], None] = lambda _: None,
    cancelled: Callable[[], bool] = never,
) -> Iterator[tuple[S, T | Problem]]:
    """Yield each session with the result of `read`, or the reason it can't be read.

    Cached sessions come first, then the rest, each roughly in the given order. `rows`: how results
    are stored in the cache. `home`: the CLI's folder. `cache`: gemtui's cache folder; None reads
    all files. `places`: files of the store that have just been looked at, by path. `helper`: the
    function for several processes that read the same data (`readers.py`),
    used for large amounts. `progress`: called with the number of finished files. `cancelled`:
    called between files and within large ones; once it returns True, reading stops.
    """
    with closing(Cache(cache, home, rows)) as cached:
        looked = places or _places([session.name for session in sessions], home)
        values = cached.get(looked[session.name] for session in sessions if session.name in looked)
        unread = [session for session in sessions if session.name not in values]
        fresh: list[tuple[ChatFile, T]] = []
        results = chain(
            ((session, values[session.name]) for session in sessions if session.name in values),
            _read_sessions(unread, looked, read, helper, cancelled),
        )
        for number, (session, one) in enumerate(results, 1):
            if cancelled():
                break
            place = looked.get(session.name)
            if session.name not in values and place is not None and not isinstance(one, Problem):
                fresh.append((place, one))
            if len(fresh) == _SAVED:
                cached.put(fresh)
                fresh = []
            yield session, one
            progress(number)
        cached.put(fresh)
        if not cancelled():
            cached.remove_gone(looked)


def _places(names: Iterable[str], home: Path) -> dict[str, ChatFile]:
    """Return the store's entries for the files at these paths, with their current sizes and times.

    Files that can't be accessed or are not in the store are left out.
    """
    places: dict[str, ChatFile] = {}
    for name in names:
        with suppress(OSError):
            place = place_of(Path(name), home)
            if place is not None:
                places[name] = place
    return places


def _read_sessions(
    sessions: Sequence[S],
    places: Mapping[str, ChatFile],
    read: Callable[[SessionLog, S], T],
    helper: str | None,
    cancelled: Callable[[], bool],
) -> Iterator[tuple[S, T | Problem]]:
    if not sessions:
        return
    from gemtui.sessions.catalog.read_files import read_log
    from gemtui.sessions.store.readers import read_in_processes

    left = {session.name: session for session in sessions}
    files = [places[name] for name in left if name in places]
    if helper is not None:
        for place, result in read_in_processes(helper, files, cancelled):
            yield left.pop(place.name), result
    for session in left.values():
        if cancelled():
            return
        yield session, read_log(Path(session.name), partial(_read, read, session), cancelled)


def _read(read: Callable[[SessionLog, S], T], session: S, log: SessionLog) -> T:
    return read(log, session)
