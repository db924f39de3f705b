"""A store that is read from the moment somebody wants it, while everything else starts."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from threading import Thread

from gemtui.sessions.index import Index, Snapshot

FIRST_ROWS = 40


class StorePreload:
    """A store from the moment somebody wants it: a thread reads its newest rows at once.

    `project`: whose sessions come first; None = all, as where it has none. `first`: gives the rows.
    """

    def __init__(self, home: Path, *, cache: Path | None, project: Path | None) -> None:
        self.index = Index(home, cache=cache)
        self.first: Future[Snapshot] = Future()
        Thread(target=self._read, args=(project,), daemon=True).start()

    def _read(self, project: Path | None) -> None:
        try:
            found = self.index.quick(project=project, limit=FIRST_ROWS)
            if not found.sessions and project is not None:
                found = self.index.quick(project=None, limit=FIRST_ROWS)
            self.first.set_result(found)
        except BaseException as error:
            self.first.set_exception(error)
