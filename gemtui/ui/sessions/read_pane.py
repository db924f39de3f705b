"""The pane with the open session: its heading, and its transcript or a notice.

A session is loaded on background threads: first a part, then the rest.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from gemtui.errors import GemtuiError, SessionTooLarge, message_of
from gemtui.extension.live import LiveState
from gemtui.sessions.catalog.summary import Flag, Summary, named
from gemtui.sessions.store.store import Problem, SessionKind
from gemtui.text import clean_line, counted, ellipsis
from gemtui.ui.draw.formats import format_time
from gemtui.ui.draw.theme import glyphs_of, look_of
from gemtui.ui.kit.bars import BarLine
from gemtui.ui.kit.keys import BY_ID
from gemtui.ui.kit.messages import DroppedRequested
from gemtui.ui.sessions.left_off import LeftOff
from gemtui.ui.sessions.live import STATE_WORDS, state_words
from gemtui.ui.sessions.marks import NO_MARKS
from gemtui.ui.sessions.notice import NoticePane
from gemtui.ui.sessions.row import IN_FLIGHT

if TYPE_CHECKING:
    from gemtui.marks import Mark
    from gemtui.transcript.model import Dropped, Transcript
    from gemtui.ui.sessions.session_loader import SessionLoader
    from gemtui.ui.transcript.cursor import Cursor
    from gemtui.ui.transcript.view import TranscriptView
    from gemtui.ui.transcript.viewport import Viewport
    from gemtui.ui.undo.marked_transcript import MarkedTranscript


_PARENT = 40
"""Maximum width in cells of a parent session's title in the status line."""


class _Left(Struct, frozen=True, kw_only=True):
    """A session that the user can go back to, whose file is still open.

    The user left it by opening another session from inside it.
    """

    summary: Summary
    reader: SessionLoader
    page: Viewport


class ReadPane(Vertical):
    """Shows a session and follows its file; call `changed` when the file has grown.

    Files are read on background threads. When a different session is opened, any read in progress
    is cancelled, so that its result isn't shown late. `at_once`: have the view of the transcript
    from the start. Otherwise it comes after the first picture, because importing it takes a tenth
    of the app's start.
    """

    class SessionChanged(Message):
        """Posted when the pane shows a different session, or a newer state of the session."""

    class Ready(Message):
        """Posted when the pane has its view of the transcript."""

    _checkpoints: MarkedTranscript

    def __init__(self, left_off: LeftOff, *, open_thoughts: bool, at_once: bool, id: str) -> None:
        super().__init__(id=id, classes="pane")
        self._at_once = at_once
        self.ready = asyncio.Event()
        """Set once there is a view of the transcript."""
        self._left_off = left_off
        self._open_thoughts = open_thoughts
        self.summary: Summary | None = None
        self.polling: str | None = None
        """Why and how often files are polled for changes; None if the system reports them."""
        self._sessions: Sequence[Summary] = ()
        self._marks: Mapping[str, Mark] = NO_MARKS
        self._live: Mapping[str, LiveState] = {}
        self._left: list[_Left] = []
        self._shown: SessionLoader | None = None
        self._wanted: Callable[[Transcript], Cursor | None] | None = None
        self._unfolds = False
        """Whether the wanted block is unfolded."""
        self._marked: tuple[str, re.Pattern[str] | None] | None = None
        self._news = asyncio.Event()
        self._undoable: frozenset[str] = frozenset()

    def compose(self) -> ComposeResult:
        yield BarLine(id="heading", classes="heading")
        yield NoticePane()
        if self._at_once:
            yield self._new_view()

    def on_mount(self) -> None:
        if not self._at_once:
            self.call_after_refresh(self._add_view)

    def _new_view(self) -> TranscriptView:
        from gemtui.ui.transcript.view import TranscriptView

        self.ready.set()
        return TranscriptView(open_thoughts=self._open_thoughts)

    @work
    async def _add_view(self) -> None:
        await asyncio.to_thread(import_module, "gemtui.ui.sessions.session_loader")
        await asyncio.to_thread(import_module, "gemtui.ui.transcript.view")
        await self.mount(self._new_view())
        self.post_message(self.Ready())

    @property
    def view(self) -> TranscriptView:
        """The view of the transcript."""
        from gemtui.ui.transcript.view import TranscriptView

        return self.query_one(TranscriptView)

    async def take_focus(self) -> None:
        """Focus the transcript, or the notice shown in its place, as soon as it is there."""
        await self.ready.wait()
        (self.query_one(NoticePane) if self.has_class("-notice") else self.view).focus()

    # --- contents ------------------------------------------------------------------------------

    def open(self, summary: Summary, *, deeper: bool = False) -> None:
        """Show a session, unless it is already shown.

        `deeper`: whether `back` then returns to the session that is open now, with its cursor.
        """
        before, self.summary = self.summary, summary
        if before is None or before.path != summary.path:
            self._marked = None
            self._unfolds = False
            self._wanted = self._place_left(summary)
            if not deeper:
                self._leave()
            elif before is not None and self._shown is not None:
                self._left.append(_Left(summary=before, reader=self._shown, page=self.view.page))
            self._read_file(summary)
        self._say_heading()

    def _place_left(self, summary: Summary) -> Callable[[Transcript], Cursor | None] | None:
        """Return what finds the place at which the user left a session; None for its start."""
        place = self._left_off.blocks.get(summary.id)
        if place is None or Flag.LIVE in summary.flags:
            return None
        return _finder(*place)

    def remember_place(self) -> None:
        """Remember the cursor's place in the session on screen, unless it is still being loaded."""
        reader, summary = self._shown, self.summary
        if reader is None or summary is None or reader.path != summary.path:
            return
        page = self.view.page
        if self._wanted is None and len(page.transcript):
            self._left_off.leave(summary.id, page.transcript, page.cursor)

    def back(self) -> bool:
        """Go back to the session this one was opened from; return False if there is none."""
        if not self._left:
            return False
        left = self._left.pop()
        self.summary = left.summary
        self._read_again(left.reader, left.page)
        self._say_heading()
        return True

    @property
    def parent_session(self) -> Summary | None:
        """The stored session whose call started the open subagent session.

        None if the open session isn't a subagent's, or if its parent isn't stored.
        """
        if self.summary is None or not (parent := self.summary.parent):
            return None
        named = (each for each in self._sessions if each.id == parent)
        return next((each for each in named if each.kind is SessionKind.MAIN), None)

    def go_to_call(self, call: str) -> None:
        """Move the cursor to a tool call as soon as the call is loaded.

        `call`: the id of the call, or of the subagent that the call started.
        """
        from gemtui.ui.transcript.cursor import place_of_call

        self._marked = None
        self._go_to(lambda transcript: place_of_call(transcript, call))

    def go_to_block(self, message: str, block: int) -> None:
        """Move the cursor to a block of a message as soon as it is loaded.

        `message`: the message's id. `block`: the block's index in it.
        """
        self._marked = None
        self._go_to(_finder(message, block))

    def go_to_hit(
        self, message: str, block: int, query: str, wanted: re.Pattern[str] | None
    ) -> None:
        """Move the cursor to a block as soon as it is loaded, and search from there.

        `message`, `block`: see `go_to_block`. `query`, `wanted`: see `SearchedView.find`.
        """
        self._marked = query, wanted
        self._go_to(_finder(message, block))

    def _go_to(self, wanted: Callable[[Transcript], Cursor | None]) -> None:
        self._wanted, self._unfolds = wanted, True
        self._look_for_wanted()

    @work(exclusive=True, group="go")
    async def _look_for_wanted(self) -> None:
        await self.ready.wait()
        page, wanted = self.view.page, self._wanted
        transcript = page.transcript
        if wanted is None:
            return
        found = await asyncio.to_thread(wanted, transcript)
        await self.view.laid_out.wait()  # delayed on a narrow screen
        moved = page.cursor.message > 0 or page.top > 0
        if not self._unfolds and (moved or (found is None and self._is_loaded)):
            self._wanted = None
        elif found is None and self._may_be_dropped(transcript):
            self._toggle_dropped()
        elif found is not None and transcript is self.view.page.transcript:
            self._wanted, marked = None, self._marked
            page.go(found, at_top=True)
            if self._unfolds:
                page.fold(False)
            self.view.refresh_page()
            if marked is not None:
                self._marked = None
                if self.view.leave_find():
                    self.view.find(*marked)

    @property
    def _is_loaded(self) -> bool:
        return self._shown is not None and self._shown.complete

    def _may_be_dropped(self, transcript: Transcript) -> bool:
        """Return whether the message to go to may be one of the dropped messages.

        Dropped messages failed, or were rewound or replaced. This is checked when everything else
        has been loaded without finding the message.
        """
        reader, same = self._shown, transcript is self.view.page.transcript
        return (
            same
            and reader is not None
            and reader.complete
            and not reader.dropped
            and any(reader.lost.values())
        )

    def forget(self, summary: Summary) -> None:
        """Clear the pane if this session is open."""
        if self.summary is not None and self.summary.path in summary.files:
            self.clear()

    def clear(self) -> None:
        """Close the open session and show none."""
        self.workers.cancel_group(self, "read")
        self._leave()
        self.summary = None
        self.query_one("#heading", BarLine).show_parts([_muted("No session to show.")])
        if self.ready.is_set():
            from gemtui.transcript.model import Transcript

            self._take_over(None)
            self._in_front(self.view)
            self.view.show(Transcript.of(()), fresh=True)
        self.post_message(self.SessionChanged())

    def update_sessions(self, sessions: Sequence[Summary]) -> None:
        """Update the heading for a newer state of the session store.

        `sessions`: all stored sessions.
        """
        self._sessions = sessions
        if self.summary is not None:
            self.summary = _of_file(self.summary.name, sessions) or self.summary
            self._say_heading()

    def mark(self, marks: Mapping[str, Mark]) -> None:
        """Show these marks, by session id, in the heading."""
        self._marks = marks
        self._say_heading()

    def changed(self, paths: frozenset[Path]) -> None:
        """If the session's file is among these changed paths, load what is new in it."""
        if self.summary is None:
            return
        path = self.summary.path
        if not paths.isdisjoint((path, *path.parents)):
            self._news.set()

    @on(NoticePane.AgainRequested)
    def reload(self) -> None:
        """Load the open session again from the start."""
        if self.summary is not None:
            self._read_file(self.summary)

    @work(exclusive=True, group="read")
    async def _read_file(self, summary: Summary) -> None:
        await self.ready.wait()
        from gemtui.ui.sessions.session_loader import SessionLoader

        await self._follow(SessionLoader(summary.path, summary.project))

    @work(exclusive=True, group="read")
    async def _read_again(self, reader: SessionLoader, page: Viewport) -> None:
        self._take_over(reader)
        self.view.show_page(page)
        self._in_front(self.view)
        await self._follow(reader)

    async def _follow(self, reader: SessionLoader) -> None:
        try:
            while True:
                self._news.clear()
                try:
                    await self._read_on(reader)
                except SessionTooLarge as error:
                    self._fail(error)
                    return
                except (GemtuiError, OSError) as error:
                    self._fail(error)
                await self._news.wait()
        finally:
            self._let_go(reader)

    async def _read_on(self, reader: SessionLoader) -> None:
        """Load a session's first part and then the rest.

        If it is already shown, only what is new is loaded. If the file can't be read right now, for
        example because it is being written, it is read again when it changes.
        """
        from gemtui.ui.sessions.session_loader import read_first, read_rest

        if self._shown is not reader:
            transcript = await asyncio.to_thread(read_first, reader)
            self._take_over(reader)
            live = self.summary is not None and Flag.LIVE in self.summary.flags
            at_end = live and self._wanted is None
            self.view.show(transcript, fresh=True, end=at_end, loading=not reader.complete)
            self._in_front(self.view)
        newer = await asyncio.to_thread(read_rest, reader)
        if newer is not None:
            self.view.show(self._checkpoints.mark(newer), fresh=False)
        if self.has_class("-notice"):
            self._in_front(self.view)
        if self._wanted is not None:
            self._look_for_wanted()
        self._say_heading()

    def update_undoable(self, sessions: frozenset[str]) -> None:
        """If the open session has checkpoints, mark the prompts and calls they belong to.

        `sessions`: the ids of all sessions with checkpoints.
        """
        self._undoable = sessions
        if self._shown is not None:
            self._look_for_checkpoints(self._shown)

    @work(exclusive=True, group="checkpoints")
    async def _look_for_checkpoints(self, reader: SessionLoader) -> None:
        from gemtui.ui.undo.checkpoint_marks import read_checkpoints
        from gemtui.ui.undo.marked_transcript import CheckpointMarks

        summary = self.summary
        if summary is None or summary.id not in self._undoable:
            return
        found = await asyncio.to_thread(read_checkpoints, summary)
        marks = CheckpointMarks(found.prompts, found.calls)
        if reader is self._shown and self._checkpoints.replace(marks):
            self._show_again(reader)

    def _take_over(self, reader: SessionLoader | None) -> None:
        from gemtui.ui.undo.marked_transcript import MarkedTranscript

        before, self._shown = self._shown, reader
        self._checkpoints = MarkedTranscript()
        if reader is not None:
            self._look_for_checkpoints(reader)
        if before is not None:
            self._let_go(before)

    def _leave(self) -> None:
        """Close the files of all sessions that `back` can return to."""
        left, self._left = self._left, []
        for each in left:
            self._let_go(each.reader)

    def _let_go(self, reader: SessionLoader) -> None:
        """Close a session's file, unless it is on screen or `back` can return to it."""
        if reader is self._shown or any(reader is each.reader for each in self._left):
            return
        reader.stop()
        asyncio.get_running_loop().run_in_executor(None, reader.close)

    def _fail(self, error: Exception) -> None:
        heading = clean_line("This session can't be shown.")
        self.query_one(NoticePane).show_notice(heading, [clean_line(_reason(error))])
        self._in_front(self.query_one(NoticePane))
        self.post_message(self.SessionChanged())

    def _in_front(self, widget: Widget) -> None:
        notice = self.query_one(NoticePane)
        had_focus = notice.has_focus or self.view.has_focus
        self.set_class(widget is notice, "-notice")
        if had_focus:
            widget.focus()

    @on(DroppedRequested)
    def _toggle_dropped(self) -> None:
        if self._shown is not None:
            self._shown.toggle_dropped()
            self._show_again(self._shown)

    @work(exclusive=True, group="again")
    async def _show_again(self, reader: SessionLoader) -> None:
        transcript = await asyncio.to_thread(reader.transcript_so_far)
        if reader is self._shown:
            marked, loading = self._checkpoints.mark(transcript), not reader.complete
            self.view.show(marked, fresh=False, loading=loading, news=False)
            self.post_message(self.SessionChanged())
            if self._wanted is not None:
                self._look_for_wanted()

    # --- texts ---------------------------------------------------------------------------------

    def _say_heading(self) -> None:
        summary = self.summary
        if summary is None:
            return
        title = Content.styled(clean_line(named(summary, self._marks).title), "bold")
        self.query_one("#heading", BarLine).show_parts([title], [*self._facts(summary)])
        self.post_message(self.SessionChanged())

    def update_live(self, live: Mapping[str, LiveState]) -> None:
        """Show in the heading what the open session is doing.

        `live`: the states by session id.
        """
        if live != self._live:
            self._live = live
            self._say_heading()

    def _facts(self, summary: Summary) -> list[Content]:
        facts, glyphs = [], glyphs_of(self.app)
        state = self._live.get(summary.id)
        if state is not None and state in STATE_WORDS:
            facts.append(state_words(state, glyphs))
        elif state is None and Flag.LIVE in summary.flags and not self._gone:
            waits = f", {IN_FLIGHT}" if summary.waits else ""
            facts.append(Content.styled(f"{glyphs.running} live{waits}", "$text-success"))
        mark = self._marks.get(summary.id)
        if mark is not None and mark.pinned:
            facts.append(Content.styled(f"{glyphs.pinned} pinned", "$text-accent"))
        if mark is not None and mark.archived:
            facts.append(_muted("archived"))
        if summary.failed_calls:
            facts.append(Content.styled(f"{summary.failed_calls} failed", "$text-error"))
        if summary.files_written:
            facts.append(_muted(counted(len(summary.files_written), "file")))
        if summary.updated is not None:
            facts.append(_muted(format_time(summary.updated, look_of(self.app, self.size.width))))
        if summary.prompts:
            facts.append(_muted(counted(summary.prompts, "prompt")))
        return facts

    @property
    def _gone(self) -> bool:
        return self._shown is not None and self._shown.gone

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems with lines of the session's file that couldn't be read."""
        return () if self._shown is None else self._shown.problems

    @property
    def words(self) -> tuple[str, ...]:
        """Notes on the session and its file for the status line, most important first."""
        reader = self._shown
        if reader is None or self.has_class("-notice"):
            return ()
        said, glyphs = list[str](), glyphs_of(self.app)
        if (parent := self.parent_session) is not None:
            name = clean_line(named(parent, self._marks).title)
            title = ellipsis(name, _PARENT, mark=glyphs.ellipsis)
            said.append(f"subagent of: {title}")
        if reader.gone:
            said.append("This session's file was deleted; showing what was read before.")
        if reader.problems:
            lines = counted(len(reader.problems), "line")
            said.append(f"{glyphs.warning} {lines} can't be read")
        if reader.has_partial_line:
            said.append("The last line is incomplete; waiting for the rest.")
        if reader.lost:
            said.append(_lost(reader.lost, shown=reader.dropped))
        return tuple(said)

    @property
    def position(self) -> tuple[str, ...]:
        """Words about the position in the transcript, most important first."""
        if self._shown is None or self.has_class("-notice"):
            return ()
        view = self.view
        if not view.total:
            return ()
        said = [f"message {view.index + 1} of {view.total}"]
        if view.word:
            said.insert(0, view.word)
        if view.found.query:
            said.append(f"match {view.found}" if view.found.current else str(view.found))
        if view.following:
            how = "following" if self.polling is None else self.polling.partition(":")[0]
            said.append(f"{glyphs_of(self.app).newer} {how}")
        return tuple(said)


def _of_file(name: str, sessions: Iterable[Summary]) -> Summary | None:
    """Return the summary of the session file with this name, or None.

    It may be one of a session's copies.
    """
    session = next((each for each in sessions if name in each.names), None)
    files = () if session is None else (session, *session.copies)
    return next((each for each in files if each.name == name), None)


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "The session's file no longer exists."
    return message_of(error)


def _muted(text: str) -> Content:
    return Content.styled(text, "dim")


def _finder(message: str, block: int) -> Callable[[Transcript], Cursor | None]:
    """Return a function that finds a block of a message in a transcript."""
    from gemtui.ui.transcript.cursor import place_of_message

    return lambda transcript: place_of_message(transcript, message, block)


def _lost(lost: Mapping[Dropped, int], *, shown: bool) -> str:
    from gemtui.transcript.export_words import dropped_words

    key, what = BY_ID["transcript.dropped"].footer(), "hide" if shown else "show"
    return f"{dropped_words(lost)} (press {key} to {what})"
