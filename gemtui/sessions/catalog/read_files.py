"""Read session files: one for its summary, many in several processes, or through a cache.

Each process runs `serve` (`readers.py`). Files that no process has read are read in the calling
process.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from typing import Protocol, TypeVar

from gemtui.sessions.catalog.cache import Cache, CachedRows
from gemtui.sessions.catalog.summarise import summarise
from gemtui.sessions.catalog.summary import Known, Unread
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.readers import answer_reads, read_in_processes
from gemtui.sessions.store.store import UNREADABLE, ChatFile, Problem, never, place_of, problem_of
from gemtui.worker import Parent

ReadResult = Known | Problem | None


def read_file(
    log: SessionLog,
    place: ChatFile,
    *,
    upto: int | None = None,
    cancelled: Callable[[], bool] = never,
) -> ReadResult:
    """Read a session file; return its summary, or why it has none.

    A Problem may be temporary, and None means that the file no longer exists. `upto`: read only
    about this many bytes. `cancelled`: called while reading; once it returns True, reading stops.
    """
    try:
        log.refresh(upto=upto, cancelled=cancelled)
        return summarise(log, place)
    except FileNotFoundError:
        return None
    except UNREADABLE as error:
        problem = problem_of(place.path, error)
        if isinstance(error, OSError | MemoryError):
            return problem
        return Unread(what=problem.what, too_large=problem.too_large)


def read_files(
    places: Sequence[ChatFile], *, upto: int | None = None, cancelled: Callable[[], bool] = never
) -> Generator[tuple[ChatFile, ReadResult], None, None]:
    """Yield each file with the result of `read_file`, roughly in the given order.

    `upto`: read only about this many bytes of each file. `cancelled`: called regularly; once it
    returns True, the remaining files are skipped.
    """
    left = dict.fromkeys(places)
    if upto is None:
        for place, result in read_in_processes(f"{__name__}:serve", places, cancelled):
            del left[place]
            yield place, result
    for place in left:
        if cancelled():
            return
        with SessionLog(place.path) as log:
            result = read_file(log, place, upto=upto, cancelled=cancelled)
        if cancelled():
            return
        yield place, result


def _read(place: ChatFile) -> ReadResult:
    with SessionLog(place.path) as log:
        return read_file(log, place)


def serve(parent: Parent) -> None:
    """Read files for the process that has started this one."""
    answer_reads(parent, _read)


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
        names = [session.name for session in sessions]
        looked = places or {}
        places_now = {name: looked.get(name) or _place(name, home) for name in names}
        values = cached.get(place for place in places_now.values() if place is not None)
        unread = [session for session in sessions if session.name not in values]
        fresh: list[tuple[ChatFile, T]] = []
        results = chain(
            ((session, values[session.name]) for session in sessions if session.name in values),
            _read_sessions(unread, places_now, read, helper, cancelled),
        )
        for number, (session, one) in enumerate(results, 1):
            if cancelled():
                break
            place = places_now[session.name]
            if session.name not in values and place is not None and not isinstance(one, Problem):
                fresh.append((place, one))
            if len(fresh) == _SAVED:
                cached.put(fresh)
                fresh = []
            yield session, one
            progress(number)
        cached.put(fresh)
        if not cancelled():
            cached.remove_gone(values)


def _place(name: str, home: Path) -> ChatFile | None:
    """Return the store's entry for the file at a path, with its current size and times.

    Returns None if the file can't be accessed or is not in the store.
    """
    with suppress(OSError):
        return place_of(Path(name), home)
    return None


def _read_sessions(
    sessions: Sequence[S],
    places: Mapping[str, ChatFile | None],
    read: Callable[[SessionLog, S], T],
    helper: str | None,
    cancelled: Callable[[], bool],
) -> Iterator[tuple[S, T | Problem]]:
    left = {session.name: session for session in sessions}
    files = [place for name in left if (place := places[name]) is not None]
    if helper is not None:
        for place, result in read_in_processes(helper, files, cancelled):
            yield left.pop(place.name), result
    for session in left.values():
        if cancelled():
            return
        yield session, _read_session(session, read, cancelled)


def _read_session(
    session: S, read: Callable[[SessionLog, S], T], cancelled: Callable[[], bool]
) -> T | Problem:
    return read_log(Path(session.name), lambda log: read(log, session), cancelled)


def read_log(
    path: Path, read: Callable[[SessionLog], T], cancelled: Callable[[], bool] = never
) -> T | Problem:
    """Open the log at `path` and return `read(log)`, or why it can't be read."""
    try:
        with SessionLog.read(path, cancelled=cancelled) as log:
            return read(log)
    except UNREADABLE as error:
        return problem_of(path, error)
