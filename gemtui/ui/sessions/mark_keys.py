"""Key actions that change the names, tags, notes and pins of sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from gemtui.sessions.catalog.summary import Summary
from gemtui.text import clean_line
from gemtui.ui.kit.screens import background, dialog
from gemtui.ui.sessions.marking import Marking, tags_in_use
from gemtui.ui.sessions.pane_base import SessionsPart

if TYPE_CHECKING:
    from gemtui.marks import MarkEdit


class MarkKeys(SessionsPart):
    """Key actions that change the user's marks on sessions: name, tags, note and pin.

    The changes can be undone.
    """

    def can(self, action: str) -> bool:
        """Return whether there are sessions to mark."""
        del action
        return self.screen.chosen is not None or bool(self.screen.sessions.selection.keys)

    @dialog
    async def action_marks(self) -> None:
        from gemtui.ui.sessions.marks_dialog import MarksScreen

        app, feed, sessions = self.screen.gemtui, self.screen.marks, self.screen.targets
        if not sessions or self._say_no_marks():
            return
        marks = [feed.of(id) for id in dict.fromkeys(each.id for each in sessions)]
        about = clean_line(sessions[0].title if len(marks) == 1 else f"{len(marks):,} sessions")
        tried: list[Marking] = []

        async def keep(edit: MarkEdit) -> None:
            tried.append(self._change(sessions, edit, "marked"))
            await tried[-1].wait_saved()

        ids = " ".join(each.id for each in sessions)
        shown = MarksScreen(about, marks, tags_in_use(feed.marks), keep, subject=ids)
        if await app.push_screen_wait(shown):
            tried[-1].report()

    def action_pin(self) -> None:
        """Pin the selected sessions; if all of them are pinned already, unpin them."""
        self._toggle("pinned")

    def action_archive(self) -> None:
        """Archive the selected sessions; if all are archived already, unarchive them."""
        self._toggle("archived")
        self.screen.sessions.selection.keep_listed()

    def _toggle(self, state: Literal["pinned", "archived"]) -> None:
        from gemtui.marks import MarkEdit

        if not self._say_no_marks():
            sessions = self.screen.targets
            on = not all(getattr(self.screen.marks.of(each.id), state) for each in sessions)
            edit = MarkEdit(pinned=on) if state == "pinned" else MarkEdit(archived=on)
            off = {"pinned": "unpinned", "archived": "unarchived"}[state]
            self._finish(self._change(sessions, edit, state if on else off))
        self.screen.refresh_bindings()

    @background("keep")
    async def _finish(self, marking: Marking) -> None:
        await marking.finish()

    def _change(self, sessions: Sequence[Summary], edit: MarkEdit, done: str) -> Marking:
        marking = Marking(self.screen.gemtui, self.screen.marks, sessions, edit, done)
        self.screen.done.add(marking)
        return marking

    def _say_no_marks(self) -> bool:
        """If marks can't be changed, show why and return True; otherwise return False.

        A corrupt file is renamed, so that the next mark starts a new file.
        """
        broken = self.screen.marks.problem is not None
        if broken:
            self._set_aside()
        return broken

    @background("keep")
    async def _set_aside(self) -> None:
        with self.screen.gemtui.reporting():
            await asyncio.shield(asyncio.wrap_future(self.screen.marks.set_aside()))
            self.screen.gemtui.show_message("Marks work again. Press the key again.")
