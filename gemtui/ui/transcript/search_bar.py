"""The line below a transcript for typing a search, and the search itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.reactive import var
from textual.scroll_view import ScrollView
from textual.widget import Widget
from textual.worker import get_current_worker

from gemtui.text import visible_line
from gemtui.transcript.model import Transcript
from gemtui.transcript.search import TranscriptHit, find
from gemtui.ui.draw.lines import own
from gemtui.ui.draw.theme import Look
from gemtui.ui.kit.clean_widgets import Input, Static
from gemtui.ui.kit.keys import BY_ID, Where, bindings
from gemtui.ui.transcript.cursor import Cursor
from gemtui.ui.transcript.layout import LayoutLine
from gemtui.ui.transcript.row_strip import StyledSpan
from gemtui.ui.transcript.search import MOST, NOTHING, HitMarker, SearchState, TranscriptSearch
from gemtui.ui.transcript.viewport import Viewport

PAUSE = 0.05
"""Seconds between two reports of a search."""


class HitsFound(Message, bubble=False):
    """Some more hits of the search with this number, the last ones if `done`."""

    def __init__(self, request: int, hits: Sequence[TranscriptHit], *, done: bool) -> None:
        super().__init__()
        self.request, self.hits, self.done = request, hits, done


class Finder:
    """The search of one view.

    Every thread has a number, and results of an older one are dropped. When the transcript changes,
    the part from the first change on is searched again, after the search in progress.
    """

    def __init__(self, view: SearchedView) -> None:
        self._view = view
        self._search: TranscriptSearch | None = None
        self._marker: HitMarker | None = None
        self._request = 0
        self._again: int | None = None
        self._moves = False

    @property
    def marks(self) -> Callable[[LayoutLine, Look], Sequence[StyledSpan]] | None:
        """What marks the hits on a line, None without a search."""
        return None if self._marker is None else self._marker.marks

    def find(self, query: str, wanted: re.Pattern[str] | None = None) -> None:
        """Start another `TranscriptSearch` from where the one before started."""
        if not (query := query.strip()):
            self.clear()
            return
        here = self._here() if self._search is None else self._search.origin
        self._search = TranscriptSearch(query, here, wanted)
        self._marker = HitMarker(self._search)
        self._again, self._moves = None, True
        self._view.word = ""
        self._start(0)
        self._say()

    def clear(self) -> None:
        """End the search."""
        if self._search is not None:
            self._request += 1
            self._view.workers.cancel_group(self._view, "find")
            self._search = self._marker = None
            self._view.word = ""
            self._say()

    def changed(self, same: int) -> None:
        """Search again what has changed: the transcript from message `same` on."""
        if self._search is not None:
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
        self._view.word = f"search continued from the {wrapped}" if wrapped else ""
        self._say()

    def take(self, message: HitsFound) -> None:
        """Take the hits that a thread has found."""
        if message.request != self._request or self._search is None:
            return
        self._search.add(message.hits, done=message.done)
        self._go_on()
        if self._moves and self._reveal():
            self._moves = False
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
            self._search.wanted or self._search.query,
            _from(self._view.page.transcript, first),
            first,
        )
        self._view.run_worker(look_through, thread=True, exclusive=True, group="find")

    def _look_through(
        self, request: int, query: str | re.Pattern[str], transcript: Transcript, first: int
    ) -> None:
        """In the thread: reports now and then, and at the end."""
        worker, post = get_current_worker(), self._view.post_message
        hits: list[TranscriptHit] = []
        count, reported = 0, monotonic()
        for hit in find(transcript, query, cancelled=lambda: worker.is_cancelled):
            hits.append(hit._replace(message=hit.message + first))
            if (count := count + 1) >= MOST:
                break
            if monotonic() - reported > PAUSE:
                post(HitsFound(request, hits, done=False))
                hits, reported = [], monotonic()
        post(HitsFound(request, hits, done=True))

    def _reveal(self) -> bool:
        """Brings the current hit in sight; unfolds its block if it is not to be seen.

        False if there is none, or it was in what has changed since.
        """
        if self._search is None or (hit := self._search.current_hit()) is None:
            return False
        if self._again is not None and hit.message >= self._again:
            return False
        page, marker = self._view.page, self._marker
        assert marker is not None
        page.go(Cursor(hit.message, hit.block))
        if not marker.shown(hit.message, page.sheet.drawn(hit.message)):
            page.fold(False)
        spots = marker.current(hit.message, page.sheet.drawn(hit.message))
        if spots:
            page.go(Cursor(hit.message, hit.block), line=spots[0].line)
        return True

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


class SearchedView(ScrollView, inherit_bindings=False):
    """What can be searched by `/`, with n and N from hit to hit; `finder` does the searching."""

    finder: Finder
    page: Viewport
    word: str
    found: var[SearchState] = var(NOTHING)
    """How far the search is."""

    _bar: FindBar | None = None

    @property
    def total(self) -> int:
        """Messages of the transcript."""
        raise NotImplementedError

    def refresh_page(self) -> None:
        """Draw again what is in sight."""
        raise NotImplementedError

    def find(self, query: str, wanted: re.Pattern[str] | None = None) -> None:
        """Marks what is found and goes to the first hit below the cursor; "" ends the search.

        `wanted`: the query as a pattern, None = as its text says.
        """
        self.finder.find(query, wanted)

    async def action_find(self) -> None:
        """Type what to find, in a line below."""
        assert isinstance(self.parent, Widget)
        if self._bar is None or not self._bar.is_attached:
            self._bar = FindBar(self)
            await self.parent.mount(self._bar, after=self)
        else:
            self._bar.focus_input()

    def close_find(self) -> None:
        """No search any more, and no line for it."""
        self.finder.clear()
        if self._bar is not None and self._bar.is_attached:
            self._bar.remove()

    async def handle_key(self, event: events.Key) -> bool:
        """n and N are about matches here: without a search they do not go on to what is around."""
        if event.key in ("n", "N") and not self.found.query:
            event.stop()
            self.word = f"no search to continue; {BY_ID['transcript.find'].footer()} starts one"
            self.refresh_page()
            return True
        return await super().handle_key(event)

    def watch_found(self, before: SearchState, found: SearchState) -> None:
        """The keys for the next and the previous hit act only in a search."""
        if bool(before.query) != bool(found.query):
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether a key does something now."""
        del parameters
        return action not in ("next_match", "previous_match") or bool(self.found.query)

    def action_next_match(self) -> None:
        """To the next hit."""
        self.finder.step(1)

    def action_previous_match(self) -> None:
        """To the hit before."""
        self.finder.step(-1)

    @on(HitsFound)
    def _hits_found(self, message: HitsFound) -> None:
        message.stop()
        self.finder.take(message)


class FindBar(Horizontal):
    """Searches its transcript with every keystroke and says which hit of how many this is.

    The transcript puts it below itself; closing it keeps the search, so that n and N go on.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.FIND)
    DEFAULT_CSS = """
    FindBar {
        height: 1;
        & > Static { width: auto; padding: 0 1; color: $text-muted; }
        & > .slash { color: $text-accent; }
        & > Input { width: 1fr; }
    }
    """

    def __init__(self, view: SearchedView) -> None:
        super().__init__()
        self._view = view

    def compose(self) -> ComposeResult:
        """Sign, input, count."""
        yield Static(own("/"), classes="slash")
        yield Input(
            visible_line(self._view.found.query), placeholder=own("find in this transcript")
        )
        yield Static(classes="count")

    def on_mount(self) -> None:
        """Type at once, and keep the count up to date."""
        self.query_one(Input).focus()
        self.watch(self._view, "found", self._say)

    def _say(self, found: SearchState) -> None:
        words = str(found) if found.query else ""
        again = f"wrapped to the {found.wrapped}  " if found.wrapped else ""
        self.query_one(".count", Static).update(visible_line(again + words))

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        if event.value.strip() != self._view.found.query:
            self._view.find(event.value)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_close()

    def focus_input(self) -> None:
        """Type on, over what is there."""
        text = self.query_one(Input)
        text.focus()
        text.select_all()

    def action_next(self) -> None:
        """To the next hit."""
        self._view.action_next_match()

    def action_previous(self) -> None:
        """To the hit before."""
        self._view.action_previous_match()

    def action_close(self) -> None:
        """Away with the bar, on with the transcript."""
        self._view.focus()
        self.remove()
