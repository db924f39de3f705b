"""Names, tags, notes, pins: what keys change of them, and take back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from gemtui.errors import GemtuiError
from gemtui.sessions.summary import Summary
from gemtui.text import clean_line, ellipsis
from gemtui.ui.kit.keys import BY_ID
from gemtui.ui.sessions.marks_feed import MarksFeed
from gemtui.ui.sessions.tags import tags_in_use
from gemtui.ui.sessions.undo_stack import UndoStack

if TYPE_CHECKING:
    from gemtui.marks import Mark, MarkEdit
    from gemtui.ui.kit.app_base import AppBase

_TITLE = 40
"""Cells of a title in what is said."""


def named(session: Summary, marks: Mapping[str, Mark]) -> Summary:
    """Return a session with the user's name for it as its title, if it has one."""
    mark = marks.get(session.id)
    return session if mark is None or mark.name is None else replace(session, title=mark.name)


class Marker:
    """Changes marks for a person; each change goes onto `done`, from which it is taken back."""

    def __init__(self, app: AppBase, feed: MarksFeed, done: UndoStack) -> None:
        self._app, self._feed, self._done = app, feed, done

    async def ask(self, sessions: Sequence[Summary]) -> None:
        """Let the person change all marks of sessions in a form."""
        from gemtui.ui.sessions.marks_dialog import MarksScreen

        if self._say_no_marks():
            return
        marks = [self._feed.of(id) for id in dict.fromkeys(each.id for each in sessions)]
        about = clean_line(sessions[0].title if len(marks) == 1 else f"{len(marks):,} sessions")
        tried: list[Marking] = []

        async def keep(edit: MarkEdit) -> None:
            tried.append(self._change(sessions, edit, "marked"))
            await tried[-1].keep()

        screen = MarksScreen(about, marks, tags_in_use(self._feed.marks), keep)
        if await self._app.push_screen_wait(screen):
            tried[-1].say()

    def toggle(
        self, sessions: Sequence[Summary], state: Literal["pinned", "archived"]
    ) -> Marking | None:
        """Pin or archive sessions, or where all of them are, no longer; None = it can't be done."""
        from gemtui.marks import MarkEdit

        if self._say_no_marks():
            return None
        on = not all(getattr(self._feed.of(each.id), state) for each in sessions)
        edit = MarkEdit(pinned=on) if state == "pinned" else MarkEdit(archived=on)
        off = {"pinned": "unpinned", "archived": "no longer archived"}[state]
        return self._change(sessions, edit, state if on else off)

    def _change(self, sessions: Sequence[Summary], edit: MarkEdit, done: str) -> Marking:
        marking = Marking(self._app, self._feed, sessions, edit, done)
        self._done.add(marking)
        return marking

    def _say_no_marks(self) -> bool:
        """Say why there are no marks to change, if so."""
        problem = self._feed.problem
        if problem is not None:
            self._app.say(str(problem), problem=True)
        return problem is not None


class Marking:
    """One change of the marks of sessions: shown at once, to be kept, and taken back.

    `done`: what is done to them, such as "pinned". Raises MarkError for what can't be kept.
    """

    def __init__(
        self,
        app: AppBase,
        feed: MarksFeed,
        sessions: Sequence[Summary],
        edit: MarkEdit,
        done: str,
    ) -> None:
        self._app, self._feed, self._sessions = app, feed, sessions
        self._change = feed.change(list(dict.fromkeys(each.id for each in sessions)), edit)
        self._done = done
        self.undoable = True

    async def keep(self) -> None:
        """Wait until it is in the file. Raises MarkError, MarksUnreadable."""
        try:
            await asyncio.shield(asyncio.wrap_future(self._change.kept))
        except GemtuiError:
            self.undoable = False
            raise

    async def finish(self) -> None:
        """Wait likewise; say what was done, or why it was not."""
        try:
            await self.keep()
        except GemtuiError as error:
            self._app.say(str(error), problem=True)
        else:
            self.say()

    def say(self) -> None:
        """Say what was done."""
        undo = BY_ID["sessions.undo"].footer()
        self._app.say(f"{self._done.capitalize()}: {self._about}, {undo} to undo")

    async def undo(self) -> Sequence[Summary]:
        """Take it back, and say so; return those that lists show."""
        try:
            await asyncio.shield(asyncio.wrap_future(self._feed.undo(self._change)))
        except GemtuiError as error:
            self._app.say(str(error), problem=True)
            return ()
        self.undoable = False
        self._app.say(f"Undone: {self._done} {self._about}")
        return [each for each in self._sessions if not self._feed.of(each.id).archived]

    @property
    def _about(self) -> str:
        count = len(self._change.before)
        if count > 1:
            return f"{count:,} sessions"
        title = clean_line(named(self._sessions[0], self._feed.marks).title)
        return ellipsis(title, _TITLE, mark=self._app.glyphs.ellipsis)
