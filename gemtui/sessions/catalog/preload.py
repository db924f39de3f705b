"""Read a store's newest sessions while the rest of the program is loading."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from threading import Thread, active_count
from typing import TYPE_CHECKING

from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.store.store import ChatFile
from gemtui.worker import ForkedCall

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

    def __init__(
        self, home: Path, *, cache: Path | None, project: Path | None, ahead: bool = False
    ) -> None:
        self._home, self._cache, self._project = home, cache, project
        self._files: Sequence[tuple[ChatFile, Summary]] = ()
        self._reading: ForkedCall[_Read] | None = None
        if ahead and active_count() == 1:  # forking is safe only without other threads
            with suppress(OSError):
                self._reading = ForkedCall(self._read)

    @cached_property
    def first(self) -> Future[Snapshot]:
        """A future for a snapshot of the newest sessions.

        The first access starts a daemon thread, so that reading doesn't keep the app from exiting.
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
            snapshot, self._files = self._read_ahead() or (self._read()[0], ())
            rows.set_result(snapshot)
        except BaseException as error:
            rows.set_exception(error)

    def _read_ahead(self) -> _Read | None:
        """Return what the separate process has read; None if it failed or there is none."""
        with suppress(OSError):
            return None if self._reading is None else self._reading.result()
        return None

    def _read(self) -> _Read:
        snapshot = self.index.quick(project=self._project, limit=FIRST_ROWS)
        return snapshot, self.index.known()
