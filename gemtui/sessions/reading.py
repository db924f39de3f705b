"""What one file of the store holds, as the index and its cache keep it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gemtui.errors import NotASession, SessionTooLarge
from gemtui.sessions.cache import Known, Unread
from gemtui.sessions.records import Problem, SessionLog
from gemtui.sessions.store import ChatFile
from gemtui.sessions.summary import Summary, summarise


def never() -> bool:
    """Nobody cancels this."""
    return False


def read_file(
    log: SessionLog,
    place: ChatFile,
    *,
    upto: int | None = None,
    cancelled: Callable[[], bool] = never,
) -> Known | Problem | None:
    """What a file holds; a Problem may go away by itself, None = the file is gone."""
    try:
        log.refresh(upto=upto, cancelled=cancelled)
        return summarise(log, place)
    except (NotASession, SessionTooLarge) as error:
        return Unread(what=str(error).removeprefix(f"{place.path} "))
    except FileNotFoundError:
        return None
    except OSError as error:
        return refused(place.path, error)
    except MemoryError:
        return Problem(path=place.path, line=None, what="can't be read: there is no memory left")
    except RecursionError:
        return Unread(what="is nested too deeply to be read")


def refused(path: Path, error: OSError) -> Problem:
    """What the system said of a path that we asked it for."""
    return Problem(path=path, line=None, what=f"can't be read: {error.strerror or error}")


def worth_keeping(place: ChatFile, known: Known | Problem | None) -> list[tuple[ChatFile, Known]]:
    """What goes to the cache: what stands as long as the file does not change."""
    if isinstance(known, Unread) or (isinstance(known, Summary) and not known.partial):
        return [(place, known)]
    return []
