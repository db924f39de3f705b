"""The sessions pane as its parts see it: list, open session, selection, and undo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from textual.reactive import reactive

from gemtui.sessions.catalog.summary import Summary
from gemtui.ui.kit.screens import DialogGuardScreen, ScreenPart
from gemtui.ui.sessions.list import SessionList
from gemtui.ui.sessions.marks import MarksFeed
from gemtui.ui.sessions.read_pane import ReadPane
from gemtui.ui.sessions.store_feed import OpenStore

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import Start


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


class SessionsPane(DialogGuardScreen[None]):
    """The sessions pane.

    `start`: the options the app was started with. `done`: the user's actions that can be undone.
    """

    start: Start
    store: OpenStore
    marks: MarksFeed
    done: UndoStack
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

    def show(self, summary: Summary, *, deeper: bool = False) -> None:
        """Open a session and focus its transcript.

        `deeper`: whether going back leads to the session that is open now.
        """
        raise NotImplementedError

    def update_status(self) -> None:
        """Update the status line."""
        raise NotImplementedError


class SessionsPart(ScreenPart[SessionsPane]):
    """A part of the sessions pane: the state and the key actions for one topic."""
