"""The stack of actions in the sessions pane that the user can undo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gemtui.sessions.catalog.summary import Summary


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
