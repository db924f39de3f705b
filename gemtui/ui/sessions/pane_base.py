"""The sessions pane as its parts know it: what is listed, what is read, what keys are about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.reactive import reactive

from gemtui.sessions.summary import Summary
from gemtui.ui.kit.full_screen import DialogGuardScreen, ScreenPart
from gemtui.ui.sessions.list import SessionList
from gemtui.ui.sessions.marks_feed import MarksFeed
from gemtui.ui.sessions.read_pane import ReadPane
from gemtui.ui.sessions.store_feed import OpenStore
from gemtui.ui.sessions.undo_stack import UndoStack

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import Start


class SessionsPane(DialogGuardScreen[None]):
    """`start`: what the app opened on. `done`: what the person did here and can take back."""

    start: Start
    store: OpenStore
    marks: MarksFeed
    done: UndoStack
    reading: reactive[bool] = reactive(False, init=False)
    """Whether the keys are with the transcript; a narrow terminal shows only what has the keys."""

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
    def chosen(self) -> Summary | None:
        """The session that keys are about: the one read, else the one under the cursor."""
        return self.pane.summary if self.reading else self.sessions.highlighted

    @property
    def wanted(self) -> Sequence[Summary]:
        """The sessions to do something with: in the list, those that are selected, if any is."""
        if not self.reading and (selected := self.sessions.selected):
            return selected
        return () if self.chosen is None else (self.chosen,)

    def show(self, summary: Summary, *, deeper: bool = False) -> None:
        """Open a session and focus its transcript.

        `deeper`: the way back leads to the present session.
        """
        raise NotImplementedError

    def update_status(self) -> None:
        """Write the status line anew."""
        raise NotImplementedError


class SessionsPart(ScreenPart):
    """One subject of the sessions pane."""

    screen: SessionsPane

    def __init__(self, screen: SessionsPane) -> None:
        self.screen = screen
