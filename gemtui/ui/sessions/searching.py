"""Key actions that open the full-text search and the list of written files.

If the user opens a session there, going back from it returns to the search or the list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.entries import text_query
from gemtui.sessions.catalog.summary import Summary
from gemtui.system import trim_heap
from gemtui.ui.kit.reading import Reading
from gemtui.ui.kit.screens import background, dialog
from gemtui.ui.sessions.hits import HitFeed, OpenedHit
from gemtui.ui.sessions.pane_base import PREVIEW_DELAY, SessionsPane, SessionsPart

if TYPE_CHECKING:
    from gemtui.search.indexer import Indexer, IndexProgress
    from gemtui.search.results import Hit
    from gemtui.search.search import Search
    from gemtui.ui.sessions.files_screen import FilesState
    from gemtui.ui.sessions.history_screen import HistoryPosition, WritesScreen
    from gemtui.ui.sessions.search_screen import SearchScreen, SearchState


_MOST, _MOST_OF_SESSION = 100, 3
"""Maximum number of hits in the list, and of those of one session."""


class SessionSearch(SessionsPart):
    """The full-text search, whose index is kept up to date while the app is running."""

    def __init__(self, screen: SessionsPane) -> None:
        super().__init__(screen)
        self._feed = self._feed_of(screen.store.home)
        self._state: SearchState | None = None
        self._hits = HitFeed(screen, lambda _first: self._show_hits())
        self._asked: tuple[str, Path | None] = ("", None)
        self._scope: tuple[Snapshot, Path | None, Sequence[Summary]] | None = None

    def _feed_of(self, home: Path) -> SearchFeed:
        return SearchFeed(home, self.screen.start.cache, self._show_progress)

    def close(self) -> None:
        """Close the searched files, and stop updating the index."""
        self._feed.close()

    def go_to(self, home: Path) -> None:
        """From now on, search the session store under a different `home`."""
        self._feed.close()
        self._feed = self._feed_of(home)

    def changed(self) -> None:
        """Tell the index that the store has changed."""
        self._feed.notify_changed()

    def use_snapshot(self, snapshot: Snapshot) -> None:
        """Search a newer state of the session store.

        Once the store has been loaded, the index of its contents is updated.
        """
        if (search := self._open) is not None:
            search.use_snapshot(snapshot)
        if snapshot.complete:
            self._feed.keep_index()
            if self.screen.sessions.view.query:
                self._find_hits()

    def mark(self) -> None:
        """Use the user's current marks in the open search, if there is one."""
        if (search := self._open) is not None:
            search.mark(self.screen.marks.marks)

    def _show_progress(self) -> None:
        screen, progress = self.screen, self._feed.progress
        attached = screen.is_attached and screen.app.is_running  # the app may be exiting
        if attached and progress is not None and (search := self._open) is not None:
            search.indexing(progress)

    @property
    def _open(self) -> SearchScreen | None:
        top = self.screen.app.screen
        return top if top.id == "search" else None  # type: ignore[return-value]

    # --- hits in the list ----------------------------------------------------------------------

    def follow_list(self) -> None:
        """Search inside the sessions for what the list of titles is searched for."""
        view, project = self.screen.sessions.view, self.screen.sessions.project
        asked = view.query.strip(), None if view.everywhere else project
        if asked != self._asked:
            self._asked = asked
            self._find_hits()

    @background("hits", exclusive=True)
    async def _find_hits(self) -> None:
        screen, (text, project) = self.screen, self._asked
        reading, snapshot = screen.begin_reading("hits"), screen.store.snapshot
        complaint = self._feed.complaint if text else ""
        if not text or snapshot is None or complaint:
            self._hits.clear()
            screen.sessions.show_hits((), complaint)
            screen.update_status()
            await asyncio.to_thread(self._feed.rest)
            return
        self._hits.begin()
        self._show_hits()
        await asyncio.sleep(PREVIEW_DELAY)
        await asyncio.to_thread(self._look, text, project, snapshot, reading)

    def _look(self, text: str, project: Path | None, snapshot: Snapshot, reading: Reading) -> None:
        """Search for the hits of the list. Blocking: call this on a background thread."""
        from gemtui.sessions.catalog.selection import listed_sessions

        scope, screen = self._scope, self.screen
        if scope is None or scope[0] is not snapshot or scope[1] != project:
            sessions = tuple(listed_sessions(snapshot, project=project, hidden=True))
            self._scope = scope = snapshot, project, sessions
        query = text_query(text, screen.gemtui.clock())
        marks = screen.marks.marks
        self._hits.look(self._feed.search(), query, scope[2], reading, limit=_MOST, marks=marks)

    def _show_hits(self) -> None:
        self.screen.sessions.show_hits(self._hits.rows(_MOST_OF_SESSION), self._hits.words)
        self.screen.update_status()

    @background("open", exclusive=True)
    async def open_hit(self, hit: Hit) -> None:
        """Open a session at a hit of the list."""
        results = self._hits.results
        if results is not None:
            pattern = await asyncio.to_thread(self._feed.search().pattern, hit, results.query)
            self._show(OpenedHit(hit, self._asked[0], pattern))

    def _show(self, opened: OpenedHit) -> None:
        screen, hit = self.screen, opened.hit
        screen.navigation.show(hit.file)
        screen.pane.go_to_hit(hit.message, hit.block, opened.query, opened.pattern)

    # --- the search screen ---------------------------------------------------------------------

    @dialog
    async def action_search(self) -> None:
        """Open the search screen with the words of the list's search, if there are any."""
        screen = self.screen
        if self._feed.complaint:
            screen.gemtui.show_message(self._feed.complaint, problem=True)
            return
        from gemtui.ui.sessions.search_screen import SearchScreen, SearchState

        if (snapshot := screen.store.snapshot) is None:
            return
        search = self._feed.search()
        if self._state is None:
            self._state = SearchState(everywhere=screen.sessions.view.everywhere)
        bar = screen.sessions.bar
        if bar.words and bar.words != self._state.text:
            self._state.text, self._state.chosen = bar.words, None
        opened = await screen.gemtui.push_screen_wait(
            SearchScreen(
                search,
                snapshot,
                screen.sessions.project,
                self._state,
                home=screen.store.home,
                indexing=self._feed.progress,
                marks=screen.marks.marks,
            )
        )
        bar.kept = self._state.text
        if opened is not None:
            self._show(opened)
            screen.navigation.add_return(opened.hit.file, self._back)
        await asyncio.to_thread(self._feed.rest)

    def _back(self) -> None:
        self.screen.sessions.focus()
        self.action_search()


class WrittenFiles(SessionsPart):
    """Shows the files that sessions wrote, and opens the session that made a write."""

    def __init__(self, screen: SessionsPane) -> None:
        super().__init__(screen)
        self._state: FilesState | None = None
        self._open: WritesScreen[Any] | None = None

    def use_snapshot(self, snapshot: Snapshot) -> None:
        """Pass a newer state of the session store to the open screen with writes, if any."""
        if self._open is not None:
            self._open.use_snapshot(snapshot)

    def show_history(self, path: PurePath) -> None:
        """Show all writes to a file on a screen of their own, and open the chosen session.

        This works from any screen.
        """
        from gemtui.ui.sessions.history_screen import HistoryPosition

        self._show_history(HistoryPosition(path))

    @background("writes", exclusive=True)
    async def _show_history(self, history: HistoryPosition) -> None:
        from gemtui.ui.sessions.history_screen import HistoryScreen

        store, marks = self.screen.store, self.screen.marks.marks
        if store.snapshot is not None:
            shown = HistoryScreen(store.snapshot, store.home, marks, history)
            await self._read_write(shown, lambda: self._show_history(history))

    def action_files(self) -> None:
        """Show the files of the open session or, from the list, those of all sessions."""
        from gemtui.ui.sessions.files_screen import FilesState

        screen = self.screen
        everywhere = screen.sessions.view.everywhere
        if screen.reading and screen.chosen is not None:
            self._show_files(FilesState(everywhere=everywhere, session=screen.chosen.id))
            return
        if self._state is None:
            self._state = FilesState(everywhere=everywhere)
        self._show_files(self._state)

    @background("writes", exclusive=True)
    async def _show_files(self, state: FilesState) -> None:
        from gemtui.ui.sessions.files_screen import FilesScreen

        screen, store = self.screen, self.screen.store
        if store.snapshot is None:
            return
        project, marks = screen.sessions.project, screen.marks.marks
        shown = FilesScreen(store.snapshot, store.home, marks, project, state)
        await self._read_write(shown, lambda: self._show_files(state))

    async def _read_write(self, shown: WritesScreen[Any], again: Callable[[], object]) -> None:
        """Let the user choose a write on the screen `shown`, and open its session.

        `again`: a function that opens the screen again, called when the user goes back from the
        session.
        """
        screen, app = self.screen, self.screen.gemtui
        mode = app.current_mode
        self._open = shown
        try:
            write = await app.push_screen_wait(shown)
        finally:
            if self._open is shown:
                self._open = None
        if write is None:
            return
        deeper = app.screen is screen and screen.reading
        await app.switch_mode(app.DEFAULT_MODE)
        left = screen.navigation.return_point() if deeper else screen.sessions.focus
        screen.navigation.show(write.source, deeper=deeper)
        screen.pane.go_to_block(write.message, write.block)

        async def back() -> None:
            left()
            await app.switch_mode(mode)
            again()

        screen.navigation.add_return(write.source, lambda: screen.call_later(back))


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

    @property
    def complaint(self) -> str:
        """Why nothing can be searched, as a sentence; "" if it can."""
        from gemtui.search import NO_ENGINE, has_engine

        return "" if has_engine() else f"{NO_ENGINE[0].upper()}{NO_ENGINE[1:]}."

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

        Without a cache folder or an engine, there is no index.
        """
        if self._begun or self._closed or self._cache is None or self.complaint:
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
        trim_heap()

    def close(self) -> None:
        """Close the search's files and end the indexing process, both in the background."""
        self._closed = True
        loop = asyncio.get_running_loop()
        if self._search is not None:
            loop.run_in_executor(None, self._search.close)
        if self._indexer is not None:
            loop.run_in_executor(None, self._indexer.stop)
