"""The rows of the session list: what they show, their order, and the cursor."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace
from textual.message import Message

from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.listing import DayHeading, Days, Heading, Listing, Row, Rows, SessionRow, Sort, View
from gemtui.sessions.catalog.summary import Summary
from gemtui.ui.draw.theme import look_of
from gemtui.ui.kit.filtering import FilterBar
from gemtui.ui.kit.row_list import RowList
from gemtui.ui.sessions.labels import crumbs
from gemtui.ui.sessions.row import row_height

if TYPE_CHECKING:
    from gemtui.marks import Mark


class ArrangedSessions(RowList[Row], can_focus=True, inherit_bindings=False):
    """A list of sessions, arranged as a `View` says, with headings for groups or days.

    `bar`: the search field above the list. `project`: the folder that the list can be limited to,
    or None if it always shows all projects.
    """

    class Arranged(Message):
        """Posted when the rows or their description (`crumbs`) have changed."""

    def __init__(self, bar: FilterBar, project: Path | None = None) -> None:
        super().__init__(
            lambda _row, _look: (),  # the subclass overrides `strips`
            stops=lambda row: not isinstance(row, DayHeading),
            key=lambda row: row.key,
            height=row_height,
        )
        self.bar = bar
        self.view = View(everywhere=project is None)
        self.marks: Mapping[str, Mark] = {}
        self.rows = Rows()
        """The rows of the list, with their counts."""
        self.days: Days | None = None
        """The names of days, as of when the rows were last arranged."""
        self._listing = Listing(project)
        self._snapshot: Snapshot | None = None
        self._wanted: object = None
        self._moved = False
        self._told: object = None

    @property
    def highlighted(self) -> Summary | None:
        """The session under the cursor; None if it is on a heading or there are no rows."""
        row = self.chosen
        return row.entry.summary if isinstance(row, SessionRow) else None

    def summaries(self, keys: set[str]) -> tuple[Summary, ...]:
        """Return the sessions with these row keys, newest first.

        Sessions that aren't currently listed are included.
        """
        return self._listing.summaries(keys)

    @property
    def crumbs(self) -> tuple[str, ...]:
        """A description of the list, in parts (see `labels.crumbs`)."""
        return crumbs(self.view, self.rows, self._snapshot)

    def show_sessions(self, snapshot: Snapshot) -> None:
        """List the sessions of the store, keeping the cursor and scroll position.

        While the store is still being loaded, newer sessions may appear at the top. Until it is
        complete, the cursor is therefore kept on the first session, unless the user has moved it.
        """
        reading = self._snapshot is None or not self._snapshot.complete
        at_start = reading and not self._moved
        if at_start:
            self._wanted = None
        self._snapshot = snapshot
        self._listing.replace_all(snapshot.sessions)
        self.rearrange(self.view, typed=at_start)

    def prepare(self, snapshot: Snapshot) -> None:
        """Prepare `show_sessions` for this snapshot. Blocking: call this from a worker thread."""
        self._listing.prepare(snapshot.sessions)

    def mark(self, marks: Mapping[str, Mark]) -> None:
        """Use these marks in the rows and for their order.

        `marks`: the user's marks by session id.
        """
        self.marks = marks
        self._listing.mark(marks)
        self.rearrange(self.view)

    def filter(self, text: str) -> None:
        """List only the sessions that match the search (see `ListQuery`); "" lists all."""
        if text != self.view.query:
            self.rearrange(replace(self.view, query=text), typed=True)

    def sort(self, sort: Sort, *, reverse: bool = False) -> None:
        """Sort the sessions by one of their properties.

        `reverse`: use the opposite of the property's usual direction.
        """
        self.rearrange(replace(self.view, sort=sort, reverse=reverse))

    def group(self, grouped: bool) -> None:
        """Group the sessions by project, or list them without groups."""
        self.rearrange(replace(self.view, grouped=grouped))

    def scope(self, *, everywhere: bool) -> None:
        """List the sessions of all projects, or only of the list's own project."""
        self.rearrange(replace(self.view, everywhere=everywhere or self._listing.project is None))

    def highlight(self, summary: Summary) -> bool:
        """Move the cursor to a session; return False if it isn't listed."""
        return self.go_to(summary.name) or self.go_to(summary.id)

    def go_to(self, key: object) -> bool:
        """Move the cursor to the row with this key; return False if there is none."""
        if (place := self.find(key)) is not None:
            self.go(place)
        return place is not None

    def go(self, place: int, step: int = 1) -> None:
        """Move the cursor to the row at this index.

        If the cursor can't be on that row, it goes to the next possible row in direction `step`.
        From then on, the cursor counts as moved by the user.
        """
        if self._places:
            super().go(place, step)
            self._wanted = self._places.key(self._cursor)
            self._moved = True

    # --- arrangement ---------------------------------------------------------------------------

    def rearrange(self, view: View, *, typed: bool = False, wanted: object = None) -> None:
        """Rebuild the rows, keeping the cursor on its session or at least at its position.

        `typed`: whether the search text has changed. If the session under the cursor no longer
        matches, the cursor then moves to the first match. When the search is cleared, the cursor
        stays on its session; if nothing had matched, it goes back to the session it was on before
        the search. `wanted`: the key of the row to move the cursor to.
        """
        before, ends = self.chosen_key, bool(self.view.query) and not view.query
        self._wanted = wanted or (before if ends else None) or self._wanted
        self.view = view
        look = look_of(self.app, self._width)
        self.days = Days(look.now, look.tz)
        self.rows = self._listing.arrange(view, self.days)
        rows = self.rows.rows
        keys, otherwise = (self._wanted, before), self._cursor
        if typed or before is None:
            sessions = (at for at, row in enumerate(rows) if isinstance(row, SessionRow))
            keys, otherwise = (self._wanted, None), next(sessions, 0)
        self.put(rows, keys, otherwise, shows=typed)
        if not view.query and self.chosen is not None:
            self._wanted = self.chosen_key
        if ends and rows:
            self.scroll_to_line(max(0, self._places.top(self.cursor) - self.size.height // 2))
        self.report_cursor()
        self.post_message(self.Arranged())

    def lead(self, place: int) -> int:
        """Return the index of the row to scroll to so that this row's heading is visible.

        This is the heading directly above the row or, if there is none, the row itself.
        """
        above = place > 0 and not isinstance(self.items[place - 1], SessionRow)
        return place - 1 if above else place

    def report_cursor(self) -> None:
        """Post `Highlighted`, unless the cursor is still on the same row."""
        if self.chosen_key != self._told:
            self._told = self.chosen_key
            super().report_cursor()

    def fold(self) -> None:
        """Fold or unfold the group that the cursor is in."""
        above = reversed(self.items[: self.cursor + 1])
        heading = next((row for row in above if isinstance(row, Heading)), None)
        if heading is not None:
            folded = self.view.folded ^ {heading.group}
            self.rearrange(replace(self.view, folded=folded), wanted=heading.key)
