"""Read session files: one for its summary, or many in several processes.

Each process runs `serve` (`readers.py`). Files that no process has read are read in the calling
process.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec.msgpack

from gemtui.sessions.catalog.summarise import summarise
from gemtui.sessions.catalog.summary import Known, Unread
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.readers import answer_reads, packed, read_in_processes
from gemtui.sessions.store.store import UNREADABLE, ChatFile, Problem, never, problem_of
from gemtui.worker import Parent

ReadResult = Known | Problem | None
_unpacked = msgspec.msgpack.Decoder(Known).decode


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
            yield place, _unpacked(result) if isinstance(result, bytes) else result
    for place in left:
        if cancelled():
            return
        with SessionLog(place.path) as log:
            result = read_file(log, place, upto=upto, cancelled=cancelled)
        if cancelled():
            return
        yield place, result


def _read(place: ChatFile) -> object:
    with SessionLog(place.path) as log:
        result = read_file(log, place)
    return packed(result) if isinstance(result, Known) else result


def serve(parent: Parent) -> None:
    """Read files for the process that has started this one."""
    answer_reads(parent, _read)


T = TypeVar("T")


def read_log(
    path: Path, read: Callable[[SessionLog], T], cancelled: Callable[[], bool] = never
) -> T | Problem:
    """Open the log at `path` and return `read(log)`, or why it can't be read."""
    try:
        with SessionLog.read(path, cancelled=cancelled) as log:
            return read(log)
    except UNREADABLE as error:
        return problem_of(path, error)
