"""The results of a search: sessions with their hits, and a note for the user."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from gemtui.search.documents import DocumentKind
from gemtui.sessions.catalog.query import Query
from gemtui.sessions.catalog.summary import Summary


class Hit(Struct, frozen=True, kw_only=True):
    """A matching block of a message.

    * `session`: the session under which the hit is listed.
    * `file`: the session to open, which differs from `session` only for subagents.
    * `message`, `block`: the message's id, and the block's index, in its transcript.
    * `kind`: who or what wrote the block.
    * `tool`: the tool's name, or "".
    * `time`: None if unknown.
    * `score`: higher is better; comparable within one search only.
    * `rank`: 0 for the best hit in the search.
    * `line`: where the message is in its file, as in `SearchDocument`.
    """

    session: Summary
    file: Summary
    message: str
    block: int
    kind: DocumentKind
    tool: str
    time: datetime | None
    score: float
    rank: int
    line: tuple[int, int] | None = None


class SessionHits(Struct, frozen=True, kw_only=True):
    """One session's hits, best first; `count` includes hits beyond the limit."""

    session: Summary
    hits: tuple[Hit, ...]
    count: int


Rank = tuple[float, int, str, int]
"""A match's sort key, smallest first.

With the same `now`, the keys are the same in every index.
"""


class Page(Struct, frozen=True, kw_only=True):
    """A page's position in a search, chosen so that each hit is on exactly one page.

    Hits are divided by age into sections. Newer sections come first; within a section, hits with
    higher scores come first. All times are in seconds since 1970. `now`: the time from which ages
    are measured. `before`: the page's section contains only hits older than this; None for the
    first section. `since`: the section contains no hits older than this. `after`: the sort key of
    the last hit on the previous page; None if the page starts the section.
    """

    now: float
    before: int | None = None
    since: int = 0
    after: Rank | None = None


class Results(Struct, frozen=True, kw_only=True):
    """The results of a search.

    `total_sessions`, `total_hits`: the totals, including results beyond `limit`. `complete`: False
    while files remain to be read or hits to be counted; until then, all numbers are lower bounds.
    `unindexed`: how many files are not in the index yet. `next`: the next page; None if there is
    none. `note`: a note for the user; None if there is none.
    """

    query: Query
    groups: tuple[SessionHits, ...] = ()
    total_sessions: int = 0
    total_hits: int = 0
    complete: bool = True
    unindexed: int = 0
    next: Page | None = None
    note: str | None = None

    @property
    def hits(self) -> list[Hit]:
        """The hits in all groups, best first."""
        hits = (hit for group in self.groups for hit in group.hits)
        return sorted(hits, key=lambda hit: hit.rank)
