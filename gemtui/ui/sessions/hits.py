"""Hits of the full-text search: finding them in the background, and drawing them.

They are shown by the search screen and, below the titles that match, by the list of sessions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from textual.widget import Widget

from gemtui.sessions.catalog.query import Query
from gemtui.sessions.catalog.summary import Flag, Summary, named, project_name
from gemtui.text import clean_line, counted, relative
from gemtui.ui.draw.lines import Piece, Pieces, cut, two_ended, width_of
from gemtui.ui.draw.theme import Look, Role, glyphs_of
from gemtui.ui.kit.reading import Reading

if TYPE_CHECKING:
    from gemtui.marks import Mark
    from gemtui.search.results import Hit, Results, SessionHits, Snippet
    from gemtui.search.search import Search

_AT_ONCE = 50
"""How many hits' lines to read between two updates: about a screenful."""
_PAUSE = 0.5
"""Maximum number of seconds to wait until an update is drawn, or for the next key."""
_WHO, _WHO_NARROW, _WIDE = 19, 12, 100
"""Widths in cells of a hit's author, normally and on a narrow screen.

The third value is the width from which a screen isn't narrow.
"""
_LINE = 300
"""Maximum number of characters of a hit's line."""
_AUTHORS = {"USER": ("you", Role.ACCENT), "MODEL": ("model", Role.MODEL)}
"""How the authors of hits are called and coloured, by the name of the hit's kind.

Those that are missing here have the kind's name.
"""


class OpenedHit(NamedTuple):
    """A search hit to open, with the search whose matches the transcript highlights."""

    hit: Hit
    query: str
    pattern: re.Pattern[str] | None


class HitsHeading(NamedTuple):
    """A line above the hits in a list of sessions; `words` are at its right end."""

    title: str
    words: str = ""

    @property
    def key(self) -> str:
        """The row's key."""
        return self.title

    def draw(self, _marks: Mapping[str, Mark], look: Look) -> Pieces:
        """Render the heading."""
        title = (Piece(clean_line(self.title), look[Role.HEADING]),)
        return two_ended(title, (Piece(f"  {self.words} ", look[Role.MUTED]),), look)


class HitRow(NamedTuple):
    """A row for a session or, if `hit` is set, for one of its hits.

    `line`: the line of text that contains the hit, once it has been read.
    """

    group: SessionHits
    hit: Hit | None = None
    line: Snippet | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """The row's key, which is the same in later results."""
        session, hit = self.group.session, self.hit
        of_hit = () if hit is None else (hit.file.name, hit.message, hit.block)
        return session.name, session.id, *of_hit

    def draw(self, marks: Mapping[str, Mark], look: Look) -> Pieces:
        """Render the row."""
        if self.hit is None:
            return _draw_session(self.group, marks, look)
        return _draw_hit(self.hit, self.line, look)


class HitFeed:
    """The hits of a search, which grow while a background thread searches.

    `widget`: shows the hits. `show`: called in the event loop when there is more to show; its
    argument is whether these are the first results of a search.
    """

    def __init__(self, widget: Widget, show: Callable[[bool], None]) -> None:
        self.results: Results | None = None
        self._widget, self._show = widget, show
        self._lines: dict[Hit, Snippet] = {}
        self._total = 0
        self._searching = self._begins = False

    @property
    def words(self) -> str:
        """How far the search has come, and what it has found so far."""
        results, total = self.results, counted(self._total, "session")
        searching = f"searching{glyphs_of(self._widget.app).ellipsis}"
        if results is None or self._begins:
            return f"{searching} 0 of {total}" if self._total else searching
        sessions = counted(results.total_sessions, "session")
        hits = f"{counted(results.total_hits, 'hit')} in {sessions}"
        if results.complete:
            return hits
        searched = f"{self._total - results.unread:,} of {total}"
        if self._searching:
            return f"{searching} {searched}, {hits} so far"
        return f"{hits}, after {searched}"

    def rows(self, most: int | None = None) -> Iterator[HitRow]:
        """Yield a row for each session, and below it the rows of its hits.

        `most`: the maximum number of hits of one session.
        """
        for group in () if self.results is None else self.results.groups:
            yield HitRow(group)
            for hit in islice(group.hits, most):
                yield HitRow(group, hit, self._lines.get(hit))

    def begin(self) -> None:
        """Expect the first results of another search; until then, the last ones are kept."""
        self._searching = self._begins = True

    def clear(self) -> None:
        """Forget all hits."""
        self.results = None

    def look(
        self,
        search: Search,
        query: Query,
        sessions: Sequence[Summary],
        reading: Reading,
        **options: object,
    ) -> None:
        """Search, then read the hits' lines.

        Blocking: call this on a background thread. `options`: see `Search.find`.
        """
        self._total = len(sessions)
        found = search.find(query, sessions, cancelled=reading.is_stopped, **options)  # type: ignore[arg-type]
        hits: list[Hit] = []
        in_sight: list[Hit] = []
        for number, results in enumerate(found):
            # drawing and searching at the same time would be slower
            reading.draw(_PAUSE, self._take, results, number == 0)
            hits = [hit for group in results.groups for hit in group.hits]
            unread = results.unindexed and not results.complete
            if not unread and in_sight != hits[:_AT_ONCE]:
                in_sight = hits[:_AT_ONCE]  # the first lines are read before all hits are counted
                self._read_lines(search, in_sight, query, reading)
        reading.show(self._end)
        for start in range(len(in_sight), len(hits), _AT_ONCE):
            if start and reading.wait(_PAUSE):  # not in sight yet, and the user may be typing
                return
            self._read_lines(search, hits[start : start + _AT_ONCE], query, reading)

    def _read_lines(
        self, search: Search, hits: Sequence[Hit], query: Query, reading: Reading
    ) -> None:
        """Read the lines of text that contain these hits, and show them.

        Blocking: call this on a background thread.
        """
        read: dict[Hit, Snippet] = {}
        for hit in hits:
            if reading.is_stopped():
                return
            read[hit] = search.snippet(hit, query, width=_LINE)
        reading.show(self._take_lines, read)

    def _take(self, results: Results, first: bool, drawn: Callable[[], None]) -> None:
        """Keep and show results.

        `first`: whether they are the first ones of this search. `drawn`: called once they have been
        drawn.
        """
        self._widget.call_after_refresh(drawn)
        if first:
            self._lines = {}
        self.results, self._begins = results, False
        self._show(first)

    def _end(self) -> None:
        self._searching = False
        if self.results is not None and not self.results.complete:
            self._show(False)

    def _take_lines(self, lines: Mapping[Hit, Snippet]) -> None:
        self._lines |= lines
        self._show(False)


def _draw_session(group: SessionHits, marks: Mapping[str, Mark], look: Look) -> Pieces:
    session, muted = named(group.session, marks), look[Role.MUTED]
    mark = marks.get(session.id)
    project = clean_line(project_name(session.project, session.project_key))
    archived = "archived  " if mark is not None and mark.archived else ""
    lost = f"{Flag.LOST.word}  " if Flag.LOST in session.flags else ""
    count = counted(group.count, "hit")
    age = relative(session.when, look.now)
    right = (Piece(f"  {lost}{archived}{project}  {count:>9}  {age:>4}", muted),)
    title = [Piece(clean_line(session.title), look[Role.HEADING])]
    if mark is not None and mark.pinned:
        title.insert(0, Piece(f"{look.glyphs.pinned} ", look[Role.ACCENT]))
    return two_ended(tuple(title), right, look)


def _draw_hit(hit: Hit, line: Snippet | None, look: Look) -> Pieces:
    """Render a hit: its author, and its line with the matches highlighted."""
    kind = hit.kind.name
    author, role = _AUTHORS.get(kind, (kind.lower(), Role.MUTED))
    room = _WHO if look.width >= _WIDE else _WHO_NARROW
    name = cut((Piece(f"  {clean_line(hit.tool or author)}", look[role]),), look, room)
    gap = Piece(" " * (room + 2 - width_of(name)), look[Role.MUTED])
    text = () if line is None else _marked(line, look, look.width - room - 2)
    return (*name, gap, *text)


def _marked(line: Snippet, look: Look, width: int) -> Iterator[Piece]:
    """Yield a hit's line with the matches highlighted.

    A long line is cut so that the first match is visible.
    """
    at = 0
    if line.spans and line.spans[0][1] > width:
        at = line.spans[0][0] - width // 3
        yield Piece(look.glyphs.ellipsis, look[Role.TEXT])
    for start, end in line.spans:
        yield Piece(line.text[at:start], look[Role.TEXT])
        yield Piece(line.text[start:end], look[Role.MATCH])
        at = end
    yield Piece(line.text[at:], look[Role.TEXT])
