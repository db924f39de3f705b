"""The sessions pane: the list, with the transcript beside it or in its place."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.events import DescendantFocus, Resize, ScreenResume

from gemtui.config import Config, Scope
from gemtui.files import is_folder
from gemtui.paths import left_off_file, marks_file, typed_path
from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.summary import named
from gemtui.sessions.store.store import StoreState
from gemtui.text import clean_line, counted, short_path
from gemtui.ui.draw.lines import fit_end
from gemtui.ui.kit.app_base import start_worker
from gemtui.ui.kit.bars import BarLine, FooterLine, StatusLine
from gemtui.ui.kit.keys import BY_ID, Where, bindings
from gemtui.ui.kit.messages import (
    BackRequested,
    FileRequested,
    HistoryRequested,
    SubagentRequested,
    TranscriptMoved,
)
from gemtui.ui.kit.screens import DIALOG
from gemtui.ui.sessions.keeping import SessionKeeping
from gemtui.ui.sessions.left_off import LeftOff
from gemtui.ui.sessions.list import SessionList
from gemtui.ui.sessions.list_pane import SessionPane
from gemtui.ui.sessions.live_sessions import LiveSessions
from gemtui.ui.sessions.marks import MarksFeed
from gemtui.ui.sessions.notice import EmptyStore
from gemtui.ui.sessions.pane_base import Navigation, SessionsPane, UndoStack
from gemtui.ui.sessions.read_pane import ReadPane
from gemtui.ui.sessions.searching import SessionSearch, WrittenFiles
from gemtui.ui.sessions.session_keys import Continuing, MarkKeys, SessionKeys
from gemtui.ui.sessions.store_feed import OpenStore

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import Start

PATH_ROOM = 28
"""Maximum width in cells of a path in the header."""
SMALLEST = (60, 15)
"""Columns and lines below which a hint says that the window is too small."""


class SessionsScreen(SessionsPane):
    """The sessions pane.

    Its parts handle the keys and are told about changes to the store.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.SESSIONS)
    AUTO_FOCUS = ""

    def __init__(self, start: Start, config: Config) -> None:
        super().__init__()
        self.start, self._config = start, config
        self._seen = False
        self.left_off = LeftOff() if start.demo else LeftOff.read(left_off_file())
        self.store = OpenStore(start, show=self._take, changed=self._changed)
        self.marks = MarksFeed(marks_file(), self._take_marks)
        self.done = UndoStack()
        self.navigation = Navigation(self)
        self.files = WrittenFiles(self)
        self._keeping = SessionKeeping(self)
        self._search = SessionSearch(self)
        self._live = live = LiveSessions(self)
        self._continuing = Continuing(self, live)
        self.add_parts(
            self.navigation,
            self.files,
            self._keeping,
            self._search,
            live,
            self._continuing,
            MarkKeys(self),
            SessionKeys(self, live),
        )

    def compose(self) -> ComposeResult:
        # The classes for the screen's size are set before the first layout, so that the widgets are
        # styled only once.
        width, height = self.app.size
        for size, points in (
            (width, self.app.HORIZONTAL_BREAKPOINTS),
            (height, self.app.VERTICAL_BREAKPOINTS),
        ):
            self.add_class(*[name for least, name in points or () if least <= size][-1:])
        yield BarLine(id="header")
        with Horizontal(id="panes"):
            yield SessionPane(self.start.project, id="list-pane")
            yield ReadPane(
                self.left_off,
                open_thoughts=not self._config.fold_thoughts,
                at_once=self.start.session is not None,
                id="read-pane",
            )
        yield EmptyStore()
        yield StatusLine(gives_way="left")
        yield FooterLine()

    def on_screen_resume(self, event: ScreenResume) -> None:
        # When the screen is shown for the first time, its styles have already been computed.
        event.refresh_styles = event.refresh_styles and self._seen
        self._seen = True
        self._resized()

    def on_mount(self) -> None:
        config = self._config
        self.sessions.sort(config.sort)
        self.sessions.group(config.group)
        if config.scope is Scope.EVERYWHERE:
            self.sessions.scope(everywhere=True)
        self._return_to_list()
        self.gemtui.signs_changed.subscribe(self, lambda _: self._update_header())
        self.marks.use_if_read()
        if self.marks.ready.is_set():
            self.store.show_first()
        start_worker(self, self.marks.run, group="marks")
        self._keeping.follow()
        self._follow_store()
        if self.start.session is None:
            self.sessions.focus()
        else:
            self.navigation.show(self.start.session)
        # the focus was set before Textual had the styles that depend on it
        self.call_after_refresh(self.update_node_styles)

    @on(ReadPane.Ready)
    def _take_keys(self) -> None:
        if self.pane.ready.is_set():
            super()._take_keys()

    async def on_unmount(self) -> None:
        """Close the files used by the search, and wait until everything has been saved."""
        self._search.close()
        await self.marks.close()
        if not self.start.demo:
            with suppress(OSError):
                await asyncio.to_thread(self.left_off.save, left_off_file())

    def _return_to_list(self) -> None:
        """Show the list as the user left it when the app was started in this folder."""
        left = self.left_off.lists.get(str(self.start.project))
        if left is not None:
            view = replace(
                self.sessions.view,
                everywhere=left.everywhere or self.start.project is None,
                sort=left.sort,
                reverse=left.reverse,
            )
            self.sessions.return_to(view, left.row)

    def _remember_place(self) -> None:
        self.pane.remember_place()
        row = self.sessions.chosen_key
        if isinstance(row, str):
            self.left_off.leave_list(str(self.start.project), self.sessions.view, row)

    # --- the store -----------------------------------------------------------------------------

    @work(exclusive=True, group="store")
    async def _follow_store(self) -> None:
        project = None if self.sessions.view.everywhere else self.start.project
        await self.store.follow(project, self.marks.ready, prepare=self.sessions.prepare)

    def _take(self, before: Snapshot | None, snapshot: Snapshot) -> None:
        """Show a newer state of the session store, unless the app is about to exit.

        `before`: the previous state, or None at first.
        """
        if not self.app.is_running:
            return
        first = before is None
        self.sessions.show_sessions(snapshot)
        if snapshot.renewed is not None and (before is None or before.renewed is None):
            self.gemtui.show_message(snapshot.renewed.what)
        project = str(self.start.project)
        if first and not any(
            each.project == project and not each.hidden for each in snapshot.sessions
        ):
            self.sessions.scope(everywhere=True)
        if first and not self.start.demo:
            self._live.follow()
        self.navigation.highlight_again()
        self.pane.update_sessions(snapshot.sessions)
        self._show_empty(snapshot)
        self.update_status()
        self._search.use_snapshot(snapshot)
        self.files.use_snapshot(snapshot)
        if snapshot.complete and (before is None or not before.complete):
            self._keeping.archive_new()
        if snapshot.complete:
            self._continuing.look_for_checkpoints()

    def _changed(self, paths: frozenset[Path], polling: str | None) -> None:
        if self.app.is_running:
            self._keeping.changed(paths)
            self.pane.polling = polling
            self.pane.changed(paths)
            self._search.changed()

    def _show_empty(self, snapshot: Snapshot) -> None:
        nothing = snapshot.complete and snapshot.state is not StoreState.OK
        empty = nothing and self.pane.summary is None
        notice = self.query_one(EmptyStore)
        if empty:
            notice.explain(self.store.home, snapshot)
        if empty is not self.has_class("-empty"):
            self.set_class(empty, "-empty")
            (notice if empty else self.sessions).focus()

    @on(EmptyStore.ElsewhereRequested)
    @work(exclusive=True, group=DIALOG)
    async def _look_elsewhere(self) -> None:
        """Ask for a different folder with Gemini CLI sessions, and show those."""
        from gemtui.ui.kit.dialogs import AskScreen

        asked = AskScreen(
            clean_line("Gemini CLI's folder"), value=str(self.store.home), problem=_no_home
        )
        typed = await self.gemtui.push_screen_wait(asked)
        if typed is not None:
            self.store.home = _home(typed)
            self._search.go_to(self.store.home)
            self._keeping.follow()
            self.action_refresh()

    @on(EmptyStore.AgainRequested)
    def action_refresh(self) -> None:
        self._update_header()
        self._follow_store()

    def _take_marks(self) -> None:
        """Show the user's marks in the list, the open session and the search."""
        if not (self.is_attached and self.app.is_running):
            return
        self.sessions.mark(self.marks.marks)
        self.pane.mark(self.marks.marks)
        self.update_status()
        self._search.mark()

    # --- navigation ----------------------------------------------------------------------------

    @on(BackRequested)
    def go_back(self) -> bool:
        """Go back one step; return False if the list already has the focus."""
        return self.navigation.go_back()

    @on(SessionList.SessionHighlighted)
    def _highlighted(self, event: SessionList.SessionHighlighted) -> None:
        self.navigation.stop_preview()
        self.refresh_bindings()
        if event.summary is not None:
            self.navigation.preview(event.summary)
        elif not self.reading and not self.sessions.rows.shown:
            self.pane.clear()

    @on(SessionList.Arranged)
    def _arranged(self) -> None:
        self._search.follow_list()
        self._update_header()
        self.update_status()

    @on(SessionList.HitOpened)
    def _hit_opened(self, event: SessionList.HitOpened) -> None:
        self._search.open_hit(event.hit)

    @on(SessionList.SessionOpened)
    def _opened(self, event: SessionList.SessionOpened) -> None:
        self.navigation.show(event.summary)

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Record which pane has the focus; a narrow terminal shows only that one."""
        if self.pane in event.widget.ancestors:
            self.reading = True
        elif self.query_one(SessionPane) in event.widget.ancestors:
            self.reading = False

    def watch_reading(self, reading: bool) -> None:
        """Show the pane that has the focus, and update the status line and window title."""
        self.set_class(reading, "-reading")
        if not reading:
            self.navigation.forget_highlight()
        self.update_status()

    # --- requests from the transcript ----------------------------------------------------------

    @on(FileRequested)
    def _file(self, event: FileRequested) -> None:
        from gemtui.ui.kit.editor import edit_file

        summary = self.pane.summary
        edit_file(self.gemtui, event.path, event.line, None if summary is None else summary.folder)

    @on(HistoryRequested)
    def _history(self, event: HistoryRequested) -> None:
        from gemtui.sessions.written_files import normalized_path

        event.stop()
        summary = self.pane.summary
        project = None if summary is None else summary.project
        self.files.show_history(normalized_path(project, event.path))

    @on(SubagentRequested)
    def _subagent(self, event: SubagentRequested) -> None:
        found = next((each for each in self.store.sessions if each.id == event.agent_id), None)
        if found is None:
            self.gemtui.show_message("This subagent's session is not stored.", problem=True)
        else:
            self.navigation.show(found, deeper=True)

    # --- texts ---------------------------------------------------------------------------------

    def key_label(self, action: str) -> str | None:
        """Return what the undo of a prompt does in the list, or None for any other action."""
        return "Undo last prompt" if action == "undo_to" and not self.reading else None

    @on(Resize)
    def _size_changes(self) -> None:
        # The screen's own handler, which sets the size and its classes, is called after this one.
        self.call_next(self._resized)

    def _resized(self) -> None:
        """Update the texts that depend on the size of the window.

        Nothing else may notice a new size: if the window becomes small and large again before the
        screen is laid out, no widget has changed.
        """
        self._update_header()
        self.update_status()

    def _update_header(self) -> None:
        left = self.gemtui.tabs("app.sessions")
        project = self.sessions.project
        folder = "all projects" if project is None else self._short(project)
        store = "demo" if self.start.demo else self._short(self.store.home)
        right = [Content.styled(store, "dim"), Content(folder)]
        self.header.show_parts(left, right)

    def _short(self, path: Path) -> str:
        """Return a path; if it is too long for the header, its start is cut off."""
        room = min(PATH_ROOM, self.size.width // 4)
        return fit_end(short_path(path), room, self.gemtui.glyphs.ellipsis)

    @on(ReadPane.SessionChanged)
    @on(TranscriptMoved)
    def update_status(self) -> None:
        """Update the status line and the window title, and remember the place."""
        self._remember_place()
        words, position = [*self._store_words()], [""]
        if self.reading or self.side_by_side:
            words += self.pane.words
            position += self.pane.position
        self.status.show_parts(
            [Content(word) for word in words], [Content(word) for word in position]
        )
        summary = self.pane.summary if self.reading else None
        name = "Sessions" if summary is None else named(summary, self.marks.marks).title
        self.gemtui.name_window(clean_line(f"gemtui: {name}"))

    def _store_words(self) -> Iterator[str]:
        if self.size.width < SMALLEST[0] or self.size.height < SMALLEST[1]:
            yield f"small window: needs {SMALLEST[0]} x {SMALLEST[1]}"
        snapshot = self.store.snapshot
        if snapshot is None:
            yield "reading"
            return
        if selection := self.sessions.selection.words:
            yield selection
            keys = [BY_ID[f"sessions.{action}"] for action in ("export", "delete", "compare")]
            yield ", ".join(f"{key.footer() or '^p'} {key.label.lower()}" for key in keys)
        if self.sessions.hits_below and not self.reading:
            yield f"inside sessions: {self.sessions.hits_below}"
        if not snapshot.complete:
            yield f"{snapshot.done:,} of {counted(snapshot.total, 'file')} checked"
        if snapshot.unreadable:
            files = counted(len(snapshot.unreadable), "file")
            yield f"{self.gemtui.glyphs.warning} {files} can't be read"
        if self.marks.problem is not None:
            yield f"{self.gemtui.glyphs.warning} marks can't be read"
        yield from self._keeping.words
        if self.pane.polling is not None:
            yield clean_line(self.pane.polling)


def _home(text: str) -> Path:
    """Return the folder that the user typed, or its `.gemini` subfolder if it has one."""
    path = typed_path(text.strip()).absolute()
    return path / ".gemini" if is_folder(path / ".gemini") else path


def _no_home(text: str) -> str:
    return "" if text.strip() and is_folder(_home(text)) else "Folder not found."
