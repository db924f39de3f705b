"""Read many session files, in several processes if the files are large.

Each process runs this module as a program (`readers.py`). Files that no process has read are read
in the calling process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence

from gemtui.sessions.catalog.summarise import read_file
from gemtui.sessions.catalog.summary import Known
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.readers import Readers, serve
from gemtui.sessions.store.store import ChatFile, Problem

MUCH = 32 * 1024 * 1024
"""Number of bytes to read from which helper processes are used.

Starting a process takes as long as reading some of the files, so smaller amounts are read in the
calling process.
"""

ReadResult = Known | Problem | None


def read_files(
    places: Sequence[ChatFile], *, upto: int | None = None, cancelled: Callable[[], bool] = lambda: False
) -> Generator[tuple[ChatFile, ReadResult], None, None]:
    """Yield each file with the result of `read_file`, roughly in the given order.

    `upto`: read only about this many bytes of each file. `cancelled`: called regularly; once it
    returns True, the remaining files are skipped.
    """
    left = dict.fromkeys(places)
    several = min(os.cpu_count() or 1, len(places)) > 1
    if upto is None and several and sum([place.size for place in places]) >= MUCH:
        for place, known in Readers[ReadResult](__name__, places).read(cancelled):
            del left[place]
            yield place, known
    for place in left:
        if cancelled():
            return
        with SessionLog(place.path) as log:
            known = read_file(log, place, upto=upto, cancelled=cancelled)
        if cancelled():
            return
        yield place, known


def _read(place: ChatFile) -> ReadResult:
    with SessionLog(place.path) as log:
        return read_file(log, place)


if __name__ == "__main__":
    serve(_read)
