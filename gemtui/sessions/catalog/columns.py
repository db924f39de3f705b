"""The numbers of a session that lists show as columns, sort by and print.

Each column is a row of `COLUMNS`: the list of the app, its orders, the setting `sort` and the table
of `gemtui sessions` follow. The number itself is a field of `Summary`, which also has its name in
the JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from gemtui.sessions.catalog.summary import Summary


class Sort(StrEnum):
    """The property by which the session list is sorted."""

    UPDATED = "updated"
    STARTED = "started"
    TITLE = "title"
    PROJECT = "project"
    TOKENS = "tokens"
    TOOLS = "tools"
    FAILURES = "failures"

    def words(self, *, reverse: bool = False) -> str:
        """Return the order in words, such as "newest first"."""
        return _ORDERS[self][reverse]


class Column(Struct, frozen=True, kw_only=True):
    """A number of a session.

    * `number`: returns it, or None if it is unknown.
    * `head`: its heading in `gemtui sessions`.
    * `words`: what is counted, for one and for several, as the app's list says it.
    * `rank`: where there is little room, numbers with the highest rank are left out first; 0 never.
    * `sort`, `orders`: the order by it, and its words for most and for least first; None if the
      list isn't sorted by it.
    * `short`: whether the app's list says thousands and millions as 47k and 1.2M.
    * `zero`: whether the app's list says zero although it isn't sorted by it.
    * `failures`: whether it counts what went wrong, so that a part of the session tells enough.
    * `pending`: whether the app's list says that it is being counted.
    """

    number: Callable[[Summary], int | None]
    head: str
    words: tuple[str, str]
    rank: int
    sort: Sort | None = None
    orders: tuple[str, str] = ("", "")
    short: bool = False
    zero: bool = False
    failures: bool = False
    pending: bool = False

    def known(self, summary: Summary) -> int | None:
        """Return the number; None if it is unknown, or not all of the session has been read."""
        number = self.number(summary)
        return None if summary.partial and not (self.failures and number) else number


PROMPTS = Column(
    number=lambda summary: summary.prompts,
    head="PROMPTS",
    words=("prompt", "prompts"),
    rank=1,
    pending=True,
)
TOOLS = Column(
    number=lambda summary: summary.tool_calls,
    head="TOOLS",
    words=("tool", "tools"),
    rank=4,
    sort=Sort.TOOLS,
    orders=("most tool calls first", "fewest tool calls first"),
    pending=True,
)
FAILURES = Column(
    number=lambda summary: summary.failed_calls,
    head="FAILED",
    words=("failed", "failed"),
    rank=0,
    sort=Sort.FAILURES,
    orders=("most failures first", "fewest failures first"),
    failures=True,
)
TOKENS = Column(
    number=lambda summary: summary.tokens.total,
    head="TOKENS",
    words=("token", "tokens"),
    rank=6,
    sort=Sort.TOKENS,
    orders=("most tokens first", "fewest tokens first"),
    short=True,
    zero=True,
)
COLUMNS = (PROMPTS, TOOLS, FAILURES, TOKENS)
"""All columns, in display order; a narrow terminal leaves out the last ones first."""
_ORDERS = {
    Sort.UPDATED: ("newest first", "oldest first"),
    Sort.STARTED: ("last started first", "first started first"),
    Sort.TITLE: ("by title", "by title, Z first"),
    Sort.PROJECT: ("by project", "by project, Z first"),
    **{column.sort: column.orders for column in COLUMNS if column.sort is not None},
}


def sorted_by(sort: Sort) -> Column | None:
    """Return the column that an order is about; None for orders by time, title and project."""
    for column in COLUMNS:
        if column.sort is sort:
            return column
    return None
