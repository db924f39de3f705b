"""Helper processes that read files in parallel, if there is much to read.

There is one process per core, at most four.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec.msgpack

from gemtui.sessions.store.store import ChatFile
from gemtui.worker import Parent, Worker, with_answers

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
_LOOK = 0.1
"""Seconds between checks of `cancelled`."""


def read_in_processes(
    function: str, places: Sequence[ChatFile], cancelled: Callable[[], bool]
) -> Iterator[tuple[ChatFile, Any]]:
    """Yield each file with its result, roughly in the given order, until `cancelled`.

    Files that no process has read are not yielded: all of them if there is little to read, and
    those whose process could not be started or has ended. `function`: what the processes run, as in
    `Worker`; it calls `answer_reads`.
    """
    count = min(os.cpu_count() or 1, MOST, len(places))
    if count < 2 or sum(place.size for place in places) < MUCH:
        return
    batches = _batches(places)
    workers: list[Worker] = []
    reading: dict[Worker, list[ChatFile]] = {}
    try:
        with suppress(OSError):
            for _ in range(count):
                workers.append(Worker(function))
        idle, results = list(workers), list[tuple[ChatFile, Any]]()
        while not cancelled():
            for worker, batch in zip(idle, batches, strict=False):
                with suppress(OSError):
                    worker.send(batch)
                    reading[worker] = batch
            for result in results:  # after sending, so that the processes read on meanwhile
                if cancelled():
                    return
                yield result
            if not reading:
                return
            idle, results = [], []
            for worker in with_answers(reading, _LOOK):
                batch = reading.pop(worker)
                with suppress(Exception):  # such as one of another version, after an update
                    results += zip(batch, worker.receive(), strict=True)
                    idle.append(worker)
    finally:
        for worker in workers:
            worker.end()


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


_encode = msgspec.msgpack.Encoder().encode


def packed(result: object) -> object:
    """Return a result as MessagePack, which is sent in a fraction of the time.

    A result with text that is no valid Unicode is returned unchanged.
    """
    try:
        return _encode(result)
    except UnicodeEncodeError:
        return result
