"""Key actions of the session list: its selection, its order, and what it shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from gemtui.sessions.catalog.listing import DayCount, Heading, Row, SessionRow, Sort, days_of
from gemtui.text import Clean, clean_line, counted
from gemtui.ui.draw.lines import own
from gemtui.ui.draw.theme import look_of
from gemtui.ui.kit.screens import KeyPart
from gemtui.ui.sessions.labels import selection
from gemtui.ui.sessions.list_base import ArrangedSessions

if TYPE_CHECKING:
    from gemtui.ui.kit.dialogs import ChooseScreen


class ListSelection(KeyPart):
    """The selected sessions, which may include some that a search hides.

    `keys`: the keys of their rows.
    """

    def __init__(self, sessions: ArrangedSessions) -> None:
        self.keys: set[str] = set()
        self._list = sessions
        self._last: str | None = None

    @property
    def words(self) -> str:
        """Words that say how many sessions are selected; "" if there are none."""
        return selection(len(self.keys), len(self.keys) - len(self._listed))

    @property
    def _listed(self) -> set[str]:
        return {key for key in self.keys if self._list.find(key) is not None}

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


def _is_session(row: Row) -> bool:
    return isinstance(row, SessionRow)


def _keys(rows: Iterable[Row]) -> set[str]:
    return {row.key for row in rows if isinstance(row, SessionRow)}


class ViewKeys(KeyPart):
    """Key actions for a list's scope, sort order, groups, days and hidden sessions."""

    def __init__(self, sessions: ArrangedSessions) -> None:
        self._list = sessions

    def _arrange(self, **changes: Any) -> None:
        self._list.rearrange(replace(self._list.view, **changes))

    def action_filter(self) -> None:
        self._list.bar.open()

    def action_scope(self) -> None:
        self._list.scope(everywhere=not self._list.view.everywhere)

    def action_sort(self) -> None:
        from gemtui.ui.kit.dialogs import Choice, ChooseScreen

        def chosen(sort: str | None) -> None:
            if sort is not None:
                self._list.sort(Sort(sort))

        orders = [Choice(each, clean_line(each.words)) for each in Sort]
        at = list(Sort).index(self._list.view.sort)
        self._list.app.push_screen(ChooseScreen(own("Sort sessions"), (), orders, at=at), chosen)

    def action_days(self) -> None:
        """Let the user choose a day to jump to.

        If necessary, the list is first sorted by date and ungrouped.
        """
        view, app = self._list.view, self._list.app
        sort = view.sort if view.sort is Sort.STARTED else Sort.UPDATED
        self._arrange(sort=sort, grouped=False)
        zone, here = look_of(app, 1).tz, self._list.chosen
        days = days_of(self._list.items, sort, zone)
        shown = days_of(() if here is None else (here,), sort, zone)

        def chosen(first: str | None) -> None:
            self._list.go_to(first)

        if days and self._list.days is not None:
            at = shown[0].day if shown else None
            app.push_screen(_day_screen(days, self._list.days.today, at), chosen)

    def action_reverse(self) -> None:
        self._arrange(reverse=not self._list.view.reverse)

    def action_group(self) -> None:
        self._arrange(grouped=not self._list.view.grouped)

    def action_hidden(self) -> None:
        self._arrange(hidden=not self._list.view.hidden)

    def action_fold(self) -> None:
        self._list.fold()


def _day_screen(days: Sequence[DayCount], today: date, at: date | None) -> ChooseScreen:
    """Return a dialog that lists days and returns the key of a day's first row.

    `at`: the day the cursor starts on; None means today or, if today isn't listed, the first day.
    """
    from gemtui.ui.kit.dialogs import Choice, ChooseScreen

    choices = [Choice(each.first, _day(each.day, today), own(counted(each.count, "session"))) for each in days]
    places = {each.day: place for place, each in enumerate(days)}
    return ChooseScreen(own("Go to a day"), (), choices, at=places.get(at or today, 0))


def _day(day: date, today: date) -> Clean:
    named = {today: "  today", today - timedelta(days=1): "  yesterday"}
    return own(f"{day:%Y-%m-%d  %a}{named.get(day, '')}")
