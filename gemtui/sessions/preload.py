"""Start reading a store in a thread while the rest of the program is loaded."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from threading import Thread

from gemtui.sessions.index import Index, Snapshot

FIRST_ROWS = 40


class StorePreload:
    """A store whose newest rows a thread begins to read when this is made.

    `project`: the folder whose sessions come first; None = all, also if it has none. `first`:
    returns the rows.
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
