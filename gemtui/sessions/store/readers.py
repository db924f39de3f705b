"""Helper processes that read files in parallel: one per core, at most four.

A module becomes such a helper by calling `serve` when it is run as a program. A helper exits when
its input closes, which also happens when its parent exits.
"""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from io import BufferedIOBase
from queue import Empty, Queue, SimpleQueue
from threading import Thread
from typing import IO, Any, Generic, TypeVar

from gemtui.processes import helper
from gemtui.sessions.store.store import ChatFile

MOST = 4
"""Maximum number of processes.

Each one takes about 40 MB, plus five times the size of a legacy file it is parsing.
"""
_AT_ONCE = 16
"""Number of files sent to a process at a time; fewer if they are large."""
_LARGE = 1024 * 1024
_AHEAD = 64
"""Maximum number of results to hold; processes pause until there is room."""
_LOOK = 0.1
"""Seconds between checks of `cancelled`."""

T = TypeVar("T")


class Readers(Generic[T]):
    """Processes that read files, each with a thread that communicates with it.

    `module`: the module that the processes run. Results are unpickled without validation, because
    only gemtui's own modules are run.
    """

    def __init__(self, module: str, places: Sequence[ChatFile]) -> None:
        self._module = module
        self._count = min(os.cpu_count() or 1, MOST, len(places))
        self._batches: SimpleQueue[list[ChatFile]] = SimpleQueue()
        self._answers: Queue[tuple[ChatFile, T] | None] = Queue(_AHEAD)
        for batch in _batches(places):
            self._batches.put(batch)

    def read(self, cancelled: Callable[[], bool]) -> Iterator[tuple[ChatFile, T]]:
        """Yield each file with its result, roughly in the given order, until `cancelled`.

        Files that no process has read, because processes could not be started or have ended, are
        not yielded.
        """
        threads: dict[subprocess.Popen[bytes], Thread] = {}
        try:
            with suppress(OSError):
                for _ in range(self._count):
                    process, stream = _started(self._module)
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
            self._end(threads)

    def _end(self, threads: dict[subprocess.Popen[bytes], Thread]) -> None:
        for process in threads:
            process.kill()
        for process, thread in threads.items():
            while thread.is_alive():
                with suppress(Empty):
                    self._answers.get(timeout=_LOOK)
            process.wait()

    def _talk(self, stream: BufferedIOBase) -> None:
        """Send a helper process batches of files, and queue its results.

        Ends when no files are left or the process fails. The process also counts as failed if
        gemtui has been updated since the current process started.
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


def _started(module: str) -> tuple[subprocess.Popen[bytes], BufferedIOBase]:
    """Start a process that runs `module`; return it with a two-way stream.

    The stream uses the process's standard input, because other code may print to its output.
    """
    ours, theirs = socket.socketpair()
    with ours, theirs:
        return helper("-m", module, stdin=theirs.fileno()), ours.makefile("rwb")


def serve(work: Callable[[ChatFile], Any]) -> None:
    """Apply `work` to each file that the parent process sends; send back the results."""
    batches: SimpleQueue[list[ChatFile]] = SimpleQueue()
    Thread(target=_receive, args=(sys.stdin.buffer, batches), daemon=True).start()
    with open(sys.stdin.fileno(), "wb", closefd=False) as told:
        while True:
            pickle.dump([work(place) for place in batches.get()], told)
            told.flush()


def _receive(asked: IO[bytes], batches: SimpleQueue[list[ChatFile]]) -> None:
    """Queue the files from the parent process; exit when the input closes."""
    try:
        while True:
            batches.put(pickle.load(asked))
    finally:
        os._exit(0)
