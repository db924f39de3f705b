"""A search in one transcript: its hits and their places in rendered messages."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import Struct

from gemtui.transcript.search import TranscriptHit
from gemtui.ui.draw.theme import Look, Role
from gemtui.ui.transcript.drawing import Drawn, DrawnBlock
from gemtui.ui.transcript.layout import LayoutLine
from gemtui.ui.transcript.row_strip import StyledSpan

MOST = 10_000
"""Maximum number of hits to record in a search."""
KNOWN = 256
"""Maximum number of rendered messages to cache hits for."""


class MatchSpan(NamedTuple):
    """The characters `start` to `end` (exclusive) on one line of a rendered message."""

    line: int
    start: int
    end: int


class SearchState(Struct, frozen=True, kw_only=True):
    """How far a search has got, shown as in "3 of 17".

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
        return f"{self.current or '-'} of {self.total}{more}"


NOTHING = SearchState()


class TranscriptSearch:
    """A query's hits in the order of the transcript, and the current hit.

    `origin`: the (message, block) where the user started the search. The first hit at or after it
    becomes the current one as soon as it is found. `wanted`: the query as a pattern; None derives
    the pattern from the query.
    """

    def __init__(self, query: str, origin: tuple[int, int], wanted: re.Pattern[str] | None = None) -> None:
        self.query, self.origin = query, origin
        self.wanted = wanted or rendered_pattern(query)
        self.hits: list[TranscriptHit] = []
        self.current: int | None = None
        self.done = False
        self.wrapped = ""

    @property
    def full(self) -> bool:
        """Whether the maximum number of hits has been recorded."""
        return len(self.hits) >= MOST

    @property
    def found(self) -> SearchState:
        """The state of the search as a single value."""
        return SearchState(
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
        self.wrapped = "start" if index >= len(self.hits) else "end" if index < 0 else ""
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


def rendered_pattern(query: str) -> re.Pattern[str]:
    """Return a pattern that finds a query in rendered text.

    Lines may be wrapped anywhere in such text. Case matters only if the query contains a capital
    letter.
    """
    words = (r"\n?".join(map(re.escape, word)) for word in query.split())
    flags = re.NOFLAG if any(map(str.isupper, query)) else re.IGNORECASE
    return re.compile(r"\s+".join(words), flags)


def match_spans(drawn: Drawn, part: DrawnBlock, wanted: re.Pattern[str]) -> Iterator[tuple[MatchSpan, ...]]:
    """Yield each match in the lines of a block.

    A match that continues on another line has several spans. `part`: the block's lines.
    """
    lines = [_content(drawn, line) for line in range(part.start, part.end)]
    starts, text = [], ""
    for line, content in enumerate(lines, part.start):
        if line > part.start:
            text += "\n" if drawn.joints[line] is None else drawn.joints[line] or ""
        starts.append(len(text))
        text += content
    for match in wanted.finditer(text):
        first = bisect_right(starts, match.start()) - 1
        found = []
        for row in range(first, len(lines)):
            if starts[row] >= match.end():
                break
            margin, line = drawn.margins[part.start + row], part.start + row
            start = max(0, match.start() - starts[row])
            end = min(match.end() - starts[row], len(lines[row]))
            found.append(MatchSpan(line, margin + start, margin + end))
        yield tuple(found)


def _content(drawn: Drawn, line: int) -> str:
    return drawn.strips[line].text[drawn.margins[line] :]


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
            StyledSpan(spot.start, spot.end, look[Role.MATCH_CURRENT if spots is now else Role.MATCH])
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
            found = {block: list(match_spans(drawn, part, self._pattern)) for block, part in parts if block is not None}
            known = self._known[message] = drawn, found
        return known[1]
