"""The list of sessions, drawn line by line, without a widget for each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from gemtui.sessions.catalog import Snapshot
from gemtui.sessions.days import Days
from gemtui.sessions.listing import (
    Heading,
    Listing,
    ListQuery,
    Row,
    Rows,
    SessionRow,
    Sort,
    View,
    days_of,
)
from gemtui.sessions.live import LiveState
from gemtui.sessions.summary import Flag, Summary
from gemtui.text import clean_line
from gemtui.ui.draw.lines import Line, Piece, own, strip_of, wrap
from gemtui.ui.draw.theme import Look, Role, look_of
from gemtui.ui.kit.filtering import FilterBar
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.messages import CopyRequested
from gemtui.ui.kit.row_list import CursorKeys
from gemtui.ui.sessions.labels import crumbs, nothing, resume_line, selection
from gemtui.ui.sessions.row import RowContext, draw_row
from gemtui.ui.sessions.row_index import RowIndex, ScrollAnchor

if TYPE_CHECKING:
    from gemtui.marks import Mark

_MINUTE = 60.0


class SessionList(CursorKeys, ScrollView, can_focus=True, inherit_bindings=False):
    """The list of sessions; cursor and scroll position survive changes of the store.

    `bar`: the search field above the list. `project`: the folder to which the list can be limited;
    None if it always shows all projects. Ages are relative to the app's clock (see `look_of`) and
    are redrawn every minute.
    """

    BINDINGS = bindings(Where.LIST)
    DEFAULT_CSS = """
    SessionList {
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-gutter: stable;
    }
    """

    class Highlighted(Message):
        """The cursor has moved to another session; None for a heading, or no row."""

        def __init__(self, summary: Summary | None) -> None:
            super().__init__()
            self.summary = summary

    class Opened(Message):
        """Request to open a session."""

        def __init__(self, summary: Summary) -> None:
            super().__init__()
            self.summary = summary

    class Arranged(Message):
        """The rows, or their description (`crumbs`), have changed."""

    def __init__(self, bar: FilterBar, project: Path | None = None) -> None:
        super().__init__()
        self.bar = bar
        self.view = View(everywhere=project is None)
        self.marks: Mapping[str, Mark] = {}
        self._listing = Listing(project)
        self._snapshot: Snapshot | None = None
        self._rows = Rows()
        self._places = RowIndex()
        self._days: Days | None = None
        self._cursor = 0
        self._wanted: str | None = None
        self._moved = False
        self._live: Mapping[str, LiveState] = {}
        self._undoable: frozenset[str] = frozenset()
        self._selected: set[str] = set()
        self._last_selected: str | None = None
        self._told: str | None = None
        self._look: Look | None = None
        self._drawn: dict[int, Sequence[Strip]] = {}

    # --- interface -----------------------------------------------------------------------------

    @property
    def rows(self) -> Rows:
        """The listed rows."""
        return self._rows

    @property
    def highlighted(self) -> Summary | None:
        """The session under the cursor; None on a heading or without rows."""
        row = self._row
        return row.entry.summary if isinstance(row, SessionRow) else None

    @property
    def selected(self) -> tuple[Summary, ...]:
        """The selected sessions, newest first, whether listed or not."""
        return self._listing.summaries(self._selected)

    @property
    def selection(self) -> str:
        """A text with the number of selected sessions; "" if there are none."""
        unlisted = sum(self._places.find(key) is None for key in self._selected)
        return selection(len(self._selected), unlisted)

    def select_listed(self) -> None:
        """Deselect the sessions that are not listed."""
        listed = {key for key in self._selected if self._places.find(key) is not None}
        if listed != self._selected:
            self._select(listed)

    @property
    def crumbs(self) -> tuple[str, ...]:
        """A description of the listed sessions, the most important parts first."""
        return crumbs(self.view, self._rows, self._snapshot)

    def show(self, snapshot: Snapshot) -> None:
        """List these sessions, keeping the cursor and the scroll position.

        Until the store has been loaded completely, newer sessions may still appear at the top.
        Therefore the cursor stays on the first session until then, unless the user has moved it.
        """
        reading = self._snapshot is None or not self._snapshot.complete
        at_start = reading and not self._moved
        if at_start:
            self._wanted = None
        self._snapshot = snapshot
        self._listing.take(snapshot.sessions)
        if snapshot.complete:
            self._selected = self._listing.known(self._selected)
        self._arrange(self.view, typed=at_start)

    def mark(self, marks: Mapping[str, Mark]) -> None:
        """Update the user's marks on sessions, by session id."""
        self.marks = marks
        self._listing.mark(marks)
        self._arrange(self.view)

    def take_live(self, live: Mapping[str, LiveState]) -> None:
        """Update the current states of sessions, by session id."""
        if live != self._live:
            self._live = live
            self.refresh()

    def take_undoable(self, sessions: frozenset[str]) -> None:
        """Update which sessions have checkpoints, by session id."""
        if sessions != self._undoable:
            self._undoable = sessions
            self.refresh()

    def sees(self, session: str) -> bool:
        """Return whether a session is in the visible part of the list."""
        place = self._places.find(session)
        return place is not None and self._in_sight(place)

    def filter(self, text: str) -> None:
        """List only the matching sessions (see `ListQuery`); "" lists all sessions."""
        if text != self.view.query:
            self._arrange(replace(self.view, query=text), typed=True)

    def sort(self, sort: Sort, *, reverse: bool = False) -> None:
        """Sort by a property, in its natural direction or in the opposite one."""
        self._arrange(replace(self.view, sort=sort, reverse=reverse))

    def group(self, grouped: bool) -> None:
        """Group the sessions by project, or don't."""
        self._arrange(replace(self.view, grouped=grouped))

    def scope(self, *, everywhere: bool) -> None:
        """List the sessions of all projects, or only of the project given at creation."""
        self._arrange(replace(self.view, everywhere=everywhere or self._listing.project is None))

    def hidden(self, shown: bool) -> None:
        """Show or hide archived sessions, subagents, checkpoints, copies and empty ones."""
        self._arrange(replace(self.view, hidden=shown))

    def highlight(self, summary: Summary) -> bool:
        """Move the cursor to a session; return False if it is not listed."""
        found = (self._places.find(key) for key in (summary.name, summary.id))
        place = next((place for place in found if place is not None), None)
        if place is not None:
            self.go(place)
        return place is not None

    # --- arranging -----------------------------------------------------------------------------

    @property
    def _row(self) -> Row | None:
        return self._places.rows[self._cursor] if len(self._places) else None

    def _arrange(self, view: View, *, typed: bool = False) -> None:
        """Rebuild the rows, keeping the cursor on its session, or else at its position.

        `typed`: the search has changed. If the search leaves out the session under the cursor, the
        cursor moves to the first match. When the search ends, the cursor stays on its session; only
        if nothing had matched, it returns to the session from before the search.
        """
        held, seen, before = self._hold(), self._in_sight(self._cursor), self._row
        ends = bool(self.view.query) and not view.query
        if ends and before is not None:
            self._wanted = before.key
        self.view = view
        look = look_of(self.app, self._width)
        self._days = Days(look.now, look.tz)
        self._rows = self._listing.arrange(view, self._days)
        self._places = RowIndex(self._rows.rows, self._width)
        place = self._places.find(self._wanted)
        if place is None and before is not None and not typed:
            place = self._places.find(before.key)
            place = self._cursor if place is None else place
        self._cursor = self._places.stop(self._places.first_session if place is None else place)
        if not view.query and self._row is not None:
            self._wanted = self._row.key
        self._lay_out()
        if ends:
            self._scroll_to_middle()
        else:
            self._release(held)
        if seen or typed:
            self._scroll_to_cursor()
        self._tell()
        self.post_message(self.Arranged())

    def _lay_out(self) -> None:
        self.virtual_size = Size(self._width, self._places.height)
        self.refresh()

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width

    def _hold(self) -> ScrollAnchor | None:
        """Return the row to keep in place: the cursor's if visible, or else the top one."""
        places, top = self._places, self.scroll_offset.y
        if not places or not top:
            return None
        place = self._cursor if self._in_sight(self._cursor) else places.at(top)
        return ScrollAnchor(places.rows[place].key, places.top(place) - top)

    def _release(self, held: ScrollAnchor | None) -> None:
        place = None if held is None else self._places.find(held.key)
        if held is not None and place is not None:
            self._scroll(self._places.top(place) - held.line)

    def _tell(self) -> None:
        row = self._row
        key = None if row is None else row.key
        if key != self._told:
            self._told = key
            self.post_message(self.Highlighted(self.highlighted))

    # --- places and lines ----------------------------------------------------------------------

    def _in_sight(self, place: int) -> bool:
        top = self.scroll_offset.y
        return self._places.within(place, top, top + self.size.height)

    def _scroll(self, y: int) -> None:
        """Scroll to a line, even if the scroll bar for new rows does not exist yet."""
        taller = self._places.height > self.size.height
        self.scroll_to(y=y, animate=False, force=taller)

    def _scroll_to_middle(self) -> None:
        """Scroll so that the cursor's row is in the middle."""
        if self._places:
            self._scroll(max(0, self._places.top(self._cursor) - self.size.height // 2))

    def _scroll_to_cursor(self) -> None:
        """Scroll until the cursor's row is visible, with the heading above it."""
        places, first, top = self._places, self._cursor, self.scroll_offset.y
        if not places:
            return
        if first and not isinstance(places.rows[first - 1], SessionRow):
            first -= 1
        start, end = places.top(first), places.bottom(self._cursor)
        if end > top + self.size.height:
            self._scroll(end - self.size.height)
        elif start < top:
            self._scroll(start)

    @property
    def cursor(self) -> int:
        """The index of the row with the cursor."""
        return self._cursor

    @property
    def count(self) -> int:
        """The number of listed rows."""
        return len(self._places)

    def go(self, place: int, step: int = 1) -> None:
        """Move the cursor to this row, or in the direction of `step` to a selectable one."""
        if not self._places:
            return
        self._cursor = self._places.stop(place, step)
        self._wanted = self._places.rows[self._cursor].key
        self._moved = True
        self._scroll_to_cursor()
        self._tell()
        self.refresh()

    def turn(self, pages: float) -> None:
        """Move the cursor by `pages`; a negative number moves it up."""
        if self._places:
            top, bottom = self._places.top(self._cursor), self._places.bottom(self._cursor)
            room = int(abs(pages) * (self.size.height - (bottom - top)))
            step = max(bottom - top, room)
            if pages > 0:
                self.go(self._places.at(top + step))
            else:
                self.go(self._places.at(top - step), -1)

    # --- drawing -------------------------------------------------------------------------------

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw a region; rows are cached for the duration of this call."""
        self._look = look_of(self.app, self._width)
        self._drawn = {}
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Return one visible line."""
        look = self._look or look_of(self.app, self._width)
        line = y + self.scroll_offset.y
        strip = self._line(line, look) if self._places else self._message_line(line, look)
        return strip.adjust_cell_length(look.width).apply_style(self.rich_style)

    def _line(self, line: int, look: Look) -> Strip:
        places = self._places
        if line >= places.height:
            return Strip([])
        place = places.at(line)
        if place not in self._drawn:
            height = places.bottom(place) - places.top(place)
            self._drawn[place] = draw_row(places.rows[place], look, self._around(place), height)
        return self._drawn[place][line - places.top(place)]

    def _around(self, place: int) -> RowContext:
        row = self._places.rows[place]
        return RowContext(
            query=ListQuery(self.view.query),
            projects=self.view.everywhere and not self.view.grouped,
            sort=self.view.sort,
            days=self._days if self.view.by_day else None,
            chosen=place == self._cursor,
            selected=row.key in self._selected,
            focused=self.has_focus,
            live=self._live_of(row),
            undoable=self._is_undoable(row),
        )

    def _is_undoable(self, row: Row) -> bool:
        return isinstance(row, SessionRow) and row.entry.summary.id in self._undoable

    def _live_of(self, row: Row) -> LiveState | None:
        """Return a session's current state; copies of its file have none."""
        if not isinstance(row, SessionRow) or Flag.DUPLICATE in row.entry.summary.flags:
            return None
        return self._live.get(row.entry.summary.id)

    def _message_line(self, line: int, look: Look) -> Strip:
        """Return an indented line of the text that is shown if there are no rows."""
        style, indent = look[Role.MUTED], Piece(own("   "), look[Role.TEXT])
        lines = [
            Line((indent, *wrapped.pieces))
            for text in self._nothing(look)
            for wrapped in wrap((Piece(clean_line(text), style),), max(1, look.width - 4))
        ]
        return strip_of(lines[line - 1], look.width) if 1 <= line <= len(lines) else Strip([])

    def _nothing(self, look: Look) -> tuple[str, ...]:
        typing = bool(self.view.query) and not self.has_focus
        return nothing(self.view, self._rows, self._snapshot, look.glyphs, typing=typing)

    # --- events --------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Redraw every minute, because ages grow and days change their names."""
        self.set_interval(_MINUTE, self._tick)

    def _tick(self) -> None:
        if self._days is not None and self._days.today != look_of(self.app, 1).today:
            self._arrange(self.view)
        self.refresh()

    def on_resize(self) -> None:
        """Lay out the rows again, because the width determines their height."""
        held, seen = self._hold(), self._in_sight(self._cursor)
        self._places.measure(self._width)
        self._lay_out()
        self._release(held)
        if seen:
            self._scroll_to_cursor()

    def on_click(self, event: events.Click) -> None:
        """Move the cursor on a click, or fold a group; open a session on a double click."""
        inside = event.get_content_offset(self)
        line = -1 if inside is None else inside.y + self.scroll_offset.y
        place = self._places.at(line)
        if not 0 <= line < self._places.height or not self._places.stops(place):
            return
        self.go(place)
        if event.chain == 2 or isinstance(self._row, Heading):
            self.action_open()

    # --- actions -------------------------------------------------------------------------------

    def action_open(self) -> None:
        """Open the session, or fold or unfold the group."""
        self._moved = True
        if isinstance(self._row, Heading):
            self.action_fold()
        elif (summary := self.highlighted) is not None:
            self.post_message(self.Opened(summary))

    def action_select(self) -> None:
        """Select or deselect the session and go to the next row.

        On a heading, do the same for all sessions of its group.
        """
        if isinstance(row := self._row, SessionRow):
            self._select(self._selected ^ {row.key}, row.key)
        elif isinstance(row, Heading):
            below = takewhile(_is_session, self._places.rows[self._cursor + 1 :])
            group = {each.key for each in below}
            left_out = group - self._selected
            self._select(self._selected | group if left_out else self._selected - group)
        self.action_cursor_down()

    def action_select_to(self) -> None:
        """Select all sessions from the last selected one to this one."""
        start = self._places.find(self._last_selected)
        if not isinstance(row := self._row, SessionRow):
            return
        first, last = sorted((self._cursor if start is None else start, self._cursor))
        rows = self._places.rows[first : last + 1]
        self._select(
            self._selected | {each.key for each in rows if isinstance(each, SessionRow)}, row.key
        )

    def _select(self, keys: set[str], last: str | None = None) -> None:
        self._selected, self._last_selected = keys, last
        self.refresh()
        self.post_message(self.Arranged())

    def action_fold(self) -> None:
        """Fold or unfold the group under the cursor."""
        above = reversed(self._places.rows[: self._cursor + 1])
        heading = next((row for row in above if isinstance(row, Heading)), None)
        if heading is not None:
            self._wanted = heading.key
            self._arrange(replace(self.view, folded=self.view.folded ^ {heading.group}))

    def action_filter(self) -> None:
        """Show and focus the search field."""
        self.bar.open()

    def action_clear(self) -> None:
        """Clear the selection or, if there is none, the search."""
        if self._selected:
            self._select(set())
        else:
            self.filter("")

    def action_scope(self) -> None:
        """Switch between this project and all projects."""
        self.scope(everywhere=not self.view.everywhere)

    def action_sort(self) -> None:
        """Let the user choose the sort order."""
        from gemtui.ui.kit.dialogs import Choice, ChooseScreen

        def chosen(sort: str | None) -> None:
            if sort is not None:
                self.sort(Sort(sort))

        orders = [Choice(each, clean_line(each.words)) for each in Sort]
        at = list(Sort).index(self.view.sort)
        self.app.push_screen(ChooseScreen(own("Sort sessions"), (), orders, at=at), chosen)

    def action_days(self) -> None:
        """Choose a day to go to; the list then goes by day."""
        from gemtui.ui.sessions.day_screen import day_screen

        sort = self.view.sort if self.view.sort is Sort.STARTED else Sort.UPDATED
        self._arrange(replace(self.view, sort=sort, grouped=False))
        zone, here = look_of(self.app, 1).tz, self._row
        days = days_of(self._rows.rows, sort, zone)
        shown = days_of(() if here is None else (here,), sort, zone)

        def chosen(first: str | None) -> None:
            if (place := self._places.find(first)) is not None:
                self.go(place)

        if days and self._days is not None:
            at = shown[0].day if shown else None
            self.app.push_screen(day_screen(days, self._days.today, at), chosen)

    def action_reverse(self) -> None:
        """Reverse the sort order."""
        self.sort(self.view.sort, reverse=not self.view.reverse)

    def action_group(self) -> None:
        """Group by project, or stop grouping."""
        self.group(not self.view.grouped)

    def action_hidden(self) -> None:
        """Show or hide the hidden sessions."""
        self.hidden(not self.view.hidden)

    def action_copy_id(self) -> None:
        """Copy the session's id."""
        if (summary := self.highlighted) is not None:
            self.post_message(CopyRequested(summary.id, "session id"))

    def action_copy_resume(self) -> None:
        """Copy the command that resumes the session in its folder."""
        if (summary := self.highlighted) is not None:
            self.post_message(CopyRequested(resume_line(summary), "the command that resumes it"))


def _is_session(row: Row) -> bool:
    return isinstance(row, SessionRow)
