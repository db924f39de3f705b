"""Read a store's newest sessions while the rest of the program is loading."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from threading import Thread, active_count
from typing import TYPE_CHECKING

from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.store.store import ChatFile

if TYPE_CHECKING:
    from gemtui.sessions.catalog.index import Index

FIRST_ROWS = 40

_Read = tuple[Snapshot, Sequence[tuple[ChatFile, Summary]]]
"""A snapshot of the newest sessions, and all files read, with their summaries."""


class StorePreload:
    """Reads a store's newest sessions early, so that the list appears sooner.

    `project`: the folder whose sessions are read first; None, or a folder without sessions, means
    all projects. `ahead`: start reading at once in a separate process, so that importing modules
    and reading thousands of files don't delay each other.
    """

    def __init__(self, home: Path, *, cache: Path | None, project: Path | None, ahead: bool = False) -> None:
        self._home, self._cache, self._project = home, cache, project
        self._files: Sequence[tuple[ChatFile, Summary]] = ()
        alone = active_count() == 1  # forking is safe only without other threads
        self._child = _begin(self._read) if ahead and alone else None

    def first(self) -> Future[Snapshot]:
        """Return a future for a snapshot of the newest sessions.

        They are read on a daemon thread, so that reading doesn't keep the app from exiting.
        """
        rows: Future[Snapshot] = Future()
        Thread(target=self._give, args=(rows,), daemon=True).start()
        return rows

    @cached_property
    def index(self) -> Index:
        """The store's index, including everything that `first` has read."""
        from gemtui.sessions.catalog.index import Index

        index = Index(self._home, cache=self._cache)
        if self._project is not None:
            index.expect(self._project)
        index.add_known(self._files)
        return index

    def _give(self, rows: Future[Snapshot]) -> None:
        if not rows.set_running_or_notify_cancel():
            return  # the app has ended
        try:
            told = None if self._child is None else _answer(*self._child)
            snapshot, self._files = told or (self._read()[0], ())
            rows.set_result(snapshot)
        except BaseException as error:
            rows.set_exception(error)

    def _read(self) -> _Read:
        found = self.index.quick(project=self._project, limit=FIRST_ROWS)
        if not found.sessions and self._project is not None:
            found = self.index.quick(project=None, limit=FIRST_ROWS)
        return found, self.index.known()


def _begin(read: Callable[[], _Read]) -> tuple[int, int] | None:
    """Call `read` in a forked process; return the process's id and a pipe.

    The pipe delivers the result. Returns None if the system can't start a process.
    """
    answer, theirs = os.pipe()
    try:
        child = os.fork()
    except OSError:
        os.close(answer)
        os.close(theirs)
        return None
    if child:
        os.close(theirs)
        return child, answer
    try:
        os.close(answer)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        with open(theirs, "wb") as pipe:  # noqa: PTH123
            pipe.write(pickle.dumps(read()))
    finally:
        os._exit(0)


def _answer(child: int, pipe: int) -> _Read | None:
    """Wait for the reading process, and return its result; None if the process failed.

    `child`, `pipe`: the process's id and the pipe for its result, from `_begin`.
    """
    with open(pipe, "rb") as stream:
        data = stream.read()
    with suppress(ChildProcessError):
        os.waitpid(child, 0)
    try:
        told: _Read = pickle.loads(data)
    except (EOFError, pickle.UnpicklingError):
        return None
    return told
