"""The sessions pane: the list, and the transcript beside it or over it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

from msgspec.structs import replace
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.events import DescendantFocus, ScreenResume
from textual.reactive import reactive
from textual.timer import Timer

from gemtui.config import Config, Ring, Scope
from gemtui.paths import current_folder, marks_file
from gemtui.sessions.catalog import Snapshot
from gemtui.sessions.live import GONE, LiveSession, LiveState
from gemtui.sessions.preload import StorePreload
from gemtui.sessions.store import Problem, SessionKind, StoreState
from gemtui.sessions.summary import Flag, Summary
from gemtui.text import Clean, clean_line, short_path
from gemtui.ui.draw.lines import fit_end, own
from gemtui.ui.kit.bars import BarLine, FooterLine, StatusLine
from gemtui.ui.kit.dialog_guard import DIALOG, DialogGuardScreen
from gemtui.ui.kit.keys import BY_ID, Where, bindings
from gemtui.ui.kit.messages import (
    BackRequested,
    ContinueRequested,
    FileRequested,
    HistoryRequested,
    NewRunRequested,
    RawRequested,
    SubagentRequested,
    TranscriptMoved,
)
from gemtui.ui.kit.notice import EmptyStore
from gemtui.ui.sessions.list import SessionList
from gemtui.ui.sessions.list_pane import SessionPane
from gemtui.ui.sessions.marking import Marker, Marking, named
from gemtui.ui.sessions.marks_feed import MarksFeed
from gemtui.ui.sessions.read_pane import ReadPane
from gemtui.ui.sessions.search_feed import SearchFeed
from gemtui.ui.sessions.store_feed import SETTLE, StoreFeed
from gemtui.ui.sessions.undo_stack import UndoStack
from gemtui.ui.sessions.vault_feed import VaultFeed

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase, Start
    from gemtui.ui.sessions.checkpoint_marks import CheckpointedSessions
    from gemtui.ui.sessions.files_screen import Files
    from gemtui.ui.sessions.history_screen import HistoryPosition
    from gemtui.ui.sessions.live_question import LiveQuestionScreen
    from gemtui.ui.sessions.search_screen import Searching, SearchScreen
    from gemtui.ui.sessions.writes_screen import WritesScreen
    from gemtui.ui.undo.start import Number

PREVIEW_DELAY = 0.08
"""Seconds the cursor rests on a session before it is shown beside the list."""
MARKS_DELAY = 0.2
"""Seconds that the first rows wait for the user's marks at most."""
PATH_ROOM = 28
"""Characters of a path on the first line."""
_ABOUT_A_SESSION = frozenset(
    {"other_pane", "zoom", "info", "go_on", "undo_to", "redo", "fork", "review"}
)
_ABOUT_SESSIONS = frozenset({"export", "patch", "delete", "marks", "pin", "archive"})
ROOM = (60, 15)
"""Columns and lines below which we say that it is tight."""


class _WayBack(NamedTuple):
    """How esc leads from a session, by the name of its file, to what led there."""

    of: str
    go: Callable[[], object]


class SessionsScreen(DialogGuardScreen[None]):
    """List and transcript; a narrow terminal shows one of them, and `reading` says which."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.SESSIONS)
    AUTO_FOCUS = ""

    reading: reactive[bool] = reactive(False, init=False)

    def __init__(self, start: Start, config: Config) -> None:
        super().__init__()
        self._start, self._config = start, config
        self._home = start.home
        self._opening = start.opening
        self._snapshot: Snapshot | None = None
        self._resting: Timer | None = None
        self._to_highlight: Summary | None = None
        self._seen = False
        self._done = UndoStack()
        self._marks = MarksFeed(marks_file(), self._take_marks)
        self._feed: StoreFeed | None = None
        self._vault = VaultFeed(self._home, self._update_status)
        self._search = SearchFeed(self._home, start.cache, self._take_progress)
        self._searching: Searching | None = None
        self._ways_back: list[_WayBack] = []
        self._files: Files | None = None
        self._writes: WritesScreen[Any] | None = None
        self._live: tuple[LiveSession, ...] | None = None
        self._checkpointed: CheckpointedSessions | None = None

    def compose(self) -> ComposeResult:
        """Header, the two panes, what stands there instead of them, status, footer."""
        self.add_class(*self._breakpoints())
        ascii, glyphs = self._config.ascii, self.gemtui.glyphs
        yield BarLine(id="header", mark=glyphs.ellipsis)
        with Horizontal(id="panes"):
            yield SessionPane(self._start.project, id="list-pane")
            open_thoughts = not self._config.fold_thoughts
            yield ReadPane(glyphs=glyphs, open_thoughts=open_thoughts, id="read-pane")
        yield EmptyStore(ascii=ascii)
        yield StatusLine(mark=glyphs.ellipsis, gives_way="left")
        yield FooterLine(ascii=ascii)

    @property
    def gemtui(self) -> AppBase:
        """The app, with its type."""
        return cast("AppBase", self.app)

    @property
    def _marker(self) -> Marker:
        return Marker(self.gemtui, self._marks, self._done)

    @property
    def sessions(self) -> SessionList:
        """The list of sessions."""
        return self.query_one(SessionList)

    @property
    def pane(self) -> ReadPane:
        """The transcript with its surroundings."""
        return self.query_one(ReadPane)

    @property
    def side_by_side(self) -> bool:
        """Whether list and transcript are both in sight."""
        return not self.has_class("-narrow") and not self.has_class("-zoom")

    @property
    def read(self) -> bool:
        """Whether the whole store has been read."""
        return self._snapshot is not None and self._snapshot.complete

    def _breakpoints(self) -> Iterator[str]:
        """The classes of this width, set before there are widgets that would be styled twice."""
        width, height = self.app.size
        for size, points in (
            (width, self.app.HORIZONTAL_BREAKPOINTS),
            (height, self.VERTICAL_BREAKPOINTS),
        ):
            yield from [name for least, name in points or () if least <= size][-1:]

    def on_screen_resume(self, event: ScreenResume) -> None:
        """What goes on in the other modes may have changed meanwhile."""
        event.refresh_styles = event.refresh_styles and self._seen  # the first are fresh
        self._seen = True
        self._update_header()

    # --- the store -----------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Say where we are; read the store; open what we were started with."""
        config = self._config
        self.sessions.sort(config.sort)
        self.sessions.group(config.group)
        if config.scope is Scope.EVERYWHERE:
            self.sessions.scope(everywhere=True)
        self.gemtui.signs_changed.subscribe(self, lambda _: self._update_header())
        self._follow_marks()
        self._follow_vault()
        self._follow_store()
        if self._start.session is None:
            self.sessions.focus()
        else:
            self.show(self._start.session)
        # the focus came before Textual knew of styles that follow it
        self.call_after_refresh(self.update_node_styles)

    @work(exclusive=True, group="store")
    async def _follow_store(self) -> None:
        self._snapshot = None
        project = None if self.sessions.view.everywhere else self._start.project
        opening, self._opening = self._opening, None
        if opening is None:
            opening = StorePreload(self._home, cache=self._start.cache, project=project)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._marks.ready.wait(), MARKS_DELAY)
        self._feed = StoreFeed(opening, show=self._take, changed=self._changed)
        await self._feed.run()

    def _take(self, snapshot: Snapshot) -> None:
        """Show a newer state of the store, unless the app is just ending."""
        if not self.app.is_running:
            return
        before, self._snapshot = self._snapshot, snapshot
        first = before is None
        self.sessions.show(snapshot)
        if snapshot.renewed is not None and (before is None or before.renewed is None):
            self.gemtui.say(snapshot.renewed.what)
        if first and not self._has_project(snapshot):
            self.sessions.scope(everywhere=True)
        if first and not self._start.demo:
            self._follow_live()
        self._highlight()
        self.pane.take(snapshot.sessions)
        self._show_empty(snapshot)
        self._update_status()
        for over in (self._open_search, self._writes):
            if over is not None:
                over.take(snapshot)
        if snapshot.complete and not (before is not None and before.complete):
            self._vault.look()
        if snapshot.complete:
            self._search.keep_index()
            self._look_for_checkpoints()

    @work(exclusive=True, group="checkpoints")
    async def _look_for_checkpoints(self) -> None:
        """Mark the sessions that have checkpoints, in the list and where one is read."""
        await asyncio.sleep(SETTLE)
        if self._checkpointed is None:
            from gemtui.ui.sessions.checkpoint_marks import CheckpointedSessions

            self._checkpointed = CheckpointedSessions()
        found = await asyncio.to_thread(self._checkpointed.read)
        if found is not None:
            self.sessions.take_undoable(found)
            self.pane.take_undoable(found)

    @work(exclusive=True, group="vault")
    async def _follow_vault(self) -> None:
        """Keep what is stored, where the vault is on; what is invented is not kept."""
        self._vault = VaultFeed(self._home, self._update_status)
        if not self._start.demo:
            await self._vault.run()

    @work(group="marks")
    async def _follow_marks(self) -> None:
        await self._marks.run()

    def name_of(self, session: str) -> str | None:
        """The user's own name for the session with this id; None = it has none."""
        mark = self._marks.marks.get(session)
        return None if mark is None else mark.name

    def summaries(self) -> Sequence[Summary]:
        """All stored sessions, as far as they have been found."""
        return () if self._snapshot is None else self._snapshot.sessions

    def kept(self) -> list[Summary]:
        """The sessions that only the vault has, newest first."""
        sessions = () if self._snapshot is None else self._snapshot.sessions
        kept = [each for each in sessions if Flag.KEPT in each.flags and not each.hidden]
        return [named(each, self._marks.marks) for each in kept]

    def _take_marks(self) -> None:
        """Show the user's marks as they are now."""
        if not (self.is_attached and self.app.is_running):
            return
        marks = self._marks.marks
        self.sessions.mark(marks)
        self.pane.mark(marks)
        self._update_status()
        if (search := self._open_search) is not None:
            search.mark(marks)

    # --- what sessions do right now ------------------------------------------------------------

    @work(exclusive=True, group="live")
    async def _follow_live(self) -> None:
        await asyncio.sleep(SETTLE)
        from gemtui.ui.sessions.live_feed import follow_live

        await follow_live(self._take_live)

    def _take_live(self, live: tuple[LiveSession, ...]) -> None:
        """Show what sessions do, and ring where one begins to wait that is not on the screen."""
        if not self.app.is_running:
            return
        before, self._live = self._live, live
        self.query_one(SessionPane).take_live(live, self.gemtui.glyphs)
        self.pane.take_live({each.session: each.state for each in live})
        if (screen := self.app.screen).id == "live-question":
            cast("LiveQuestionScreen", screen).take(live)
        known = {(each.session, each.question) for each in before or ()}
        for each in _waiting(live) if before is not None else ():
            by_run = each.question is not None and each.question.run  # which rings itself
            if (each.session, each.question) not in known and not by_run:
                self._tell(each, seen=self._on_screen(each))

    def _on_screen(self, live: LiveSession) -> bool:
        """Whether somebody looks at the session: at its row, or at its transcript."""
        if not self.app.app_focus or not self.is_active:
            return False
        read = self.pane.summary if self.reading or self.side_by_side else None
        shown = self.side_by_side or not self.reading
        return (read is not None and read.id == live.session) or (
            shown and self.sessions.sees(live.session)
        )

    @work(group="ring")
    async def _tell(self, live: LiveSession, *, seen: bool) -> None:
        """Ring, unless it is seen here or another gemtui has rung."""
        from gemtui.sessions.live import LiveFolder
        from gemtui.ui.sessions.live_words import waiting_notice

        if self._config.ring is Ring.OFF and not seen:
            return
        if not await asyncio.to_thread(LiveFolder().claim, live) or seen:
            return
        session = self._stored(live.session)
        name = "" if session is None else named(session, self._marks.marks).title
        self.gemtui.ring(waiting_notice(live, name))

    def _live_of(self, summary: Summary) -> LiveSession | None:
        """What hooks tell of a session."""
        return next((each for each in self._live or () if each.session == summary.id), None)

    def _stored(self, id: str) -> Summary | None:
        """The session with this id, if it is in the store."""
        sessions = self._snapshot.sessions if self._snapshot is not None else ()
        return next((each for each in sessions if each.id == id and not each.hidden), None)

    @work(exclusive=True, group=DIALOG)
    async def action_waiting(self) -> None:
        """What the session asks that is chosen, else the next one; from there on to all others."""
        from gemtui.sessions.live import terminal_of
        from gemtui.ui.sessions.live_question import LiveQuestionScreen

        asking = self._asking(after=None)
        if asking is None:
            self.gemtui.say(await asyncio.to_thread(_none_waits))
        while asking is not None:
            self._highlight_everywhere(asking.session)
            tty = await asyncio.to_thread(terminal_of, asking.pid)
            shown = LiveQuestionScreen(asking, tty=tty, ascii=self._config.ascii)
            more = await self.app.push_screen_wait(shown)
            asking = self._asking(after=asking.session) if more else None

    def _asking(self, *, after: str | None) -> LiveSession | None:
        """A session that waits: the chosen one, or the one behind `after`, else the first."""
        waiting = _waiting(self._live or ())
        ids = [each.session for each in waiting]
        chosen = None if self._chosen is None else self._chosen.id
        if after is not None:
            at = ids.index(after) + 1 if after in ids else 0
        else:
            at = ids.index(chosen) if chosen in ids else 0
        return waiting[at % len(waiting)] if waiting else None

    def _highlight_everywhere(self, id: str) -> None:
        """Put the list's cursor on a session, whatever the list leaves out now."""
        session = self._stored(id)
        if session is None or (self._chosen is not None and self._chosen.id == id):
            return
        self.sessions.focus()
        if not self.sessions.highlight(session):
            self.sessions.filter("")
            self.sessions.scope(everywhere=True)
            self.sessions.highlight(session)

    def _take_progress(self) -> None:
        attached = self.is_attached and self.app.is_running  # it may come while the app ends
        progress = self._search.progress
        if attached and progress is not None and (search := self._open_search) is not None:
            search.indexing(progress)

    @property
    def _open_search(self) -> SearchScreen | None:
        screen = self.app.screen
        return screen if screen.id == "search" else None  # type: ignore[return-value]

    def _has_project(self, snapshot: Snapshot) -> bool:
        wanted = str(self._start.project)
        return any(each.project == wanted and not each.hidden for each in snapshot.sessions)

    def _show_empty(self, snapshot: Snapshot) -> None:
        nothing = snapshot.complete and snapshot.state is not StoreState.OK
        empty = nothing and self.pane.summary is None
        notice = self.query_one(EmptyStore)
        if empty:
            notice.explain(self._home, snapshot)
        if empty is not self.has_class("-empty"):
            self.set_class(empty, "-empty")
            (notice if empty else self.sessions).focus()

    def _changed(self, paths: frozenset[Path], polling: str | None) -> None:
        if self.app.is_running:
            self._vault.changed(paths)
            self.pane.polling = polling
            self.pane.changed(paths)
            self._search.look()

    # --- moving about --------------------------------------------------------------------------

    def show(self, summary: Summary, *, deeper: bool = False) -> None:
        """Open a session and focus its transcript.

        `deeper`: the way back leads to the present session.
        """
        if self._resting is not None:
            self._resting.stop()
        if not deeper:
            self._ways_back.clear()
        self._to_highlight = summary
        self._highlight()
        self.pane.open(summary, deeper=deeper)
        self.reading = True
        self.call_after_refresh(lambda: self.pane.front.focus())

    def _highlight(self) -> None:
        """Put the list's cursor on what is read, as soon as it is listed."""
        if self._to_highlight is not None and self.sessions.highlight(self._to_highlight):
            self._to_highlight = None

    @on(SessionList.Highlighted)
    def _highlighted(self, event: SessionList.Highlighted) -> None:
        if self._resting is not None:
            self._resting.stop()
        summary = event.summary
        self.refresh_bindings()
        if summary is None and not self.reading and not self.sessions.rows.shown:
            self.pane.clear()
        elif summary is not None and self.side_by_side and not self.reading:
            self._resting = self.set_timer(PREVIEW_DELAY, lambda: self.pane.open(summary))

    @on(SessionList.Opened)
    def _opened(self, event: SessionList.Opened) -> None:
        self.show(event.summary)

    @on(BackRequested)
    def go_back(self) -> bool:
        """From a subagent to its parent, from the transcript to the list; False if we are there.

        To what led to this session, where that was something else.
        """
        if self.reading and self._leads_back():
            self._ways_back.pop().go()
        elif self.reading and self._back():
            pass
        elif self.reading and (parent := self.pane.parent_session) is not None:
            self._leave_for(parent)
        elif self.has_class("-zoom"):
            self.action_zoom()
        elif not self.reading or self.has_class("-empty"):
            return False
        else:
            self.sessions.focus()
        return True

    def _leads_back(self) -> bool:
        """Whether something else than the list or a session led to the one that is read."""
        return bool(self._ways_back) and self._ways_back[-1].of == self._read_file

    @property
    def _read_file(self) -> str:
        """The file of the session that is read; "" = none."""
        return "" if self.pane.summary is None else self.pane.summary.name

    def _back(self) -> bool:
        """To the session that was left for this one; False if there is none."""
        if self.pane.back():
            self._to_highlight = self.pane.summary
            self._highlight()
            return True
        return False

    def _leave_for(self, parent: Summary) -> None:
        """From a subagent that was not opened from its card, to that card."""
        subagent = self.pane.summary
        self.show(parent)
        if subagent is not None:
            self.pane.go_to_call(subagent.id)

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """The pane with the focus is the one a narrow terminal shows."""
        if self.pane in event.widget.ancestors:
            self.reading = True
        elif self.query_one(SessionPane) in event.widget.ancestors:
            self.reading = False

    def watch_reading(self, reading: bool) -> None:
        """Show the pane, and in the window's title what is read."""
        self.set_class(reading, "-reading")
        if not reading:
            self._to_highlight = None
        self._update_status()

    def can(self, action: str) -> bool:
        """Whether a key does something now: most are about a session, and there may be none."""
        if action == "other_pane" and self.reading:
            return not self.has_class("-empty")
        if action == "restore":
            return self._chosen is not None and Flag.KEPT in self._chosen.flags
        if action == "undo":
            return self._done.last is not None
        if action in _ABOUT_SESSIONS:
            return self._chosen is not None or bool(self.sessions.selection)
        return action not in _ABOUT_A_SESSION or self._chosen is not None

    def action_other_pane(self) -> None:
        """To the other pane."""
        if self.reading:
            self.sessions.focus()
        elif (summary := self.sessions.highlighted) is not None:
            self.show(summary)

    def action_zoom(self) -> None:
        """The transcript on the whole width, or beside the list again."""
        if not self.reading:
            self.action_other_pane()
        self.toggle_class("-zoom")
        self.pane.view.spread(whole=self.has_class("-zoom"))

    # --- doing things --------------------------------------------------------------------------

    @property
    def _chosen(self) -> Summary | None:
        """The session that keys are about: the one read, else the one under the cursor."""
        return self.pane.summary if self.reading else self.sessions.highlighted

    @property
    def _wanted(self) -> Sequence[Summary]:
        """The sessions to do something with: in the list, those that are selected, if any is."""
        if not self.reading and (selected := self.sessions.selected):
            return selected
        return () if self._chosen is None else (self._chosen,)

    @work(exclusive=True, group=DIALOG)
    async def action_export(self) -> None:
        """Write the session to a file, or all that are selected into a folder."""
        from gemtui.ui.sessions import actions

        if wanted := self._wanted:
            await actions.export(self.gemtui, wanted, self._home, self._marks.marks)

    def action_patch(self) -> None:
        """All that the session changed, or those that are selected, as one patch."""
        from gemtui.sessions.scope import sessions_with_calls
        from gemtui.ui.sessions.patch_screen import Patching, PatchScreen

        snapshot, wanted = self._snapshot, self._wanted
        if snapshot is None or not wanted:
            return
        root, *others = {each.project for each in wanted}
        if others:
            self.gemtui.say("The selected sessions belong to several projects; a patch covers one.")
            return
        if root is None:
            self.gemtui.say("No patch: this session's project folder is unknown.")
            return

        def sessions() -> list[Summary]:
            return [part for each in wanted for part in sessions_with_calls(snapshot, session=each)]

        self.app.push_screen(PatchScreen(Patching(Path(root), sessions), self._home))

    @work(exclusive=True, group=DIALOG)
    async def action_info(self) -> None:
        """All about the session, and the way to its relatives."""
        from gemtui.kept.contents import fate
        from gemtui.ui.sessions.about_dialog import AboutScreen
        from gemtui.ui.sessions.checkpoint_marks import undo_words

        if (summary := self._chosen) is None:
            return
        sessions = self._snapshot.sessions if self._snapshot is not None else ()
        live = self._live_of(summary)
        now, words = self.gemtui.clock(), ""
        if self._snapshot is not None:
            words = await asyncio.to_thread(fate, summary, self._snapshot, os.environ, now)
        undo = await asyncio.to_thread(undo_words, summary, now)
        relative = await self.app.push_screen_wait(
            AboutScreen(summary, sessions, self._marks.marks, live, words, undo)
        )
        if relative is not None:
            self.show(relative)

    @work(exclusive=True, group=DIALOG)
    async def action_search(self) -> None:
        """Search in all that was said, and read what is found."""
        from gemtui.ui.sessions.search_screen import Searching, SearchScreen

        if (snapshot := self._snapshot) is None:
            return
        search = self._search.search()
        if self._searching is None:
            self._searching = Searching(everywhere=self.sessions.view.everywhere)
        project = self._start.project
        screen = SearchScreen(
            search,
            snapshot,
            project,
            self._searching,
            indexing=self._search.progress,
            marks=self._marks.marks,
        )
        place = await self.app.push_screen_wait(screen)
        if place is not None:
            self.show(place.hit.file)
            self.pane.go_to_hit(place.hit.message, place.hit.block, place.query, place.pattern)
            self._ways_back = [_WayBack(place.hit.file.name, self._back_to_search)]
        await asyncio.to_thread(self._search.rest)

    def _back_to_search(self) -> None:
        self.sessions.focus()
        self.action_search()

    def show_history(self, path: PurePath) -> None:
        """Show which sessions wrote a file, over whatever is shown, and read what is chosen."""
        from gemtui.ui.sessions.history_screen import HistoryPosition

        self._show_history(HistoryPosition(path))

    @work(exclusive=True, group="writes")
    async def _show_history(self, history: HistoryPosition) -> None:
        from gemtui.ui.sessions.history_screen import HistoryScreen

        if self._snapshot is not None:
            screen = HistoryScreen(self._snapshot, self._home, self._marks.marks, history)
            await self._read_write(screen, lambda: self._show_history(history))

    @work(exclusive=True, group="writes")
    async def action_files(self) -> None:
        """All files that sessions wrote, and the writes of each."""
        from gemtui.ui.sessions.files_screen import Files, FilesScreen

        if self._snapshot is None:
            return
        if self._files is None:
            self._files = Files(everywhere=self.sessions.view.everywhere)
        screen = FilesScreen(
            self._snapshot, self._home, self._marks.marks, self._start.project, self._files
        )
        await self._read_write(screen, self.action_files)

    async def _read_write(self, screen: WritesScreen[Any], again: Callable[[], object]) -> None:
        """Ask for a write; read its session there, from where the way back is to ask `again`."""
        mode = self.app.current_mode
        self._writes = screen
        try:
            write = await self.app.push_screen_wait(screen)
        finally:
            if self._writes is screen:
                self._writes = None
        if write is None:
            return
        here = self.app.screen is self
        await self.app.switch_mode(self.app.DEFAULT_MODE)
        left = self._leave_place() if here and self.reading else self.sessions.focus
        self.show(write.source, deeper=here and self.reading)
        self.pane.go_to_block(write.message, write.block)

        async def back() -> None:
            left()
            await self.app.switch_mode(mode)
            again()

        self._ways_back.append(_WayBack(write.source.name, lambda: self.call_later(back)))

    def _leave_place(self) -> Callable[[], object]:
        """What leads back to the session that is read, as it is now."""
        read, view = self._read_file, self.pane.view
        cursor = view.page.cursor

        def back() -> None:
            if self._read_file != read:
                self._back()
            else:
                view.page.go(cursor)
                view.refresh_page()

        return back

    async def on_unmount(self) -> None:
        """Close what was searched in; all that was marked is kept."""
        self._search.close()
        await self._marks.close()

    def action_stats(self) -> None:
        """The numbers over the sessions."""
        from gemtui.ui.sessions.stats_screen import StatsScreen

        sessions = self._snapshot.sessions if self._snapshot is not None else ()
        project = self._start.project
        self.app.push_screen(StatsScreen(sessions, self._home, project))

    async def action_new_run(self) -> None:
        """The run pane, for the project of the session."""
        summary = self._chosen
        project = None if summary is None or summary.project is None else Path(summary.project)
        self.post_message(NewRunRequested(project or self._start.project or current_folder()))

    @work(exclusive=True, group=DIALOG)
    async def action_go_on(self) -> None:
        """The run pane, to go on with this session; one that is only kept is put back first."""
        if (summary := self._chosen) is not None:
            await self._go_on(summary)

    @work(exclusive=True, group=DIALOG)
    async def action_review(self) -> None:
        """What the session changed, hunk by hunk; comments become the next prompt."""
        from gemtui.ui.review.screen import review_session

        if (summary := self._chosen) is not None:
            title = named(summary, self._marks.marks).title
            if text := await self.app.push_screen_wait(review_session(summary, title)):
                await self._go_on(summary, text)

    async def _go_on(self, summary: Summary, prompt: str = "") -> None:
        live = self._live_of(summary)
        if live is not None and live.state not in GONE:
            self.gemtui.say(f"Process {live.pid} has this session open; close it there first.")
            return
        if live is not None:  # it was written to just now, and is no more
            summary = replace(summary, flags=summary.flags - {Flag.LIVE})
        if Flag.KEPT in summary.flags:
            from gemtui.ui.kit.put_back import put_back

            back = await put_back(self.gemtui, summary, "Restore it and continue?")
            self.look_again()
        else:
            back = summary
        if back is not None:
            self.post_message(ContinueRequested(back, prompt))

    @work(exclusive=True, group=DIALOG)
    async def action_undo_to(self) -> None:
        """Files and chat back to before the prompt of the cursor; in the list, the last one."""
        from gemtui.ui.undo.start import show_undo

        summary = self._main_session()
        live = None if summary is None else self._live_of(summary)
        if live is not None and live.state in (LiveState.WORKING, LiveState.WAITING):
            self.gemtui.say(f"Process {live.pid} works in this session: wait, or stop it there.")
        elif summary is not None:
            number, folder = self._prompt_number(), _folder_of(summary)
            await show_undo(self.gemtui, lambda: summary, number, folder, self._home)
            self.look_again()

    @work(exclusive=True, group=DIALOG)
    async def action_redo(self) -> None:
        """Take the last undo in the folder of the session back."""
        from gemtui.ui.undo.start import show_redo

        if (summary := self._chosen) is not None:
            await show_redo(self.gemtui, _folder_of(summary), self._home)

    @work(exclusive=True, group=DIALOG)
    async def action_fork(self) -> None:
        """A new chat from before the prompt of the cursor; in the list, the last one."""
        from gemtui.ui.undo.start import show_fork

        if (summary := self._main_session()) is not None:
            number, folder = self._prompt_number(), _folder_of(summary)
            await show_fork(self.gemtui, lambda: summary, number, folder, self._home)
            self.look_again()

    def _main_session(self) -> Summary | None:
        """The session that keys are about, unless that is a subagent's."""
        summary = self._chosen
        if summary is not None and summary.kind is SessionKind.SUBAGENT:
            self.gemtui.say("This is a subagent's session: open the session that called it.")
            return None
        return summary

    def _prompt_number(self) -> Number:
        """Which prompt keys are about: that of the cursor, in the list the last one."""
        from gemtui.ui.undo.start import prompt_at

        view = self.pane.view
        return prompt_at(view.page.transcript, view.index) if self.reading else len

    @work(exclusive=True, group=DIALOG)
    async def action_delete(self) -> None:
        """Delete the session, or all that are selected, after a question."""
        from gemtui.ui.sessions.deletion import Deleting

        deleting = Deleting(self.gemtui, self._home)
        self._done.add(deleting)
        await deleting.run([named(each, self._marks.marks) for each in self._wanted])
        for each in deleting.gone:
            if each.whole:
                self.pane.forget(each.session)
        if self.reading and self.pane.summary is None:
            self.sessions.focus()
        self.look_again()
        self.refresh_bindings()

    @work(exclusive=True, group=DIALOG)
    async def action_vault(self) -> None:
        """The vault: switch it on or off, see what it holds and what goes next."""
        from gemtui.ui.sessions.vault_dialog import show_vault

        if self._start.demo:
            self.gemtui.say("Not available in the demo.")
            return
        if self._snapshot is None:
            return
        answer = await show_vault(self.gemtui, self._snapshot)
        if answer is True:
            self._vault.look()
        elif isinstance(answer, Summary):
            self.show(answer)
        self.look_again()

    @work(exclusive=True, group=DIALOG)
    async def action_restore(self) -> None:
        """Put a kept session back into the store, after a question."""
        from gemtui.ui.kit.put_back import put_back

        if (summary := self._chosen) is not None:
            await put_back(self.gemtui, summary, "Restore this session?")

    def look_again(self) -> None:
        """Nothing else tells what has gone from the vault."""
        if self._feed is not None:
            self._feed.look(self._home / "tmp")

    @work(group="undo")
    async def action_undo(self) -> None:
        """Take back what was done last: a deletion, or a change of marks."""
        if back := await self._done.undo():
            self._to_highlight = back[0]
            self._highlight()
        self.refresh_bindings()

    # --- marks ---------------------------------------------------------------------------------

    @work(exclusive=True, group=DIALOG)
    async def action_marks(self) -> None:
        """Name, tags, note, pin and archive of the session, or of all that are selected."""
        if wanted := self._wanted:
            await self._marker.ask(wanted)

    def action_pin(self) -> None:
        """Pin the session, or all that are selected; or no longer."""
        self._keep(self._marker.toggle(self._wanted, "pinned"))

    def action_archive(self) -> None:
        """Archive the session, or all that are selected; or no longer."""
        self._keep(self._marker.toggle(self._wanted, "archived"))
        self.sessions.select_listed()

    @work(group="keep")
    async def _keep(self, marking: Marking | None) -> None:
        self.refresh_bindings()
        if marking is not None:
            await marking.finish()

    @on(EmptyStore.ElsewhereRequested)
    @work(exclusive=True, group=DIALOG)
    async def _look_elsewhere(self) -> None:
        from gemtui.ui.sessions import actions

        home = await actions.ask_home(self.gemtui, self._home)
        if home is not None:
            self._home = home
            self._search.close()
            self._search = SearchFeed(home, self._start.cache, self._take_progress)
            self._follow_vault()
            self.action_refresh()

    @on(EmptyStore.AgainRequested)
    def action_refresh(self) -> None:
        """Read the whole store again."""
        self._update_header()
        self._follow_store()

    def action_problems(self) -> None:
        """What could not be read: of the store, and of the open session."""
        from gemtui.ui.sessions import actions

        unreadable = self._snapshot.unreadable if self._snapshot is not None else ()
        marks = self._marks.problem
        no_marks = () if marks is None else (Problem(path=marks.path, line=None, what=str(marks)),)
        actions.show_problems(self.gemtui, (*self.pane.problems, *no_marks, *unreadable))

    @on(RawRequested)
    def _raw(self, event: RawRequested) -> None:
        from gemtui.ui.sessions import actions

        actions.show_raw(self.gemtui, event.spoken, event.block)

    @on(FileRequested)
    def _file(self, event: FileRequested) -> None:
        from gemtui.ui.kit.editor import edit

        summary = self.pane.summary
        project = None if summary is None or summary.project is None else Path(summary.project)
        edit(self.gemtui, event.path, event.line, project)

    @on(HistoryRequested)
    def _history(self, event: HistoryRequested) -> None:
        from gemtui.sessions.written_files import written_path

        event.stop()
        summary = self.pane.summary
        project = None if summary is None else summary.project
        self.show_history(written_path(project, event.path))

    @on(SubagentRequested)
    def _subagent(self, event: SubagentRequested) -> None:
        sessions = self._snapshot.sessions if self._snapshot is not None else ()
        found = next((each for each in sessions if each.id == event.agent_id), None)
        if found is None:
            self.gemtui.say("The session of this subagent is not stored.", problem=True)
        else:
            self.show(found, deeper=True)

    # --- words ---------------------------------------------------------------------------------

    def _update_header(self) -> None:
        left = self.gemtui.tabs("app.sessions")
        project = self._start.project
        folder = "all projects" if project is None else self._short(project)
        store = "demo" if self._start.demo else self._short(self._home)
        right = [Content.styled(store, "dim"), Content(folder)]
        self.query_one("#header", BarLine).say(left, right)

    def on_resize(self) -> None:
        """Paths have more room, or less."""
        self._update_header()

    def _short(self, path: Path) -> Clean:
        """The end of a path, which says most."""
        room = min(PATH_ROOM, self.size.width // 4)
        return fit_end(short_path(path), room, own(self.gemtui.glyphs.ellipsis))

    @on(SessionList.Arranged)
    @on(ReadPane.Changed)
    @on(TranscriptMoved)
    def _update_status(self) -> None:
        words, position = [*self._store_words()], [""]
        if self.reading or self.side_by_side:
            words += self.pane.words
            position += self.pane.position
        self.query_one("#status", BarLine).say(
            [Content(word) for word in words], [Content(word) for word in position]
        )
        self._name_window()

    def _store_words(self) -> Iterator[str]:
        if self.size.width < ROOM[0] or self.size.height < ROOM[1]:
            yield f"small window: {ROOM[0]} x {ROOM[1]} or larger is better"
        snapshot = self._snapshot
        if snapshot is None:
            yield "reading"
            return
        if selection := self.sessions.selection:
            yield selection
        if not snapshot.complete:
            yield f"reading {snapshot.done:,} of {snapshot.total:,}"
        if snapshot.unreadable:
            yield f"{self.gemtui.glyphs.warning} {len(snapshot.unreadable)} can't be read"
        if self._marks.problem is not None:
            yield f"{self.gemtui.glyphs.warning} marks can't be read"
        if (keeping := self._vault.progress) is not None:
            yield f"vault: saving {keeping[0]:,} of {keeping[1]:,}"
        if self._vault.problem is not None:
            glyph = self.gemtui.glyphs.warning
            yield clean_line(f"{glyph} not everything is in the vault: {self._vault.problem}")
        if self.pane.polling is not None:
            yield clean_line(self.pane.polling)

    def _name_window(self) -> None:
        summary = self.pane.summary if self.reading else None
        name = "Sessions" if summary is None else named(summary, self._marks.marks).title
        self.gemtui.name_window(clean_line(f"gemtui: {name}"))


def _folder_of(summary: Summary) -> Path | None:
    return None if summary.project is None else Path(summary.project)


def _none_waits() -> str:
    from gemtui.extension.status import HookState, extension_state

    if extension_state().state is HookState.READY:
        return "No session waits for you."
    key = BY_ID["app.extension"].footer()
    return f"Can't tell which sessions need you: the extension is not installed ({key})."


def _waiting(live: Sequence[LiveSession]) -> list[LiveSession]:
    return [each for each in live if each.state is LiveState.WAITING]
