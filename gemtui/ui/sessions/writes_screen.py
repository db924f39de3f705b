"""Base of the screens about sessions' writes to files.

They read the sessions on a background thread, and again whenever the store changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from textual import work
from textual.css.query import NoMatches

from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.store.store import Problem
from gemtui.sessions.writes.written_files import RecordedWrite, recorded_writes
from gemtui.text import Clean, counted
from gemtui.ui.draw.lines import own
from gemtui.ui.kit.reading import Reading
from gemtui.ui.kit.screens import FullScreen

if TYPE_CHECKING:
    from datetime import datetime

    from gemtui.marks import Mark
    from gemtui.sessions.catalog.summary import Summary

Row = TypeVar("Row")
SHOWN = 0.3
"""Seconds between two updates while sessions are being read."""
_PAUSE = 1.0
"""Seconds to wait before each further read, as the store may change constantly."""


class WritesScreen(FullScreen[RecordedWrite], Generic[Row]):
    """A screen that lists writes; returns the one whose session to open, or None.

    During the first read, rows appear as they are found. During later reads, the old rows stay
    until everything has been read. `marks`: the user's marks, by session id.
    """

    def __init__(self, snapshot: Snapshot, home: Path, marks: Mapping[str, Mark], *, id: str) -> None:
        super().__init__(id=id)
        self._snapshot, self._home, self._marks = snapshot, home, marks
        self._news = asyncio.Event()

    def sessions(self, snapshot: Snapshot) -> tuple[Sequence[Summary], datetime | None]:
        """Return the sessions in the order to read them, and the earliest time to include.

        The time is None to include all writes. Blocking: call this on a background thread.
        """
        raise NotImplementedError

    def rows_of(self, writes: Sequence[RecordedWrite], snapshot: Snapshot) -> Sequence[Row]:
        """Return the rows for these writes.

        Blocking: call this on a background thread.
        """
        raise NotImplementedError

    def show_rows(self, rows: Sequence[Row], *, whole: bool) -> None:
        """Show these rows.

        `whole`: whether all sessions have been read.
        """
        raise NotImplementedError

    def use_snapshot(self, snapshot: Snapshot) -> None:
        """Show a newer state of the session store once the current one has been read."""
        self._snapshot = snapshot
        self._news.set()

    @work(exclusive=True, group="writes")
    async def read(self) -> None:
        """Read the sessions, and read them again after each change of the store."""
        reading = self.begin_reading(every=SHOWN)
        grows = True
        while True:
            self._news.clear()
            await asyncio.to_thread(self._gather, reading, grows)
            grows = False
            await self._news.wait()
            await asyncio.sleep(_PAUSE)

    def _gather(self, reading: Reading, grows: bool) -> None:
        snapshot = self._snapshot
        found: list[RecordedWrite] = []
        unread, words = 0, own("reading")

        def progress(done: int, total: int) -> None:
            nonlocal words
            words = own(f"reading {done:,} of {total:,}")

        def show(words: Clean, *, whole: bool) -> None:
            reading.show(self._take, self.rows_of(found, snapshot), words, whole)

        sessions, since = self.sessions(snapshot)
        for each in recorded_writes(
            sessions,
            home=self._home,
            cache=self.gemtui.start.cache,
            since=since,
            progress=progress,
            cancelled=reading.is_stopped,
        ):
            if isinstance(each, Problem):
                unread += 1
            else:
                found.append(each)
            if grows and reading.is_due():
                show(words, whole=False)
        end = f"{counted(unread, 'session')} can't be read" if unread else ""
        show(own(end), whole=snapshot.complete)

    def _take(self, rows: Sequence[Row], words: Clean, whole: bool) -> None:
        try:
            self.show_status(words)
            self.show_rows(rows, whole=whole)
        except NoMatches:  # the screen is being removed
            return
