"""Read many session files: one after the other, or in several processes if they are large.

Each process runs this module as a program and ends when its input ends, that is, with its parent.
Files that no process has read, because it could not be started or was ended, are read here.
"""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from io import BufferedIOBase
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO

from gemtui.processes import FOLDER, python
from gemtui.sessions.problem import Problem
from gemtui.sessions.records import SessionLog
from gemtui.sessions.store import ChatFile
from gemtui.sessions.summarise import read_file
from gemtui.sessions.summary import Known

MUCH = 32 * 1024 * 1024
"""Bytes; fewer are read here, as starting a process costs as much as reading some of them."""
_MOST = 4
"""Number of processes; each takes about 40 MB."""
_AT_ONCE = 16
"""Number of files given to a process at a time, fewer if they are large."""
_LARGE = 1024 * 1024
_LOOK = 0.1
"""Seconds between checks of `cancelled`."""

FileRead = tuple[ChatFile, Known | Problem | None]


def read_files(
    places: Sequence[ChatFile],
    *,
    upto: int | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Generator[FileRead, None, None]:
    """Yield each file with the result of `read_file`, roughly in the given order.

    `upto`: read only about that many bytes of each. `cancelled`: checked regularly; if it returns
    True, the remaining files are left out.
    """
    left = dict.fromkeys(places)
    count = min(os.cpu_count() or 1, _MOST, len(places))
    if upto is None and count > 1 and sum([place.size for place in places]) >= MUCH:
        for place, known in _Readers(places).read(count, cancelled):
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


class _Readers:
    """Processes that read files, each with a thread that communicates with it."""

    def __init__(self, places: Sequence[ChatFile]) -> None:
        self._batches: SimpleQueue[list[ChatFile]] = SimpleQueue()
        self._answers: SimpleQueue[FileRead | None] = SimpleQueue()
        for batch in _batches(places):
            self._batches.put(batch)

    def read(self, count: int, cancelled: Callable[[], bool]) -> Iterator[FileRead]:
        """Yield the results of `count` processes until all are done, ended, or cancelled."""
        threads: dict[subprocess.Popen[bytes], Thread] = {}
        try:
            with suppress(OSError):
                for _ in range(count):
                    process, stream = _started()
                    threads[process] = Thread(target=self._talk, args=(stream,), daemon=True)
                    threads[process].start()
            working = len(threads)
            while working and not cancelled():
                with suppress(Empty):
                    answer = self._answers.get(timeout=_LOOK)
                    if answer is None:
                        working -= 1
                    else:
                        yield answer
        finally:
            for process in threads:
                process.kill()
            for process, thread in threads.items():
                thread.join()
                process.wait()

    def _talk(self, stream: BufferedIOBase) -> None:
        """Give a process files to read until none are left, it ends, or says what nobody expects.

        It may be of another version, where gemtui was replaced since this one started.
        """
        with suppress(Exception), stream:
            while True:
                batch = self._batches.get_nowait()
                pickle.dump(batch, stream)
                stream.flush()
                for answer in zip(batch, pickle.load(stream), strict=True):
                    self._answers.put(answer)
        self._answers.put(None)


def _batches(places: Sequence[ChatFile]) -> Iterator[list[ChatFile]]:
    batch: list[ChatFile] = []
    for place in places:
        batch.append(place)
        if len(batch) == _AT_ONCE or place.size >= _LARGE:
            yield batch
            batch = []
    if batch:
        yield batch


def _started() -> tuple[subprocess.Popen[bytes], BufferedIOBase]:
    """Start a process; the stream to it and from it is its input, as other code may print."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = subprocess.Popen(
            python("-m", __name__),
            cwd=FOLDER,
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return process, ours.makefile("rwb")


def _serve(asked: IO[bytes], told: IO[bytes]) -> None:
    """Read the files that are asked for on one stream, and write the results to the other."""
    batches: SimpleQueue[list[ChatFile]] = SimpleQueue()
    Thread(target=_receive, args=(asked, batches), daemon=True).start()
    while True:
        answers = []
        for place in batches.get():
            with SessionLog(place.path) as log:
                answers.append(read_file(log, place))
        pickle.dump(answers, told)
        told.flush()


def _receive(asked: IO[bytes], batches: SimpleQueue[list[ChatFile]]) -> None:
    """Queue the files that are asked for; exit at the end of the input, that is, of the parent."""
    try:
        while True:
            batches.put(pickle.load(asked))
    finally:
        os._exit(0)


if __name__ == "__main__":
    with open(sys.stdin.fileno(), "wb", closefd=False) as told:
        _serve(sys.stdin.buffer, told)
