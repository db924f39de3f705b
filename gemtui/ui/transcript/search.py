"""The search in a transcript: its hits, their places in rendered messages, and its field."""

from __future__ import annotations

import re
from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from time import monotonic
from typing import ClassVar, NamedTuple

from msgspec import Struct
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
from gemtui.transcript.search import TranscriptHit, find, pattern
from gemtui.ui.draw.theme import Look, Role
from gemtui.ui.kit.clean_widgets import Input, Static
from gemtui.ui.kit.keys import BY_ID, Where, bindings
from gemtui.ui.transcript.cursor import Cursor
from gemtui.ui.transcript.layout import LayoutLine
from gemtui.ui.transcript.message import Drawn, DrawnBlock
from gemtui.ui.transcript.row_strip import StyledSpan
from gemtui.ui.transcript.viewport import Viewport

MOST = 10_000
"""Maximum number of hits to record in a search."""
KNOWN = 256
"""Maximum number of rendered messages to cache hits for."""

PAUSE = 0.05
"""Seconds between two progress reports of a search."""


class MatchSpan(NamedTuple):
    """The characters `start` to `end` (exclusive) on one line of a rendered message."""

    line: int
    start: int
    end: int


class FindState(Struct, frozen=True, kw_only=True):
    """The progress of a search, shown as in "3 of 17".

    `current`: the number of the current hit, counted from 1; 0 if there is none.
    """

    query: str = ""
    current: int = 0
    total: int = 0
    done: bool = True
    full: bool = False
    """Whether there are more hits than have been recorded."""
    wrapped: str = ""
    """Where the search continued if the last step wrapped: "start", "end" or ""."""

    def __str__(self) -> str:
        more = "+" if self.full or not self.done else ""
        if not self.total:
            return "no match" if self.done else "searching"
        if not self.current:
            return f"counting: {self.total:,} so far"
        return f"{self.current} of {self.total}{more}"


NOTHING = FindState()


class TranscriptSearch:
    """A query's hits in the order of the transcript, and the current hit.

    `origin`: the (message, block) where the user started the search. The first hit at or after it
    becomes the current one as soon as it is found. `wanted`: the query as a pattern; None derives
    the pattern from the query.
    """

    def __init__(
        self, query: str, origin: tuple[int, int], wanted: re.Pattern[str] | None = None
    ) -> None:
        self.query, self.origin = query, origin
        self.wanted = wanted or pattern(query)
        self.hits: list[TranscriptHit] = []
        self.current: int | None = None
        self.done = False
        self.wrapped = ""

    @property
    def full(self) -> bool:
        """Whether the maximum number of hits has been recorded."""
        return len(self.hits) >= MOST

    @property
    def found(self) -> FindState:
        """The state of the search as a single value."""
        return FindState(
            query=self.query,
            current=0 if self.current is None else self.current + 1,
            total=len(self.hits),
            done=self.done,
            full=self.full,
            wrapped=self.wrapped,
        )

    def add(self, hits: Iterable[TranscriptHit], *, done: bool) -> None:
        """Add the next hits, and choose the current hit if there is none yet.

        The current hit becomes the first one at or after `origin` or, if the search is done and
        there is none, the first hit. `done`: whether there are no more hits.
        """
        room = MOST - len(self.hits)
        self.hits += [hit for hit, _ in zip(hits, range(room), strict=False)]
        self.done = done
        if self.current is not None or not self.hits:
            return
        index = bisect_left(self.hits, self.origin, key=_place)
        if index < len(self.hits) or done:
            self.current = index % len(self.hits)

    def remove_from(self, message: int) -> None:
        """Remove the hits from this message on, because these messages are searched again."""
        del self.hits[bisect_left(self.hits, (message, -1), key=_place) :]
        self.done = False
        if self.current is not None and self.current >= len(self.hits):
            self.current = None

    def step(self, step: int, here: tuple[int, int]) -> TranscriptHit | None:
        """Move to the next (1) or previous (-1) hit from the cursor, and return that hit.

        After the last hit, the search continues with the first, and vice versa. `here`: the
        cursor's (message, block).
        """
        if not self.hits:
            return None
        index = self._from(step, here)
        if index >= len(self.hits):
            self.wrapped = "start"
        else:
            self.wrapped = "end" if index < 0 else ""
        self.current = index % len(self.hits)
        return self.hits[self.current]

    def _from(self, step: int, here: tuple[int, int]) -> int:
        if self.current is not None and _place(self.hits[self.current]) == here:
            return self.current + step
        if step > 0:
            return bisect_left(self.hits, here, key=_place)
        return bisect_right(self.hits, here, key=_place) - 1

    def current_hit(self) -> TranscriptHit | None:
        """Return the current hit, or None."""
        return None if self.current is None else self.hits[self.current]

    def ordinal(self) -> int:
        """Return the current hit's 0-based position among the hits in its block."""
        if self.current is None:
            return 0
        return self.current - bisect_left(self.hits, _place(self.hits[self.current]), key=_place)


def _place(hit: TranscriptHit) -> tuple[int, int]:
    return hit.message, hit.block


def match_spans(
    drawn: Drawn, part: DrawnBlock, wanted: re.Pattern[str]
) -> Iterator[tuple[MatchSpan, ...]]:
    """Yield each match in the lines of a block.

    A match that continues on another line has several spans. `part`: the block's lines. The frame
    at the left is left out, except in a card's last line, where the frame itself has words.
    """
    margins = [*drawn.margins[part.start : part.end]]
    texts = [drawn.strips[line].text for line in range(part.start, part.end)]
    if margins and margins[-1] >= len(texts[-1]):
        margins[-1] = 0
    lines = [text[margin:] for text, margin in zip(texts, margins, strict=True)]
    starts = []
    text = ""
    for line, content in enumerate(lines, part.start):
        if line > part.start:
            text += "\n" if drawn.joints[line] is None else drawn.joints[line] or ""
        starts.append(len(text))
        text += content
    for match in wanted.finditer(text):
        first = bisect_right(starts, match.start()) - 1
        spans = []
        for row in range(first, len(lines)):
            if starts[row] >= match.end():
                break
            margin = margins[row]
            line = part.start + row
            start = max(0, match.start() - starts[row])
            end = min(match.end() - starts[row], len(lines[row]))
            spans.append(MatchSpan(line, margin + start, margin + end))
        yield tuple(spans)


class HitMarker:
    """Finds and marks a search's hits in rendered messages."""

    def __init__(self, search: TranscriptSearch) -> None:
        self._search = search
        self._pattern = search.wanted
        self._known: dict[int, tuple[Drawn, dict[int, list[tuple[MatchSpan, ...]]]]] = {}

    def marks(self, place: LayoutLine, look: Look) -> list[StyledSpan]:
        """Return the styles of the hits on a line; the current hit is emphasised."""
        now = self.current(place.message, place.drawn)
        found = (
            StyledSpan(
                spot.start, spot.end, look[Role.MATCH_CURRENT if spots is now else Role.MATCH]
            )
            for occurrences in self._spots(place.message, place.drawn).values()
            for spots in occurrences
            for spot in spots
            if spot.line == place.line
        )
        return list(found)

    def current(self, message: int, drawn: Drawn) -> tuple[MatchSpan, ...] | None:
        """Return the spans of the current hit, or None if this message doesn't show it.

        A rendered message may show fewer matches than its source contains. If the current hit isn't
        among them, the last one shown is used instead.
        """
        hit = self._search.current_hit()
        if hit is None or hit.message != message:
            return None
        found = self._spots(message, drawn).get(hit.block)
        return found[min(self._search.ordinal(), len(found) - 1)] if found else None

    def shown(self, message: int, drawn: Drawn) -> bool:
        """Return whether the message shows the current hit, that is, doesn't fold it away."""
        hit = self._search.current_hit()
        found = None if hit is None else self._spots(message, drawn).get(hit.block)
        return found is not None and self._search.ordinal() < len(found)

    def _spots(self, message: int, drawn: Drawn) -> dict[int, list[tuple[MatchSpan, ...]]]:
        known = self._known.get(message)
        if known is None or known[0] is not drawn:
            if len(self._known) >= KNOWN:
                self._known.clear()
            parts = ((part.block, part) for part in drawn.parts)
            found = {
                block: list(match_spans(drawn, part, self._pattern))
                for block, part in parts
                if block is not None
            }
            known = self._known[message] = drawn, found
        return known[1]


@dataclass
class HitsFound(Message, bubble=False):
    """Posted by a background thread whose search has found hits.

    `request`: the thread's number. `done`: whether the search is complete.
    """

    request: int
    hits: Sequence[TranscriptHit]
    done: bool


class Finder:
    """The search in a transcript view.

    Each search runs on a background thread, which has a number, so that results from earlier ones
    can be ignored. When the transcript changes, everything from the first change on is searched
    again, once the current search has finished.
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
        """A function that marks the hits on a line, or None if there is no search."""
        return None if self._marker is None else self._marker.marks

    def find(self, query: str, wanted: re.Pattern[str] | None = None) -> None:
        """Search for a query from where the previous search started, or from the cursor.

        If the query is empty, the search ends. `wanted`: the query as a pattern; None derives the
        pattern from the query.
        """
        query = query.strip()
        if not query:
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
        """Search again from message `same` on, because the transcript has changed there."""
        if self._search is not None:
            self._again = same if self._again is None else min(same, self._again)
            self._go_on()

    def step(self, step: int) -> None:
        """Move to the next (1) or previous (-1) hit from the cursor."""
        if self._search is None:
            return
        self._moves = False
        if self._search.step(step, self._here()) is not None:
            self._reveal()
        wrapped = self._search.wrapped
        self._view.word = f"search continued from the {wrapped}" if wrapped else ""
        self._say()

    def add_hits(self, message: HitsFound) -> None:
        """Add the hits that a search thread has found, unless a newer one is running."""
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
        """Once a search is complete, search what has changed in the meantime."""
        if self._search is not None and self._search.done and self._again is not None:
            first = self._again
            self._again = None
            self._search.remove_from(first)
            self._start(first)

    def _start(self, first: int) -> None:
        assert self._search is not None
        self._request += 1
        look_through = partial(
            self._look_through,
            self._request,
            self._search.wanted,
            _from(self._view.page.transcript, first),
            first,
        )
        self._view.run_worker(look_through, thread=True, exclusive=True, group="find")

    def _look_through(
        self, request: int, wanted: re.Pattern[str], transcript: Transcript, first: int
    ) -> None:
        """Search a transcript on a background thread, posting hits as they are found.

        `request`: the thread's number. `first`: the index in the view of the transcript's first
        message.
        """
        worker = get_current_worker()
        post = self._view.post_message
        hits: list[TranscriptHit] = []
        reported = monotonic()
        all_hits = find(transcript, wanted, cancelled=lambda: worker.is_cancelled)
        for hit in islice(all_hits, MOST):
            hits.append(hit._replace(message=hit.message + first))
            if monotonic() - reported > PAUSE:
                post(HitsFound(request, hits, done=False))
                hits = []
                reported = monotonic()
        post(HitsFound(request, hits, done=True))

    def _reveal(self) -> bool:
        """Scroll to the current hit, unfolding its block if necessary.

        Returns False if there is no current hit, or if the transcript has changed there since it
        was found.
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
    """Return the transcript without the messages before index `first`."""
    if not first:
        return transcript
    read = transcript.read
    return replace(
        transcript, outlines=transcript.outlines[first:], read=lambda index: read(index + first)
    )


class SearchedView(ScrollView, inherit_bindings=False):
    """A transcript view with a search.

    The `/` key starts the search, and n and N move between hits. `finder`: the search. `page`: the
    visible part of the transcript. `word`: a note for the status line on what the last key did.
    """

    finder: Finder
    page: Viewport
    word: str
    found: var[FindState] = var(NOTHING)
    """The progress of the search."""

    _bar: FindBar | None = None

    @property
    def total(self) -> int:
        """The transcript's number of messages."""
        return len(self.page.sheet)

    @abstractmethod
    def refresh_page(self) -> None:
        """Redraw the visible part of the transcript."""

    def act(self, act: Callable[[], object], word: str = "") -> None:
        """Run an action on the visible part of the transcript, and redraw that.

        If the action returns False because there is nothing to do, the note `word` is shown.
        """
        self.word = word if act() is False else ""
        self.refresh_page()

    def find(self, query: str, wanted: re.Pattern[str] | None = None) -> None:
        """Mark the matches of a query, and go to the first one below the cursor.

        An empty query ends the search. `wanted`: the query as a pattern; None derives the pattern
        from the query.
        """
        self.finder.find(query, wanted)

    async def action_find(self) -> None:
        assert isinstance(self.parent, Widget)
        if self._bar is None or not self._bar.is_attached:
            self._bar = FindBar(self)
            await self.parent.mount(self._bar, after=self)
        else:
            self._bar.focus_input()

    def close_find(self) -> None:
        """End the search and remove its field."""
        self.finder.clear()
        if self._bar is not None and self._bar.is_attached:
            self._bar.remove()

    def leave_find(self) -> bool:
        """End the search, unless its words are being typed; return whether it has ended.

        Words that are typed while something else is loaded are meant for that.
        """
        is_typed = self._bar is not None and self._bar.has_focus_within
        if not is_typed:
            self.close_find()
        return not is_typed

    async def handle_key(self, event: events.Key) -> bool:
        """Show a note if n or N is pressed without a search.

        The keys are not passed on, because they may mean something else to the screen.
        """
        if event.key in ("n", "N") and not self.found.query:
            event.stop()
            self.word = (
                f"no search to continue; press {BY_ID['transcript.find'].footer()} to start one"
            )
            self.refresh_page()
            return True
        return await super().handle_key(event)

    def watch_found(self, before: FindState, found: FindState) -> None:
        """Enable the keys for the next and previous hit only during a search."""
        if bool(before.query) != bool(found.query):
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action is available right now."""
        del parameters
        return action != "match" or bool(self.found.query)

    def action_match(self, step: int) -> None:
        """Move to the next hit (`step` 1) or the previous one (-1)."""
        self.finder.step(step)

    @on(HitsFound)
    def _hits_found(self, message: HitsFound) -> None:
        message.stop()
        self.finder.add_hits(message)


class FindBar(Horizontal):
    """A field that searches its transcript on every key press and counts the hits.

    The transcript view mounts the bar below itself. Closing the bar doesn't end the search, so n
    and N still work.
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
        yield Static("/", classes="slash")
        yield Input(visible_line(self._view.found.query), placeholder="find in this transcript")
        yield Static(classes="count")

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self.watch(self._view, "found", self._say)

    def _say(self, found: FindState) -> None:
        state = str(found) if found.query else ""
        again = f"wrapped to the {found.wrapped}  " if found.wrapped else ""
        self.query_one(".count", Static).update(visible_line(again + state))

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
        """Focus the input with its text selected."""
        text = self.query_one(Input)
        text.focus()
        text.select_all()

    def action_match(self, step: int) -> None:
        """Move to the next hit (`step` 1) or the previous one (-1)."""
        self._view.action_match(step)

    def action_close(self) -> None:
        self._view.focus()
        self.remove()
