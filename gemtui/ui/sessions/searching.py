"""Key actions that open the full-text search and the list of written files.

If the user opens a session there, going back from it returns to the search or the list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.ui.kit.screens import background, dialog
from gemtui.ui.sessions.navigation import Navigation
from gemtui.ui.sessions.pane_base import SessionsPane, SessionsPart
from gemtui.ui.sessions.search_feed import SearchFeed

if TYPE_CHECKING:
    from gemtui.ui.sessions.files_screen import Files
    from gemtui.ui.sessions.history_screen import HistoryPosition
    from gemtui.ui.sessions.search_screen import Searching, SearchScreen
    from gemtui.ui.sessions.writes_screen import WritesScreen


class SessionSearch(SessionsPart):
    """The full-text search, whose index is kept up to date while the app is running."""

    def __init__(self, screen: SessionsPane, navigation: Navigation) -> None:
        super().__init__(screen)
        self._navigation = navigation
        self._feed = self._feed_of(screen.store.home)
        self._searching: Searching | None = None

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

    @dialog
    async def action_search(self) -> None:
        from gemtui.ui.sessions.search_screen import Searching, SearchScreen

        screen = self.screen
        if (snapshot := screen.store.snapshot) is None:
            return
        search = self._feed.search()
        if self._searching is None:
            self._searching = Searching(everywhere=screen.sessions.view.everywhere)
        place = await screen.gemtui.push_screen_wait(
            SearchScreen(
                search,
                snapshot,
                screen.start.project,
                self._searching,
                indexing=self._feed.progress,
                marks=screen.marks.marks,
            )
        )
        if place is not None:
            screen.show(place.hit.file)
            screen.pane.go_to_hit(place.hit.message, place.hit.block, place.query, place.pattern)
            self._navigation.add_return(place.hit.file, self._back)
        await asyncio.to_thread(self._feed.rest)

    def _back(self) -> None:
        self.screen.sessions.focus()
        self.action_search()


class WrittenFiles(SessionsPart):
    """Shows the files that sessions wrote, and opens the session that made a write."""

    def __init__(self, screen: SessionsPane, navigation: Navigation) -> None:
        super().__init__(screen)
        self._navigation = navigation
        self._files: Files | None = None
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

    @background("writes", exclusive=True)
    async def action_files(self) -> None:
        from gemtui.ui.sessions.files_screen import Files, FilesScreen

        screen, store = self.screen, self.screen.store
        if store.snapshot is None:
            return
        if self._files is None:
            self._files = Files(everywhere=screen.sessions.view.everywhere)
        project, marks = screen.start.project, screen.marks.marks
        shown = FilesScreen(store.snapshot, store.home, marks, project, self._files)
        await self._read_write(shown, self.action_files)

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
        left = self._navigation.return_point() if deeper else screen.sessions.focus
        screen.show(write.source, deeper=deeper)
        screen.pane.go_to_block(write.message, write.block)

        async def back() -> None:
            left()
            await app.switch_mode(mode)
            again()

        self._navigation.add_return(write.source, lambda: screen.call_later(back))
