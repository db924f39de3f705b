"""Helper processes that read files in parallel, if there is much to read.

There is one process per core, at most four.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, Queue, SimpleQueue
from threading import Thread
from typing import Generic, TypeVar

from gemtui.sessions.store.store import ChatFile
from gemtui.worker import Parent, Worker

MOST = 4
"""Maximum number of processes.

Each one takes about 40 MB, plus five times the size of a legacy file it is parsing.
"""
MUCH = 32 * 1024 * 1024
"""Number of bytes to read from which processes are used.

Starting a process takes as long as reading some of the files, so less is read by the caller.
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

    `function`: what the processes run, as in `Worker`; it calls `answer_reads`.
    """

    def __init__(self, function: str, places: Sequence[ChatFile]) -> None:
        self._function = function
        count = min(os.cpu_count() or 1, MOST, len(places))
        self._count = count if count > 1 and sum([place.size for place in places]) >= MUCH else 0
        self._batches: SimpleQueue[list[ChatFile]] = SimpleQueue()
        self._answers: Queue[tuple[ChatFile, T] | None] = Queue(_AHEAD)
        for batch in _batches(places) if self._count else ():
            self._batches.put(batch)

    def read(self, cancelled: Callable[[], bool]) -> Iterator[tuple[ChatFile, T]]:
        """Yield each file with its result, roughly in the given order, until `cancelled`.

        Files that no process has read are not yielded: all of them if there is little to read, and
        those whose process could not be started or has ended.
        """
        threads: dict[Worker, Thread] = {}
        try:
            with suppress(OSError):
                for _ in range(self._count):
                    worker = Worker(self._function)
                    threads[worker] = Thread(target=self._talk, args=(worker,), daemon=True)
                    threads[worker].start()
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

    def _end(self, threads: dict[Worker, Thread]) -> None:
        for worker in threads:
            worker.kill()
        for worker, thread in threads.items():
            while thread.is_alive():
                with suppress(Empty):
                    self._answers.get(timeout=_LOOK)
            worker.end()

    def _talk(self, worker: Worker) -> None:
        """Send a helper process batches of files, and queue its results.

        Ends when no files are left or the process fails. The process also counts as failed if
        gemtui has been updated since the current process started.
        """
        with suppress(Exception):
            while True:
                batch = self._batches.get_nowait()
                for answer in zip(batch, worker.ask(batch), strict=True):
                    self._answers.put(answer)
        worker.finish()
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


def answer_reads(parent: Parent, read: Callable[[ChatFile], object]) -> None:
    """Apply `read` to the files that a process's parent sends; send back the results."""
    parent.answer(lambda batch: [read(place) for place in batch])
