"""Archiving of changes in the store while the vault is on.

This module uses asyncio but no widgets. Files are read and written on a background thread of its
own, one step at a time. If that thread has to wait for another program, nothing else is
delayed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

_AGAIN = 360
"""Seconds after which a routine check archives the whole store again.

By then, recently changed files have been unchanged for long enough (`vault.QUIET`) to be copied.
"""
_TOLD = 0.1
"""Minimum number of seconds between two progress updates."""


class VaultFeed:
    """Archives the store under `home` in the vault while the vault is on.

    `show`: called in the event loop whenever `progress` or `problem` has changed. `progress`: the
    number of files archived so far and the total, or None when idle. `problem`: why some files
    couldn't be archived, or None.
    """

    def __init__(self, home: Path, show: Callable[[], None]) -> None:
        self.progress: tuple[int, int] | None = None
        self.problem: str | None = None
        self._home, self._show = home, show
        self._thread = ThreadPoolExecutor(1, "vault")
        self._changed: set[Path] = set()
        self._all = False
        self._news = asyncio.Event()
        self._again: float | None = None
        self._scheduled = self._newest = 0.0
        self._stopped = Event()
        self._last = 0.0

    async def run(self) -> None:
        """Archive what `archive_new` and `changed` ask for, until cancelled."""
        try:
            while True:
                everything = not await self._told()
                self._news.clear()
                paths, self._changed = self._changed, set()
                everything, self._all = everything or self._all, False
                before = self.problem
                loop = asyncio.get_running_loop()
                self.problem = await loop.run_in_executor(self._thread, self._keep, None if everything else paths, loop)
                if self.progress is not None or before != self.problem:
                    self.progress = None
                    self._show()
        finally:
            self._stopped.set()
            self._thread.shutdown(wait=False, cancel_futures=True)

    async def _told(self) -> bool:
        """Wait until there is something to archive; return whether new work was requested.

        Returns False for a routine check, which copies files that were too recent to be copied
        earlier. If a file changed after the check was scheduled, it may still be too recent, so
        another check follows.
        """
        try:
            async with asyncio.timeout_at(self._again):
                await self._news.wait()
        except TimeoutError:
            follows = self._newest > self._scheduled
            self._again = self._newest + _AGAIN if follows else None
            self._scheduled = self._newest
            return False
        return True

    def archive_new(self) -> None:
        """Archive every stored session that hasn't been archived yet."""
        self._all = True
        self._tell_news()

    def changed(self, paths: Iterable[Path]) -> None:
        """Archive these changed files; a folder among them stands for the whole store."""
        self._changed |= set(paths)
        self._tell_news()

    def _tell_news(self) -> None:
        self._newest = asyncio.get_running_loop().time()
        if self._again is None:
            self._scheduled, self._again = self._newest, self._newest + _AGAIN
        self._news.set()

    def _keep(self, paths: set[Path] | None, loop: asyncio.AbstractEventLoop) -> str | None:
        """Archive these files, or the whole store if `paths` is None.

        Returns what went wrong, or None. Does nothing while the vault is off. Blocking: call this
        on the vault's thread.
        """
        from gemtui.kept.vault import is_on, keep_all, keep_changed
        from gemtui.sessions.store.store import name_of

        if not is_on():
            return None
        try:
            if paths is None or any(name_of(path, self._home) is None for path in paths):
                keep_all(self._home, told=self._tell(loop), cancelled=self._stopped.is_set)
            else:
                keep_changed(paths, self._home)
        except OSError as error:
            return error.strerror or str(error)
        return None

    def _tell(self, loop: asyncio.AbstractEventLoop) -> Callable[[int, int], None]:
        def told(done: int, total: int) -> None:
            if time.monotonic() - self._last > _TOLD and not self._stopped.is_set():
                self._last = time.monotonic()
                loop.call_soon_threadsafe(self._take_progress, done, total)

        return told

    def _take_progress(self, done: int, total: int) -> None:
        if not self._stopped.is_set():
            self.progress = done, total
            self._show()
