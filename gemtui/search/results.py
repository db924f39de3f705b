"""What a search found: sessions with their hits, and what a person should know of it."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from gemtui.search.documents import DocumentKind
from gemtui.search.query import Query
from gemtui.sessions.summary import Summary


class Hit(Struct, frozen=True, kw_only=True):
    """A block of a message that matches.

    `session`: the one it counts for; `file`: the one to open, another only for a sub-agent's.
    `message`, `block`: id and index of the block in its transcript. `kind`: who says it. `tool`:
    the tool's name, "" = none. `time`: None = unknown. `score`: greater is better, in one search.
    `rank`: 0 = the best of the search.
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
    """The hits of one session, the best first; `count`: of all there are, those left out too."""

    session: Summary
    hits: tuple[Hit, ...]
    count: int


class Results(Struct, frozen=True, kw_only=True):
    """What was found.

    `total_sessions`, `total_hits`: with those that `limit` leaves out. `complete`: False while
    files are still to be read, or hits to be counted: all numbers are lower bounds. `unindexed`:
    number of files that the index does not hold yet. `note`: what a person should know of it; None
    = nothing.
    """

    query: Query
    groups: tuple[SessionHits, ...] = ()
    total_sessions: int = 0
    total_hits: int = 0
    complete: bool = True
    unindexed: int = 0
    note: str | None = None

    @property
    def hits(self) -> list[Hit]:
        """The hits of all groups, the best first."""
        hits = (hit for group in self.groups for hit in group.hits)
        return sorted(hits, key=lambda hit: hit.rank)
