"""One stack of all actions that the user can undo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gemtui.sessions.summary import Summary


class Undoable(Protocol):
    """An action that was carried out."""

    @property
    def undoable(self) -> bool:
        """Whether any part of it can be undone."""

    async def undo(self) -> Sequence[Summary]:
        """Undo it and report that; return the sessions that are restored."""


class UndoStack:
    """The actions, the latest last."""

    def __init__(self) -> None:
        self._done: list[Undoable] = []

    @property
    def last(self) -> Undoable | None:
        """The action to undo next."""
        return next((each for each in reversed(self._done) if each.undoable), None)

    def add(self, done: Undoable) -> None:
        """Add an action that was carried out, or is about to be."""
        self._done.append(done)

    async def undo(self) -> Sequence[Summary]:
        """Undo the last action; if that fails, it becomes the last to be tried again."""
        if (last := self.last) is None:
            return ()
        self._done.remove(last)
        back = await last.undo()
        if last.undoable:
            self._done.insert(0, last)
        return back
