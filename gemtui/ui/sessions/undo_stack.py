"""What a person did and can take back: one stack, whatever it was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gemtui.sessions.summary import Summary


class Undoable(Protocol):
    """Something that was done."""

    @property
    def undoable(self) -> bool:
        """Whether something of it can be taken back."""

    async def undo(self) -> Sequence[Summary]:
        """Take it back and say so; return the sessions that are as they were before."""


class UndoStack:
    """What was done, the newest last."""

    def __init__(self) -> None:
        self._done: list[Undoable] = []

    @property
    def last(self) -> Undoable | None:
        """What is taken back next."""
        return next((each for each in reversed(self._done) if each.undoable), None)

    def add(self, done: Undoable) -> None:
        """Something has been done, or is about to be."""
        self._done.append(done)

    async def undo(self) -> Sequence[Summary]:
        """Take the last one back; where that fails, it is the last to be tried again."""
        if (last := self.last) is None:
            return ()
        self._done.remove(last)
        back = await last.undo()
        if last.undoable:
            self._done.insert(0, last)
        return back
