"""Read many session files, in several processes if the files are large.

Each process runs `serve` (`readers.py`). Files that no process has read are read in the calling
process.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from gemtui.sessions.catalog.summarise import read_file
from gemtui.sessions.catalog.summary import Known
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.readers import Readers, answer_reads
from gemtui.sessions.store.store import ChatFile, Problem
from gemtui.worker import Parent

ReadResult = Known | Problem | None


def read_files(
    places: Sequence[ChatFile], *, upto: int | None = None, cancelled: Callable[[], bool] = lambda: False
) -> Generator[tuple[ChatFile, ReadResult], None, None]:
    """Yield each file with the result of `read_file`, roughly in the given order.

    `upto`: read only about this many bytes of each file. `cancelled`: called regularly; once it
    returns True, the remaining files are skipped.
    """
    left = dict.fromkeys(places)
    if upto is None:
        for place, known in Readers[ReadResult](f"{__name__}:serve", places).read(cancelled):
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


def serve(parent: Parent) -> None:
    """Read files for the process that has started this one."""
    answer_reads(parent, _read)
