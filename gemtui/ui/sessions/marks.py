"""The user's marks on sessions: names and tags, the file of marks, and undoable changes.

This module uses asyncio but no widgets. A single background thread does all work on the file, in
the order in which it was requested. A change is shown immediately, and it is saved even if the
user's next key quits the app.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from gemtui.errors import GemtuiError, MarksUnreadable
from gemtui.sessions.catalog.summary import Summary, named
from gemtui.text import clean_line, ellipsis
from gemtui.ui.kit.keys import BY_ID

if TYPE_CHECKING:
    from gemtui.marks import Mark, MarkEdit, Marks
    from gemtui.ui.kit.app_base import AppBase


BETWEEN = re.compile(r"[\s,]+")
"""Matches the separators between tags."""

_TITLE = 40
"""Maximum width in cells of a session's title in a message."""
T = TypeVar("T")
LOOK = 1.0
"""Seconds between two checks for changes that other programs made to the file."""
_FRESH = 1_000_000_000
"""Nanoseconds within which a second change may keep the same modification time.

A file that was modified more recently than that is therefore read again.
"""
_MISSING: tuple[int, ...] = ()
_UNKNOWN: tuple[int, ...] = (-1,)
NO_MARKS: Mapping[str, Mark] = MappingProxyType({})


def tags_in_use(marks: Mapping[str, Mark]) -> list[str]:
    """Return the tags in use, most frequent first."""
    uses = Counter(tag for mark in marks.values() for tag in mark.tags)
    return [clean_line(tag) for tag, _ in uses.most_common()]


def complete_tag(text: str, tags: Callable[[], Sequence[str]], *, sign: str = "") -> str | None:
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


class Marking:
    """An undoable change to sessions' marks, shown immediately and then saved.

    `edit`: the change. `done`: words for the message after the change, such as "pinned". Raises
    MarkError for invalid values.
    """

    def __init__(
        self, app: AppBase, feed: MarksFeed, sessions: Sequence[Summary], edit: MarkEdit, done: str
    ) -> None:
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


class MarksFeed:
    """The user's marks on sessions, which are stored in a file.

    `run` follows the file until cancelled. `show`: called in the event loop whenever `marks` or
    `problem` has changed.
    """

    def __init__(self, path: Path, show: Callable[[], None]) -> None:
        self.marks = NO_MARKS
        """The marks by session id, including changes that are still being saved."""
        self.problem: MarksUnreadable | None = None
        """Why the file can't be used, or None; `marks` are then as last read."""
        self.ready = asyncio.Event()
        """Set once the file has been read for the first time, or couldn't be read."""
        self._path, self._show = path, show
        self._thread = ThreadPoolExecutor(1, "marks")
        self._stored, self._known = NO_MARKS, _UNKNOWN
        self._changing = 0
        self._news = asyncio.Event()
        self._reading: Future[_Read | None] | None = None
        self.read()

    async def run(self) -> None:
        """Load the file now, and again whenever it has changed, until cancelled."""
        while True:
            await asyncio.wrap_future(self.read())
            self.use_if_read()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), LOOK)
            self._news.clear()

    async def close(self) -> None:
        """Wait until all changes have been saved."""
        await asyncio.to_thread(self._thread.shutdown)

    def read(self) -> Future[_Read | None]:
        """Start to read the file, unless that has been started."""
        if self._reading is None:
            self._reading = self._thread.submit(_read_if_changed, self._path, self._known)
        return self._reading

    def use_if_read(self) -> None:
        """Use the marks that have been read of the file since the last call, if it is read."""
        if self._reading is None or not self._reading.done():
            return
        read, self._reading = self._reading.result(), None
        self.ready.set()
        if read is None:
            return
        if read.problem is None:
            self._stored = read.marks
        is_final = read.problem is None and not _is_fresh(read.stamp)
        self._known = read.stamp if is_final else _UNKNOWN
        same = self._stored == self.marks and str(read.problem) == str(self.problem)
        if not (same or self._changing):
            self.marks, self.problem = self._stored, read.problem
            self._show()

    def of(self, session: str) -> Mark:
        """Return the mark of the session with this id; an empty mark if it has none."""
        from gemtui.marks import Mark

        return self.marks.get(session) or Mark(session=session)

    def change(self, sessions: Sequence[str], edit: MarkEdit) -> MarkChange:
        """Change the marks of the sessions with these ids, and start saving the change.

        Raises MarkError for invalid values.
        """
        now = datetime.now(UTC)
        before = [self.of(session) for session in sessions]
        self._take([edit.apply(mark, now) for mark in before])
        return MarkChange(edit, before, self._write(lambda marks: marks.edit(sessions, edit)))

    def undo(self, change: MarkChange) -> Future[None]:
        """Undo a change, keeping any later ones, and start saving the result."""
        now = datetime.now(UTC)
        self._take([change.edit.undo(self.of(mark.session), mark, now) for mark in change.before])
        return self._write(lambda marks: marks.undo(change.edit, change.kept.result()))

    def set_aside(self) -> Future[tuple[Mark, ...]]:
        """Rename a corrupt file; the future raises MarksUnreadable with its new path."""
        from gemtui.marks import MarkEdit

        return self._write(lambda marks: marks.edit((), MarkEdit()))

    def _take(self, marks: Iterable[Mark]) -> None:
        """Use these marks from now on, even though they may still have to be saved."""
        self.marks = MappingProxyType({**self.marks, **{mark.session: mark for mark in marks}})
        self._show()

    def _write(self, work: Callable[[Marks], T]) -> Future[T]:
        """Change the file once all earlier requests are done, then reload it.

        `work`: a function that makes the change, on the background thread. Its result becomes that
        of the returned future.
        """
        from gemtui.marks import Marks

        loop = asyncio.get_running_loop()
        self._changing += 1
        done = self._thread.submit(lambda: work(Marks(self._path)))
        done.add_done_callback(lambda _: loop.call_soon_threadsafe(self._written))
        return done

    def _written(self) -> None:
        self._changing -= 1
        self._known = _UNKNOWN
        self._news.set()


class MarkChange(NamedTuple):
    """A change of marks, along with the marks that were shown before it.

    `kept`: a future that completes once the change is saved. Its result is the marks that were in
    the file before; its exceptions are those of `Marks.edit`.
    """

    edit: MarkEdit
    before: Sequence[Mark]
    kept: Future[tuple[Mark, ...]]


class _Read(NamedTuple):
    """What was read of the file of marks, its `_stamp` before, and why it can't be read."""

    stamp: tuple[int, ...]
    marks: Mapping[str, Mark] = NO_MARKS
    problem: MarksUnreadable | None = None


def _read_if_changed(path: Path, known: tuple[int, ...]) -> _Read | None:
    """Return what is in the file, or None if its `_stamp` is still `known`."""
    stamp = _stamp(path)
    if stamp == known:
        return None
    if stamp == _MISSING:
        return _Read(stamp)
    from gemtui.marks import Marks  # loads SQLite, which the first rows don't need

    try:
        return _Read(stamp, Marks(path).all())
    except MarksUnreadable as error:
        return _Read(stamp, problem=error)


def _stamp(path: Path) -> tuple[int, ...]:
    """Return a value that changes whenever the file does.

    There are distinct values for a missing file and for each reason why a file can't be read.
    """
    try:
        facts = path.stat()
    except FileNotFoundError:
        return _MISSING
    except OSError as error:
        return (error.errno or 0,)
    return facts.st_mtime_ns, facts.st_ino, facts.st_size


def _is_fresh(stamp: tuple[int, ...]) -> bool:
    return bool(stamp) and abs(time.time_ns() - stamp[0]) < _FRESH
