"""Read something of many session files, and keep it: only files that changed are read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

from gemtui.errors import NotASession, SessionTooLarge
from gemtui.sessions.cache import Cache, Rows
from gemtui.sessions.index import never
from gemtui.sessions.problem import Problem
from gemtui.sessions.records import SessionLog
from gemtui.sessions.store import ChatFile, place_of
from gemtui.sessions.summary import Summary

T = TypeVar("T")
_AT_ONCE = 200
"""Files after which what was read is kept."""


def read_kept(
    sessions: Sequence[Summary],
    rows: Rows[T],
    read: Callable[[SessionLog, Summary], T],
    *,
    home: Path,
    cache: Path | None,
    progress: Callable[[int], None] = lambda _: None,
    cancelled: Callable[[], bool] = never,
) -> Iterator[tuple[Summary, T | Problem]]:
    """Yield each session with what `read` makes of its log, or why it can't be read.

    `rows`: how it is kept. `home`: the CLI's folder. `cache`: our cache folder, None = read all.
    `progress` is called with the number of files that are done, `cancelled` is asked between files
    and within large ones.
    """
    with closing(Cache(cache, home, rows)) as kept:
        places = {each.name: _place(each, home) for each in sessions}
        known = kept.get(place for place in places.values() if place is not None)
        fresh: list[tuple[ChatFile, T]] = []
        for done, session in enumerate(sessions):
            if cancelled():
                break
            found: T | Problem | None = known.get(session.name)
            if found is None:
                found = read_session(session, read, cancelled)
                place = places[session.name]
                if not isinstance(found, Problem) and place is not None and not cancelled():
                    fresh.append((place, found))
            if len(fresh) == _AT_ONCE:
                kept.put(fresh)
                fresh = []
            yield session, found
            progress(done + 1)
        kept.put(fresh)
        if not cancelled():
            kept.remove_gone(known)


def _place(session: Summary, home: Path) -> ChatFile | None:
    """The file in its present state; None where that can't be told, or it is not in the store."""
    with suppress(OSError):
        return place_of(session.path, home)
    return None


def read_session(
    session: Summary,
    read: Callable[[SessionLog, Summary], T],
    cancelled: Callable[[], bool] = never,
) -> T | Problem:
    """Return what `read` makes of a session's log, or why it can't be read."""
    try:
        with SessionLog(session.path) as log:
            log.refresh(cancelled=cancelled)
            return read(log, session)
    except (NotASession, SessionTooLarge) as error:
        return Problem(path=session.path, line=None, what=str(error))
    except OSError as error:
        what = f"can't be read: {error.strerror}"
        return Problem(path=session.path, line=None, what=what)
