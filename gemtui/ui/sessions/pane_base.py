"""The sessions pane as its parts see it: list, open session, navigation, and undo."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from textual.reactive import reactive
from textual.timer import Timer

from gemtui.sessions.catalog.summary import Summary
from gemtui.ui.kit.screens import FullScreen, ScreenPart
from gemtui.ui.sessions.list import SessionList
from gemtui.ui.sessions.marks import MarksFeed
from gemtui.ui.sessions.read_pane import ReadPane
from gemtui.ui.sessions.store_feed import OpenStore

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import Start
    from gemtui.ui.sessions.left_off import LeftOff


class Undoable(Protocol):
    """An action of the user that may be undone."""

    @property
    def undoable(self) -> bool:
        """Whether any part of the action can be undone."""

    async def undo(self) -> Sequence[Summary]:
        """Undo the action, and show a message about it.

        Returns the affected sessions that are now listed.
        """


class UndoStack:
    """The user's actions, latest last."""

    def __init__(self) -> None:
        self._done: list[Undoable] = []

    @property
    def last(self) -> Undoable | None:
        """The action to undo next, or None if there is none."""
        return next((each for each in reversed(self._done) if each.undoable), None)

    def add(self, done: Undoable) -> None:
        """Add an action that has been carried out, or is about to be."""
        self._done.append(done)

    async def undo(self) -> Sequence[Summary]:
        """Undo the last action, and return the affected sessions that are now listed.

        If the action couldn't be undone completely, it goes to the bottom of the stack, so that it
        is retried last.
        """
        if (last := self.last) is None:
            return ()
        self._done.remove(last)
        back = await last.undo()
        if last.undoable:
            self._done.insert(0, last)
        return back


class SessionsPane(FullScreen[None]):
    """The sessions pane.

    `start`: the options the app was started with. `done`: the user's actions that can be undone.
    `left_off`: what is kept for the next start.
    """

    start: Start
    store: OpenStore
    marks: MarksFeed
    done: UndoStack
    left_off: LeftOff
    navigation: Navigation
    reading: reactive[bool] = reactive(False, init=False)
    """Whether the transcript has the focus; a narrow terminal then shows nothing else."""

    @property
    def sessions(self) -> SessionList:
        """The list of sessions."""
        return self.query_one(SessionList)

    @property
    def pane(self) -> ReadPane:
        """The pane with the open session's transcript."""
        return self.query_one(ReadPane)

    @property
    def side_by_side(self) -> bool:
        """Whether the list and the transcript are both visible."""
        return not self.has_class("-narrow") and not self.has_class("-zoom")

    @property
    def chosen(self) -> Summary | None:
        """The session that keys act on, or None.

        This is the open session if its transcript has the focus, otherwise the one under the list's
        cursor.
        """
        return self.pane.summary if self.reading else self.sessions.highlighted

    @property
    def targets(self) -> Sequence[Summary]:
        """The sessions that keys act on, for keys that can act on several sessions.

        In the list, these are the selected sessions. If none are selected, or the transcript has
        the focus, this is only `chosen`.
        """
        if not self.reading and (selected := self.sessions.selected):
            return selected
        return () if self.chosen is None else (self.chosen,)

    @abstractmethod
    def update_status(self) -> None:
        """Update the status line."""


class SessionsPart(ScreenPart[SessionsPane]):
    """A part of the sessions pane: the state and the key actions for one topic."""


PREVIEW_DELAY = 0.08
"""Seconds that the cursor must stay on a session before the session is previewed."""


class _WayBack(NamedTuple):
    """The screen that esc returns to from a session that was opened elsewhere.

    `of`: the name of the session's file. `go`: the function that esc calls.
    """

    of: str
    go: Callable[[], object]


class Navigation(SessionsPart):
    """Moves between the list, sessions, and the places that sessions are opened from."""

    def __init__(self, screen: SessionsPane) -> None:
        super().__init__(screen)
        self._resting: Timer | None = None
        self._to_highlight: Summary | None = None
        self._ways_back: list[_WayBack] = []

    def can(self, action: str) -> bool:
        """Return whether an action that changes panes is available now.

        `action`: "other_pane" needs a second pane to go to; any other action needs a session.
        """
        if action == "other_pane" and self.screen.reading:
            return not self.screen.has_class("-empty")
        return self.screen.chosen is not None

    def show(self, summary: Summary, *, deeper: bool = False) -> None:
        """Open a session and focus its transcript.

        `deeper`: whether esc in the new session goes back to the session that is open now.
        """
        pane = self.screen.pane
        self.stop_preview()
        if not deeper:
            self._ways_back.clear()
        self.highlight(summary)
        pane.open(summary, deeper=deeper)
        self.screen.reading = True
        self.screen.call_after_refresh(pane.take_focus)

    def preview(self, summary: Summary) -> None:
        """Show a session beside the list once the cursor has stayed on it for a moment."""
        pane = self.screen.pane
        if self.screen.side_by_side and not self.screen.reading:
            self._resting = self.screen.set_timer(PREVIEW_DELAY, lambda: pane.open(summary))

    def stop_preview(self) -> None:
        """Cancel a preview that hasn't been shown yet."""
        if self._resting is not None:
            self._resting.stop()

    # --- list cursor ---------------------------------------------------------------------------

    def highlight(self, summary: Summary) -> None:
        """Move the list's cursor to a session, now or as soon as it is listed."""
        self._to_highlight = summary
        self.highlight_again()

    def highlight_again(self) -> None:
        """Move the cursor to the session that `highlight` is waiting for, if it is listed."""
        if self._to_highlight is not None and self.screen.sessions.highlight(self._to_highlight):
            self._to_highlight = None

    def forget_highlight(self) -> None:
        """Cancel a move of the cursor that `highlight` is still waiting to make.

        Called when the user has moved the cursor.
        """
        self._to_highlight = None

    # --- going back ----------------------------------------------------------------------------

    def go_back(self) -> bool:
        """Go back one step; return False if the list already has the focus.

        In a session, this goes to where it was opened from: a subagent's call, a search or the list
        of files. If it wasn't opened from such a place, a subagent's session leads to its parent,
        and any other session to the list.
        """
        screen = self.screen
        if screen.reading and self._ways_back and self._ways_back[-1].of == self._read_file:
            self._ways_back.pop().go()
        elif screen.reading and self._back():
            pass
        elif screen.reading and (parent := screen.pane.parent_session) is not None:
            self._leave_for(parent)
        elif screen.has_class("-zoom"):
            self.action_zoom()
        elif not screen.reading or screen.has_class("-empty"):
            return False
        else:
            screen.sessions.focus()
        return True

    def add_return(self, summary: Summary, go: Callable[[], object]) -> None:
        """Make esc call `go` while this session is open."""
        self._ways_back.append(_WayBack(summary.name, go))

    def return_point(self) -> Callable[[], object]:
        """Return a function that leads back to the session and cursor that are shown now."""
        read, view = self._read_file, self.screen.pane.view
        cursor = view.page.cursor

        def back() -> None:
            if self._read_file != read:
                self._back()
            else:
                view.page.go(cursor)
                view.refresh_page()

        return back

    @property
    def _read_file(self) -> str:
        """The name of the open session's file, or "" if no session is open."""
        summary = self.screen.pane.summary
        return "" if summary is None else summary.name

    def _back(self) -> bool:
        """Go back to the session this one was opened from; return False if there is none."""
        pane = self.screen.pane
        if not pane.back():
            return False
        if pane.summary is not None:
            self.highlight(pane.summary)
        return True

    def _leave_for(self, parent: Summary) -> None:
        """Go from a subagent's session to the call that started the subagent.

        Used if the session wasn't opened from that call. `parent`: the session that contains the
        call.
        """
        subagent = self.screen.pane.summary
        self.show(parent)
        if subagent is not None:
            self.screen.pane.go_to_call(subagent.id)

    # --- keys ----------------------------------------------------------------------------------

    def action_other_pane(self) -> None:
        if self.screen.reading:
            self.screen.sessions.focus()
        elif (summary := self.screen.sessions.highlighted) is not None:
            self.show(summary)

    def action_zoom(self) -> None:
        """Show the transcript at full width, or beside the list again."""
        screen = self.screen
        if not screen.reading:
            self.action_other_pane()
        screen.toggle_class("-zoom")
        screen.pane.view.spread(whole=screen.has_class("-zoom"))
