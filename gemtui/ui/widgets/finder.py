"""Runs a transcript's searches in a thread and moves the transcript to their hits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from textual.message import Message
from textual.worker import get_current_worker

from gemtui.transcript.model import Transcript
from gemtui.transcript.search import Hit, find
from gemtui.ui.theme import Look
from gemtui.ui.widgets.finding import MOST, NOTHING, Marker, Search
from gemtui.ui.widgets.marking import Mark
from gemtui.ui.widgets.sheet import Place
from gemtui.ui.widgets.targets import Cursor

if TYPE_CHECKING:
    from gemtui.ui.widgets.transcript import TranscriptView

PAUSE = 0.05
"""Seconds between two reports of a search."""


class HitsFound(Message, bubble=False):
    """Some more hits of the search with this number, the last ones if `done`."""

    def __init__(self, request: int, hits: Sequence[Hit], *, done: bool) -> None:
        super().__init__()
        self.request, self.hits, self.done = request, hits, done


class Finder:
    """The search of one view.

    Every thread has a number, and what an older one still says is dropped. When the transcript
    changes, the part from the first change on is searched again, after what is under way.
    """

    def __init__(self, view: TranscriptView) -> None:
        self._view = view
        self._search: Search | None = None
        self._marker: Marker | None = None
        self._request = 0
        self._again: int | None = None
        self._moves = False

    @property
    def marks(self) -> Callable[[Place, Look], Sequence[Mark]] | None:
        """What marks the hits on a line, None without a search."""
        return None if self._marker is None else self._marker.marks

    def find(self, query: str) -> None:
        """Begins another search, from where the one before began."""
        if not (query := query.strip()):
            self.clear()
            return
        here = self._here() if self._search is None else self._search.origin
        self._search = Search(query, here)
        self._marker = Marker(self._search)
        self._again, self._moves = None, True
        self._view.word = ""
        self._start(0)
        self._say()

    def clear(self) -> None:
        """No search any more."""
        if self._search is not None:
            self._request += 1
            self._view.workers.cancel_group(self._view, "find")
            self._search = self._marker = None
            self._say()

    def changed(self, same: int) -> None:
        """The transcript has changed from message `same` on."""
        if self._search is not None and same < self._view.total:
            self._again = same if self._again is None else min(same, self._again)
            self._go_on()

    def step(self, step: int) -> None:
        """To the next (1) or previous (-1) hit as seen from the cursor."""
        if self._search is None:
            return
        self._moves = False
        if self._search.step(step, self._here()) is not None:
            self._reveal()
        wrapped = self._search.wrapped
        self._view.word = f"search goes on from the {wrapped}" if wrapped else ""
        self._say()

    def take(self, message: HitsFound) -> None:
        """What a thread found."""
        if message.request != self._request or self._search is None:
            return
        chosen = self._search.add(message.hits, done=message.done)
        if chosen and self._moves:
            self._moves = False
            self._reveal()
        self._go_on()
        self._say()

    def _here(self) -> tuple[int, int]:
        message, block = self._view.page.cursor
        return message, -1 if block is None else block

    def _go_on(self) -> None:
        """Searches what has changed meanwhile."""
        if self._search is not None and self._search.done and self._again is not None:
            first, self._again = self._again, None
            self._search.cut(first)
            self._start(first)

    def _start(self, first: int) -> None:
        assert self._search is not None
        self._request += 1
        look_through = partial(
            self._look_through,
            self._request,
            self._search.query,
            _from(self._view.page.transcript, first),
            first,
        )
        self._view.run_worker(look_through, thread=True, exclusive=True, group="find")

    def _look_through(self, request: int, query: str, transcript: Transcript, first: int) -> None:
        """In the thread: reports now and then, and at the end."""
        worker, post = get_current_worker(), self._view.post_message
        hits: list[Hit] = []
        count, reported = 0, monotonic()
        for hit in find(transcript, query, cancelled=lambda: worker.is_cancelled):
            hits.append(hit._replace(message=hit.message + first))
            if (count := count + 1) >= MOST:
                break
            if monotonic() - reported > PAUSE:
                post(HitsFound(request, hits, done=False))
                hits, reported = [], monotonic()
        post(HitsFound(request, hits, done=True))

    def _reveal(self) -> None:
        """Brings the current hit in sight; unfolds its block if it is not to be seen."""
        if self._search is None or (hit := self._search.current_hit()) is None:
            return
        page, marker = self._view.page, self._marker
        assert marker is not None
        page.go(Cursor(hit.message, hit.block))
        if not marker.shown(hit.message, page.sheet.drawn(hit.message)):
            page.fold(False)
        spots = marker.current(hit.message, page.sheet.drawn(hit.message))
        if spots:
            page.go(Cursor(hit.message, hit.block), line=spots[0].line)

    def _say(self) -> None:
        self._view.found = NOTHING if self._search is None else self._search.found
        self._view.refresh_page()


def _from(transcript: Transcript, first: int) -> Transcript:
    """The transcript from one of its messages on."""
    if not first:
        return transcript
    read = transcript.read
    return replace(
        transcript,
        outlines=transcript.outlines[first:],
        read=lambda index: read(index + first),
    )
