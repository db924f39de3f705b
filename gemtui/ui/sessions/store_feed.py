"""Updates of the session list: first the newest sessions, then all, then changes.

This module uses asyncio but no widgets. Files are read on background threads, one at a time.
Changes that happen during a read are collected and read together afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.preload import StorePreload
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.ui.kit.reading import Latest

if TYPE_CHECKING:
    from gemtui.sessions.catalog.index import Index
    from gemtui.ui.kit.app_base import Start

SETTLE = 0.1
"""Seconds to wait after showing the first rows, so that they are painted soon."""
MARKS_DELAY = 0.2
"""Maximum number of seconds that the first rows wait for the user's marks."""
LIVE_CHECK = 20.0
"""Seconds between checks of whether live sessions are still being written."""


class StoreFeed:
    """Loads the store (Gemini CLI's stored sessions) and follows its changes.

    `opening`: the preload, which reads the first part of the store. `prepare`: called with each new
    state of the store in the thread that has read it. `show`: called with that state in the event
    loop afterwards. `changed`: called in the event loop with the paths of files that changed on
    disk, and with the reason why the store has to be polled (None if the system reports changes).
    """

    def __init__(
        self,
        opening: StorePreload,
        *,
        prepare: Callable[[Snapshot], None],
        show: Callable[[Snapshot], None],
        changed: Callable[[frozenset[Path], str | None], None],
    ) -> None:
        self._opening = opening
        self._prepare, self._show, self._changed = prepare, show, changed
        self._stopped = Event()
        self._live = False
        self._waiting: set[Path] = set()
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Load the store, then follow it.

        Changes made before the watcher was started aren't missed, because its first event stands
        for all of them.
        """
        index = None
        try:
            self._say(await asyncio.wrap_future(self._opening.first))
            await asyncio.sleep(SETTLE)
            index = await asyncio.to_thread(lambda: self._opening.index)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._watch(index))
                self._say(await self._load(index))
                while True:
                    await self._wait()
                    paths, self._waiting = frozenset(self._waiting), set()
                    self._say(await self._update(index, paths))
        finally:
            self._stopped.set()
            if index is not None:
                asyncio.get_running_loop().run_in_executor(None, index.close)

    def read_again(self, path: Path) -> None:
        """Read a path again, as if it had changed.

        The store's own folder stands for the whole store.
        """
        self._waiting.add(path)
        self._news.set()

    async def _wait(self) -> None:
        """Wait until something has changed or a live session may have ended."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), LIVE_CHECK if self._live else None)
        self._news.clear()

    def _say_unless_stopped(self, snapshot: Snapshot) -> None:
        if not self._stopped.is_set():
            self._say(snapshot)

    def _say(self, snapshot: Snapshot) -> None:
        self._show(snapshot)

    async def _load(self, index: Index) -> Snapshot:
        latest, stopped = Latest(self._say_unless_stopped), self._stopped.is_set

        def publish(snapshot: Snapshot) -> None:
            latest.put(self._prepared(snapshot))

        return await asyncio.to_thread(
            lambda: self._prepared(index.load(publish=publish, cancelled=stopped))
        )

    async def _update(self, index: Index, paths: frozenset[Path]) -> Snapshot:
        stopped = self._stopped.is_set
        return await asyncio.to_thread(
            lambda: self._prepared(index.update(paths, cancelled=stopped))
        )

    def _prepared(self, snapshot: Snapshot) -> Snapshot:
        self._live = any(Flag.LIVE in session.flags for session in snapshot.sessions)
        self._prepare(snapshot)
        return snapshot

    async def _watch(self, index: Index) -> None:
        from gemtui.sessions.store.watch import watch  # slow, so not imported earlier

        async for change in watch(index.home):
            self._waiting |= change.paths
            self._news.set()
            word = change.reason if change.mode == "polling" else None
            self._changed(change.paths, word)


class OpenStore:
    """Gemini CLI's stored sessions under `home`, as far as they have been loaded.

    `home` can be changed. `show`: called with the previous state of the store (None at first) and
    the new one, whenever it changes. `changed`: see `StoreFeed`.
    """

    def __init__(
        self,
        start: Start,
        *,
        show: Callable[[Snapshot | None, Snapshot], None],
        changed: Callable[[frozenset[Path], str | None], None],
    ) -> None:
        self.home = start.home
        self.snapshot: Snapshot | None = None
        self._cache, self._opening = start.cache, start.opening
        self._show, self._changed = show, changed
        self._feed: StoreFeed | None = None
        self._first = None if start.opening is None else start.opening.first

    @property
    def sessions(self) -> Sequence[Summary]:
        """All stored sessions found so far."""
        return () if self.snapshot is None else self.snapshot.sessions

    def find(self, id: str) -> Summary | None:
        """Return the session with this id, or None if there is none or it is hidden."""
        return next((each for each in self.sessions if each.id == id and not each.hidden), None)

    def show_first(self) -> None:
        """Show the first rows now, if they have already been read.

        Nothing has been painted yet, so they are in the app's first picture.
        """
        if self._first is not None and self._first.done() and self._first.exception() is None:
            self._take(self._first.result())

    async def follow(
        self, project: Path | None, marks: asyncio.Event, *, prepare: Callable[[Snapshot], None]
    ) -> None:
        """Load the store from the start, and follow it until cancelled.

        `project`: the project whose sessions are loaded first, or None. `marks`: an event that is
        set once the user's marks have been loaded. `prepare`: see `StoreFeed`.
        """
        opening, self._opening = self._opening, None
        if opening is None:
            self.snapshot = None
            opening = StorePreload(self.home, cache=self._cache, project=project)
        with suppress(TimeoutError):
            await asyncio.wait_for(marks.wait(), MARKS_DELAY)
        self._feed = StoreFeed(opening, prepare=prepare, show=self._take, changed=self._changed)
        await self._feed.run()

    def _take(self, snapshot: Snapshot) -> None:
        before, self.snapshot = self.snapshot, snapshot
        if before is not snapshot:
            self._show(before, snapshot)

    def reload(self) -> None:
        """Reload the whole store.

        Used after changes that the watcher doesn't report, such as removals from the vault.
        """
        if self._feed is not None:
            self._feed.read_again(self.home / "tmp")
