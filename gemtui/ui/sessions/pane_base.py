"""The sessions pane as its parts see it: list, open session and selection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.reactive import reactive

from gemtui.sessions.catalog.summary import Summary
from gemtui.ui.kit.screens import DialogGuardScreen, ScreenPart
from gemtui.ui.sessions.list import SessionList
from gemtui.ui.sessions.marks_feed import MarksFeed
from gemtui.ui.sessions.read_pane import ReadPane
from gemtui.ui.sessions.store_feed import OpenStore
from gemtui.ui.sessions.undo_stack import UndoStack

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import Start


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
