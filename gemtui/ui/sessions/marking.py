"""Names and tags of sessions, and undoable changes to the user's marks."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gemtui.errors import GemtuiError
from gemtui.sessions.catalog.summary import Summary
from gemtui.text import Clean, clean_line, ellipsis
from gemtui.ui.kit.keys import BY_ID
from gemtui.ui.sessions.marks_feed import MarksFeed

if TYPE_CHECKING:
    from gemtui.marks import Mark, MarkEdit
    from gemtui.ui.kit.app_base import AppBase


BETWEEN = re.compile(r"[\s,]+")
"""Matches the separators between tags."""


def tags_in_use(marks: Mapping[str, Mark]) -> list[Clean]:
    """Return the tags in use, most frequent first."""
    uses = Counter(tag for mark in marks.values() for tag in mark.tags)
    return [clean_line(tag) for tag, _ in uses.most_common()]


def complete_tag(text: str, tags: Callable[[], Sequence[Clean]], *, sign: str = "") -> str | None:
    """Return `text` with its last word completed to a tag in use, or None.

    `tags`: returns the tags in use, preferred ones first. `sign`: only words with this prefix are
    completed.
    """
    word = BETWEEN.split(text)[-1]
    begun = word.removeprefix("#").lower()
    if not begun or not word.startswith(sign):
        return None
    found = next((tag for tag in tags() if tag.startswith(begun)), None)
    return None if found is None else text + found[len(begun) :]


_TITLE = 40
"""Maximum width in cells of a session's title in a message."""


def named(session: Summary, marks: Mapping[str, Mark]) -> Summary:
    """Return a copy of a session's summary, titled with the name the user gave it.

    If the user hasn't named the session, the summary is returned unchanged.
    """
    mark = marks.get(session.id)
    return session if mark is None or mark.name is None else replace(session, title=mark.name)


class Marking:
    """An undoable change to sessions' marks, shown immediately and then saved.

    `edit`: the change. `done`: words for the message after the change, such as "pinned". Raises
    MarkError for invalid values.
    """

    def __init__(self, app: AppBase, feed: MarksFeed, sessions: Sequence[Summary], edit: MarkEdit, done: str) -> None:
        self._app, self._feed, self._sessions = app, feed, sessions
        self._change = feed.change(list(dict.fromkeys(each.id for each in sessions)), edit)
        self._done = done
        self.undoable = True

    async def wait_saved(self) -> None:
        """Wait until the change has been saved.

        Raises MarkError or MarksUnreadable if it couldn't be saved.
        """
        try:
            await asyncio.shield(asyncio.wrap_future(self._change.kept))
        except GemtuiError:
            self.undoable = False
            raise

    async def finish(self) -> None:
        """Wait until the change has been saved; show what was changed, or why it failed."""
        with self._app.reporting():
            await self.wait_saved()
            self.report()

    def report(self) -> None:
        """Show a message that says what was changed and how to undo it."""
        undo = BY_ID["sessions.undo"].footer()
        self._app.show_message(f"{self._done.capitalize()}: {self._about}, {undo} to undo")

    async def undo(self) -> Sequence[Summary]:
        """Undo the change, and show a message about it.

        Returns the affected sessions that are now listed, that is, those that aren't archived.
        """
        with self._app.reporting():
            await asyncio.shield(asyncio.wrap_future(self._feed.undo(self._change)))
            self.undoable = False
            self._app.show_message(f"Undone: {self._done} {self._about}")
            return [each for each in self._sessions if not self._feed.of(each.id).archived]
        return ()

    @property
    def _about(self) -> str:
        count = len(self._change.before)
        if count > 1:
            return f"{count:,} sessions"
        title = clean_line(named(self._sessions[0], self._feed.marks).title)
        return ellipsis(title, _TITLE, mark=self._app.glyphs.ellipsis)
