"""The list of sessions: rows of one or two lines, with foldable groups and days."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from itertools import takewhile
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from textual.message import Message
from textual.strip import Strip

from gemtui.agents import WORDS
from gemtui.extension.live import LiveState
from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.columns import Sort
from gemtui.sessions.catalog.entries import ListQuery, SessionRow
from gemtui.sessions.catalog.listing import (
    DayCount,
    Days,
    Heading,
    Listing,
    Row,
    Rows,
    View,
    days_of,
)
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.text import clean_line, counted, short_path
from gemtui.ui.draw.lines import Line, Piece, Pieces, strip_of, wrap
from gemtui.ui.draw.theme import Glyphs, Look, Role, glyphs_of, look_of
from gemtui.ui.kit.filtering import FilterBar
from gemtui.ui.kit.keys import BY_ID, Where, bindings
from gemtui.ui.kit.messages import CopyRequested
from gemtui.ui.kit.row_list import RowList
from gemtui.ui.kit.screens import HasParts, KeyPart
from gemtui.ui.sessions.hits import HitRow, HitsHeading
from gemtui.ui.sessions.row import ONE_LINE_FROM, RowContext, draw_heads, draw_row, row_heights

if TYPE_CHECKING:
    from gemtui.marks import Mark
    from gemtui.search.results import Hit
    from gemtui.ui.kit.dialogs import ChooseScreen

_MINUTE = 60.0


def scope_label(*, everywhere: bool) -> str:
    """Return the label of the key that changes the scope, which is what it would change to."""
    return "This project" if everywhere else "All projects"


class SessionList(
    HasParts, RowList[Row | HitsHeading | HitRow], can_focus=True, inherit_bindings=False
):
    """The list of sessions on screen, arranged as a `View` says, with its keys.

    Below the sessions whose titles match a search are the hits inside sessions. Ages are relative
    to the app's clock (see `look_of`) and are updated every minute. `bar`: the
    search field above the list. `project`: the folder that the list can be limited to, or None if
    it always shows all projects.
    """

    BINDINGS = bindings(Where.LIST)

    class Arranged(Message):
        """Posted when the rows or their description (`crumbs`) have changed."""

    class SessionHighlighted(RowList.Highlighted):
        """Posted when the cursor has moved; `summary` is None if it is on a heading."""

        def __init__(self, rows: SessionList) -> None:
            super().__init__(rows)
            self.summary = rows.highlighted

    class SessionOpened(RowList.Opened):
        """Posted when the user opens a session, which is in `summary`."""

        def __init__(self, rows: SessionList, summary: Summary) -> None:
            super().__init__(rows)
            self.summary = summary

    class HitOpened(RowList.Opened):
        """Posted when the user opens a hit inside a session, which is in `hit`."""

        def __init__(self, rows: SessionList, hit: Hit) -> None:
            super().__init__(rows)
            self.hit = hit

    def __init__(self, bar: FilterBar, project: Path | None = None) -> None:
        self.listing = Listing(project)
        """The sessions, from which the rows are arranged."""
        super().__init__(
            self._draw_hits,  # `strips` draws the other rows
            stops=_stops,
            key=attrgetter("key"),
            heights=row_heights,
            find=partial(_find, self.listing),
        )
        self.bar = bar
        self.view = View(everywhere=project is None)
        self.marks: Mapping[str, Mark] = {}
        self.rows = Rows()
        """The rows of the list, with their counts."""
        self.days: Days | None = None
        """The names of days, as of when the rows were last arranged."""
        self.project = project
        self._snapshot: Snapshot | None = None
        self._wanted: object = None
        self._left: object = None
        self._moved = False
        self._told: object = None
        self._hits: Sequence[HitRow] = ()
        self._searched = ""
        self._opens_next = False
        self._live: Mapping[str, LiveState] = {}
        self.selection = ListSelection(self)
        self.add_parts(self.selection, ViewKeys(self), CopyKeys(self))

    # --- contents ------------------------------------------------------------------------------

    @property
    def highlighted(self) -> Summary | None:
        """The session under the cursor; None if it is on a heading or there are no rows."""
        row = self.chosen
        if isinstance(row, HitRow):
            return None if row.hit is None else row.hit.file
        return row.entry.summary if isinstance(row, SessionRow) else None

    @property
    def crumbs(self) -> tuple[str, ...]:
        """A description of the list, in parts.

        They are the number of sessions, the scope, the loading progress, the sort order, and the
        number of hidden sessions.
        """
        view, rows, snapshot = self.view, self.rows, self._snapshot
        amount = (
            f"{rows.shown:,}" if rows.shown == rows.total else f"{rows.shown:,} of {rows.total:,}"
        )
        words = [amount, "all projects" if view.everywhere else "this project"]
        if snapshot is not None and not snapshot.complete:
            words.append(f"checking {counted(snapshot.total, 'file')}")
        words.append(view.order)
        if view.hidden:
            words.append("including hidden")
        elif rows.concealed:
            words.append(f"{rows.concealed:,} hidden ({_key('hidden')})")
        return tuple(words)

    @property
    def selected(self) -> tuple[Summary, ...]:
        """The selected sessions, newest first, including any that aren't listed."""
        return self.listing.summaries(self.selection.keys)

    def show_sessions(self, snapshot: Snapshot) -> None:
        """List the sessions of the store, keeping the cursor and scroll position.

        Sessions that no longer exist are deselected. While the store is still being loaded, newer
        sessions may appear at the top. Until it is complete, the cursor is therefore kept on the
        row of `return_to` or on the first session, unless the user has moved it.
        """
        reading = self._snapshot is None or not self._snapshot.complete
        at_start = reading and not self._moved
        if at_start:
            self._wanted = self._left
        self._snapshot = snapshot
        self.listing.replace_all(snapshot.sessions)
        self.rearrange(self.view, typed=at_start)
        if snapshot.complete:
            self.selection.keys = self.listing.known(self.selection.keys)

    def return_to(self, view: View, row: str) -> None:
        """Show the list as it was left, with the cursor on the row with this key."""
        self._left = row
        self.rearrange(view)

    def prepare(self, snapshot: Snapshot) -> None:
        """Prepare `show_sessions` for this snapshot. Blocking: call this from a worker thread."""
        self.listing.prepare(snapshot.sessions)

    def mark(self, marks: Mapping[str, Mark]) -> None:
        """Use these marks in the rows and for their order.

        `marks`: the user's marks by session id.
        """
        self.marks = marks
        self.listing.mark(marks)
        self.rearrange(self.view)

    def filter(self, text: str) -> None:
        """List only the sessions that match the search (see `ListQuery`); "" lists all."""
        if text != self.view.query:
            self.rearrange(replace(self.view, query=text), typed=True)

    def show_hits(self, hits: Iterable[HitRow], searched: str) -> None:
        """Show hits inside sessions below those whose titles match the search.

        `searched`: how far the search for hits has come. If the user has already pressed enter, and
        no title matched, the first hit is opened.
        """
        self._hits, self._searched = tuple(hits), searched
        self._put_rows()
        if self._opens_next and self.chosen is not None:
            self.action_open()

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
        self.rearrange(replace(self.view, everywhere=everywhere or self.project is None))

    def go_to_project(self, folder: Path) -> None:
        """List only the sessions of this project from now on."""
        self.project = folder
        self.listing.limit(folder)
        self.scope(everywhere=False)

    def highlight(self, summary: Summary) -> bool:
        """Move the cursor to a session; return False if it isn't listed."""
        return self.go_to(summary.name) or self.go_to(summary.id)

    def go_to(self, key: object) -> bool:
        """Move the cursor to the row with this key; return False if there is none."""
        if (place := self.find(key)) is not None:
            self.go(place)
        return place is not None

    def show_at_top(self, key: str) -> None:
        """Move the cursor to the row with this key, with its heading in the first line."""
        if self.go_to(key):
            self.scroll_to_line(self._places.top(self.lead(self.cursor)))

    def go(self, place: int, step: int = 1) -> None:
        """Move the cursor to the row at this index.

        If the cursor can't be on that row, it goes to the next possible row in direction `step`.
        From then on, the cursor counts as moved by the user.
        """
        if self._places:
            super().go(place, step)
            self._wanted = self._places.key(self._cursor)
            self._moved = True

    def update_live(self, live: Mapping[str, LiveState]) -> None:
        """Show what each session is doing.

        `live`: the states by session id.
        """
        if live != self._live:
            self._live = live
            self.refresh()

    def sees(self, session: str) -> bool:
        """Return whether the session with this id is in the visible part of the list."""
        place = self.find(session)
        return place is not None and self.in_sight(place)

    # --- arrangement ---------------------------------------------------------------------------

    def rearrange(self, view: View, *, typed: bool = False, wanted: object = None) -> None:
        """Rebuild the rows, keeping the cursor on its session or at least at its position.

        `typed`: whether the search text has changed. If the session under the cursor no longer
        matches, the cursor then moves to the first match. When the search is cleared, the cursor
        stays on its session; if nothing had matched, it goes back to the session it was on before
        the search. `wanted`: the key of the row to move the cursor to.
        """
        ends = bool(self.view.query) and not view.query
        self._wanted = wanted or (self.chosen_key if ends else None) or self._wanted
        self.view = view
        look = look_of(self.app, self._width)
        self.days = Days(look.now, look.tz)
        self.rows = self.listing.arrange(view, self.days)
        self._opens_next = self._opens_next and not typed
        self._put_rows(typed=typed)
        if ends and self.items:
            self.scroll_to_line(max(0, self._places.top(self.cursor) - self.size.height // 2))

    def _put_rows(self, *, typed: bool = False) -> None:
        """Show the arranged rows with the hits below them; `typed`: see `rearrange`."""
        before, hits = self.chosen_key, tuple(self._hit_rows())
        rows = (*self.rows.rows, *hits) if hits else self.rows.rows
        keys, otherwise = (self._wanted, before), self._cursor
        if typed or before is None:
            sessions = (at for at, row in enumerate(rows) if isinstance(row, SessionRow))
            keys, otherwise = (self._wanted, None), next(sessions, 0)
        self.put(rows, keys, otherwise, shows=typed)
        if not self.view.query and self.chosen is not None:
            self._wanted = self.chosen_key
        self.report_cursor()
        self.post_message(self.Arranged())

    @property
    def hits_below(self) -> str:
        """How far the search inside sessions has come, if titles are listed above its hits."""
        return self._searched if self.view.query.strip() and self.rows.rows else ""

    def _hit_rows(self) -> Iterator[HitsHeading | HitRow]:
        """Yield the hits below their heading, which is left out if there is nothing at all."""
        if self.view.query.strip() and (self.rows.rows or self._hits):
            if not self.rows.rows:
                yield HitsHeading(_no_title(self.view, glyphs_of(self.app)))
            yield HitsHeading("Inside sessions", self._searched)
            yield from self._hits

    def lead(self, place: int) -> int:
        """Return the index of the row to scroll to so that this row's heading is visible.

        This is the heading directly above the row or, if there is none, the row itself.
        """
        above = place > 0 and not isinstance(self.items[place - 1], SessionRow | HitRow)
        return place - 1 if above else place

    def report_cursor(self) -> None:
        """Post `SessionHighlighted`, unless the cursor is still on the same row."""
        if self.chosen_key != self._told:
            self._told = self.chosen_key
            self.post_message(self.SessionHighlighted(self))

    def fold(self) -> None:
        """Fold or unfold the group that the cursor is in."""
        above = reversed(self.items[: self.cursor + 1])
        heading = next((row for row in above if isinstance(row, Heading)), None)
        if heading is not None:
            folded = self.view.folded ^ {heading.group}
            self.rearrange(replace(self.view, folded=folded), wanted=heading.key)

    # --- rendering -----------------------------------------------------------------------------

    def strips(self, place: int, look: Look) -> Sequence[Strip]:
        """Return the lines of the row at this index."""
        row = self.items[place]
        if isinstance(row, HitsHeading | HitRow):
            return super().strips(place, look)
        height = self._places.bottom(place) - self._places.top(place)
        return draw_row(row, look, self._around(place, row), height)

    def _draw_hits(self, row: Row | HitsHeading | HitRow, look: Look) -> Pieces:
        return row.draw(self.marks, look) if isinstance(row, HitsHeading | HitRow) else ()

    def _around(self, place: int, row: Row) -> RowContext:
        session = row.entry.summary if isinstance(row, SessionRow) else None
        copied = session is None or Flag.DUPLICATE in session.flags  # only originals have a state
        return RowContext(
            query=ListQuery(self.view.query),
            projects=self.view.everywhere and not self.view.grouped,
            sort=self.view.sort,
            days=self.days if self.view.by_day else None,
            chosen=place == self.cursor,
            selected=row.key in self.selection.keys,
            focused=self.has_focus,
            agents=self.listing.has_several_agents,
            live=None if session is None or copied else self._live.get(session.id),
        )

    def column_heads(self, look: Look) -> Pieces:
        """Return the headings of the columns; none if rows have two lines, or there are no rows.

        `look`: that of the line above the list.
        """
        if self._width < ONE_LINE_FROM:
            return ()
        for place, row in enumerate(self.items):
            if isinstance(row, SessionRow):
                return draw_heads(look.narrowed(look.width - self._width), self._around(place, row))
        return ()

    def empty_strips(self, look: Look) -> Sequence[Strip]:
        """Return lines that explain why there are no rows."""
        style, indent = look[Role.MUTED], Piece("   ", look[Role.TEXT])
        typing = bool(self.view.query) and not self.has_focus
        texts = _empty_text(self.view, self.rows, self._snapshot, look.glyphs, typing=typing)
        if self._searched:
            texts = (texts[0], f"Inside sessions: {self._searched}", *texts[1:])
        lines = (
            Line((indent, *wrapped.pieces))
            for text in texts
            for wrapped in wrap((Piece(clean_line(text), style),), max(1, look.width - 4))
        )
        return [Strip([]), *(strip_of(line, look.width) for line in lines)]

    # --- events --------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Redraw every minute, because ages grow and the names of days change."""
        self.set_interval(_MINUTE, self._tick)

    def _tick(self) -> None:
        if self.days is not None and self.days.today != look_of(self.app, 1).today:
            self.rearrange(self.view)
        self.refresh()

    def opens(self, clicks: int) -> bool:
        """Return whether this many clicks open a row: one for a group, two for a session."""
        return super().opens(clicks) or isinstance(self.chosen, Heading)

    # --- actions -------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keep actions enabled even without rows, because some of them bring rows back."""
        del parameters
        return self.can(action)

    def key_label(self, action: str) -> str | None:
        """Return what the key for the scope does now, or None for any other action."""
        return scope_label(everywhere=self.view.everywhere) if action == "scope" else None

    def action_open(self) -> None:
        self._moved, row = True, self.chosen
        self._opens_next = row is None and bool(self.view.query)
        if isinstance(row, Heading):
            self.fold()
        elif isinstance(row, HitRow) and row.hit is not None:
            self.post_message(self.HitOpened(self, row.hit))
        elif (summary := self.highlighted) is not None:
            self.post_message(self.SessionOpened(self, summary))

    def action_clear(self) -> None:
        """Clear the selection or, if nothing is selected, the search."""
        if not self.selection.clear():
            self.filter("")


def _find(listing: Listing, rows: Sequence[Row | HitsHeading | HitRow], key: object) -> int | None:
    """Return the index of the row with a key, or None.

    Comparing the keys of 100,000 sessions would take three times as long.
    """
    entry = listing.entry(key)
    for place, row in enumerate(rows):
        if isinstance(row, SessionRow):
            if row.entry is entry:
                return place
        elif row.key == key:
            return place
    return None


def _stops(row: Row | HitsHeading | HitRow) -> bool:
    """Return whether the cursor can be on a row: a session, a project or a hit."""
    if isinstance(row, HitRow):
        return row.hit is not None
    return isinstance(row, SessionRow | Heading)


def _empty_text(
    view: View, rows: Rows, snapshot: Snapshot | None, glyphs: Glyphs, *, typing: bool
) -> tuple[str, ...]:
    """Return why the list is empty and which keys help, one paragraph per item.

    `typing`: whether the search field has the focus. Other keys would then type into the field, so
    the key that leaves it is named first.
    """
    before = f"{BY_ID['filter.done'].footer(ascii=glyphs.name == 'ascii')} " if typing else ""
    lines = [_reason(view, rows, snapshot, glyphs)]
    query = ListQuery(view.query)
    if query.note is not None:
        lines.append(f"{query.note}.")
    if rows.elsewhere:
        lines.append(
            f"{rows.elsewhere} in other projects. Press {before}{_key('scope')} to show all."
        )
    elif view.query and not view.everywhere:
        lines.append(f"Press {before}{_key('scope')} to search all projects.")
    if rows.concealed and not view.query:
        lines.append(f"{rows.concealed} hidden. Press {_key('hidden')} to show all.")
    return tuple(lines)


def _reason(view: View, rows: Rows, snapshot: Snapshot | None, glyphs: Glyphs) -> str:
    if view.query:
        return f"{_no_title(view, glyphs)} Press {_key('clear')} to close the search."
    if snapshot is None or not snapshot.complete:
        return f"Reading{glyphs.ellipsis}"
    return "No sessions in this project." if rows.elsewhere else "No sessions yet."


def _no_title(view: View, glyphs: Glyphs) -> str:
    quoted = f'"{view.query}"' if glyphs.ascii else f"“{view.query}”"
    return f"No session title matches {quoted}."


def _key(action: str) -> str:
    return BY_ID[f"list.{action}"].footer()


# --- keys ----------------------------------------------------------------------------------------


class ListSelection(KeyPart):
    """The selected sessions, which may include some that a search hides.

    `keys`: the keys of their rows.
    """

    def __init__(self, sessions: SessionList) -> None:
        self.keys: set[str] = set()
        self._list = sessions
        self._last: str | None = None

    @property
    def words(self) -> str:
        """Words that say how many sessions are selected, and how many of them aren't listed."""
        if not self.keys:
            return ""
        unlisted = len(self.keys) - len(self._listed)
        return f"{len(self.keys):,} selected" + (f", {unlisted:,} not listed" if unlisted else "")

    @property
    def _listed(self) -> set[str]:
        return self.keys & _keys(self._list.items) if self.keys else set()

    def keep_listed(self) -> None:
        """Deselect sessions that aren't listed any more."""
        if (listed := self._listed) != self.keys:
            self._select(listed)

    def clear(self) -> bool:
        """Deselect all sessions; return False if none were selected."""
        selected = bool(self.keys)
        if selected:
            self._select(set())
        return selected

    def action_select(self) -> None:
        """Select or deselect the session under the cursor, and move to the next row.

        On a heading, this applies to all sessions in its group.
        """
        row, rows = self._list.chosen, self._list.items
        if isinstance(row, SessionRow):
            self._select(self.keys ^ {row.key}, row.key)
        elif isinstance(row, Heading):
            group = _keys(takewhile(_is_session, rows[self._list.cursor + 1 :]))
            self._select(self.keys - group if group <= self.keys else self.keys | group)
        self._list.action_step(1)

    def action_select_to(self) -> None:
        row, here = self._list.chosen, self._list.cursor
        if isinstance(row, SessionRow):
            start = self._list.find(self._last)
            first, last = sorted((here if start is None else start, here))
            self._select(self.keys | _keys(self._list.items[first : last + 1]), row.key)

    def _select(self, keys: set[str], last: str | None = None) -> None:
        self.keys, self._last = keys, last
        self._list.refresh()
        self._list.post_message(self._list.Arranged())


class CopyKeys(KeyPart):
    """Key actions that copy the id or the command of the session under the cursor."""

    def __init__(self, sessions: SessionList) -> None:
        self._list = sessions

    def action_copy_id(self) -> None:
        session = self._list.highlighted
        if session is not None:
            self._list.post_message(CopyRequested(session.id, "the session id"))

    def action_copy_resume(self) -> None:
        from gemtui.agent.command import quoted

        session = self._list.highlighted
        if session is not None:
            folder = "" if session.project is None else f"cd {quoted(session.project)} && "
            program = WORDS[session.agent].command
            command = f"{folder}{program} --resume {quoted(session.id)}"
            self._list.post_message(CopyRequested(command, "the command that resumes this session"))


def _is_session(row: object) -> bool:
    return isinstance(row, SessionRow)


def _keys(rows: Iterable[object]) -> set[str]:
    return {row.key for row in rows if isinstance(row, SessionRow)}


class ViewKeys(KeyPart):
    """Key actions for a list's scope, sort order, groups, days and hidden sessions."""

    def __init__(self, sessions: SessionList) -> None:
        self._list = sessions

    def _arrange(self, **changes: Any) -> None:
        self._list.rearrange(replace(self._list.view, **changes))

    def can(self, action: str) -> bool:
        """Return False for "scope" if there is no project."""
        return action != "scope" or self._list.project is not None

    def action_filter(self) -> None:
        self._list.bar.open()

    def action_scope(self) -> None:
        self._list.scope(everywhere=not self._list.view.everywhere)

    def action_projects(self) -> None:
        """Let the user choose the project whose sessions to list."""
        from gemtui.ui.kit.dialogs import Choice, ChooseScreen

        counts = self._list.listing.projects()
        choices = [
            Choice(folder, short_path(Path(folder)), counted(count, "session"))
            for folder, count in counts.items()
        ]
        everything = counted(sum(counts.values()), "session")
        choices.insert(0, Choice("", clean_line("All projects"), everything))

        def chosen(folder: str | None) -> None:
            if folder:
                self._list.go_to_project(Path(folder))
            elif folder is not None:
                self._list.scope(everywhere=True)

        self._list.app.push_screen(ChooseScreen("Projects", (), choices, filters=True), chosen)

    def action_sort(self) -> None:
        from gemtui.ui.kit.dialogs import Choice, ChooseScreen

        def chosen(sort: str | None) -> None:
            if sort is not None:
                self._list.sort(Sort(sort))

        self._list.run_worker(self._list.listing.prepare_orders, thread=True, group="orders")
        orders = [Choice(each, clean_line(each.words())) for each in Sort]
        at = list(Sort).index(self._list.view.sort)
        self._list.app.push_screen(ChooseScreen("Sort sessions", (), orders, at=at), chosen)

    def action_days(self) -> None:
        """Let the user choose a day to jump to.

        If necessary, the list is first sorted by date and ungrouped.
        """
        by_start, app = self._list.view.sort is Sort.STARTED, self._list.app
        self._arrange(sort=Sort.STARTED if by_start else Sort.UPDATED, grouped=False)
        view, row = self._list.view, self._list.chosen
        zone = look_of(app, 1).tz
        days = days_of(self._list.rows.rows, view, zone)
        shown = days_of((row,) if isinstance(row, SessionRow) else (), view, zone)

        def chosen(first: str | None) -> None:
            if first is not None:
                self._list.show_at_top(first)

        if days and self._list.days is not None:
            at = shown[0].day if shown else None
            app.push_screen(_day_screen(days, self._list.days.today, at), chosen)

    def action_reverse(self) -> None:
        self._arrange(reverse=not self._list.view.reverse)

    def action_group(self) -> None:
        view = self._list.view
        if view.grouped and not view.by_agent and self._list.listing.has_several_agents:
            self._arrange(by_agent=True)
        else:
            self._arrange(grouped=not view.grouped, by_agent=False)

    def action_hidden(self) -> None:
        self._arrange(hidden=not self._list.view.hidden)

    def action_fold(self) -> None:
        self._list.fold()


def _day_screen(days: Sequence[DayCount], today: date, at: date | None) -> ChooseScreen:
    """Return a dialog that lists days and returns the key of a day's first row.

    `at`: the day the cursor starts on; None means today or, if today isn't listed, the first day.
    """
    from gemtui.ui.kit.dialogs import Choice, ChooseScreen

    choices = [
        Choice(each.first, _day(each.day, today), counted(each.count, "session")) for each in days
    ]
    places = {each.day: place for place, each in enumerate(days)}
    at_place = places.get(at or today, 0)
    return ChooseScreen("Go to a day", (), choices, at=at_place, filters=True)


def _day(day: date, today: date) -> str:
    named = {today: "  today", today - timedelta(days=1): "  yesterday"}
    return f"{day:%Y-%m-%d  %a}{named.get(day, '')}"
