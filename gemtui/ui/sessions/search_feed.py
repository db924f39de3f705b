"""Full-text search in the session store, and the process that updates its index."""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gemtui.search.indexer import Indexer, IndexProgress
    from gemtui.search.search import Search


class SearchFeed:
    """Full-text search in the session store under `home`.

    `cache`: gemtui's cache folder; None means no index, so that every search reads the files.
    `show`: called in the event loop whenever `progress` has changed. `progress`: the state of the
    index, or None if unknown.
    """

    def __init__(self, home: Path, cache: Path | None, show: Callable[[], None]) -> None:
        self.progress: IndexProgress | None = None
        self._home, self._cache, self._show = home, cache, show
        self._search: Search | None = None
        self._indexer: Indexer | None = None
        self._begun = self._closed = False

    def search(self) -> Search:
        """Return the object that searches the store, creating it on first use."""
        from gemtui.search.file_list import index_folder
        from gemtui.search.search import Search

        if self._search is None:
            cache = self._cache
            self._search = Search(None if cache is None else index_folder(cache, self._home))
        return self._search

    def keep_index(self) -> None:
        """Start the process that updates the index, unless it has already been started.

        Without a cache folder, there is no index.
        """
        if self._begun or self._closed or self._cache is None:
            return
        self._begun = True
        loop = asyncio.get_running_loop()

        def told(progress: IndexProgress) -> None:
            with suppress(RuntimeError):  # the app has already exited
                loop.call_soon_threadsafe(self._take, progress)

        loop.run_in_executor(None, self._begin, self._cache, told)

    def _begin(self, cache: Path, told: Callable[[IndexProgress], None]) -> None:
        """Start the indexing process.

        If the feed was closed while the process was starting, the process is stopped again. `told`:
        called with the progress. Blocking: call this on a background thread.
        """
        from gemtui.search.file_list import index_folder
        from gemtui.search.indexer import Indexer

        self._indexer = Indexer(self._home, index_folder(cache, self._home), told)
        if self._closed:
            self._indexer.stop()

    def _take(self, progress: IndexProgress) -> None:
        if not self._closed:
            self.progress = progress
            self._show()

    def notify_changed(self) -> None:
        """Tell the indexing process that the store has changed."""
        if self._indexer is not None:
            self._indexer.notify_changed()

    def rest(self) -> None:
        """Close all files and give their memory back to the system.

        Without this, the C library would hold on to the freed memory, which is tens of megabytes
        for a large store. Blocking: call this on a background thread while no search is running.
        """
        if self._search is not None:
            self._search.close()
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)

    def close(self) -> None:
        """Close the search's files and end the indexing process, both in the background."""
        self._closed = True
        loop = asyncio.get_running_loop()
        if self._search is not None:
            loop.run_in_executor(None, self._search.close)
        if self._indexer is not None:
            loop.run_in_executor(None, self._indexer.stop)
