"""Keys that change which sessions are listed and in which order."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from gemtui.sessions.listing import Sort, days_of
from gemtui.text import clean_line
from gemtui.ui.draw.lines import own
from gemtui.ui.draw.theme import look_of
from gemtui.ui.kit.parts import KeyPart
from gemtui.ui.sessions.list_base import ArrangedSessions


class ViewKeys(KeyPart):
    """The keys for a list's scope, sort order, groups, days and hidden sessions."""

    def __init__(self, sessions: ArrangedSessions) -> None:
        self._list = sessions

    def _arrange(self, **changes: Any) -> None:
        self._list.rearrange(replace(self._list.view, **changes))

    def action_filter(self) -> None:
        """Show and focus the search field."""
        self._list.bar.open()

    def action_scope(self) -> None:
        """Switch between this project and all projects."""
        self._list.scope(everywhere=not self._list.view.everywhere)

    def action_sort(self) -> None:
        """Let the user choose the sort order."""
        from gemtui.ui.kit.dialogs import Choice, ChooseScreen

        def chosen(sort: str | None) -> None:
            if sort is not None:
                self._list.sort(Sort(sort))

        orders = [Choice(each, clean_line(each.words)) for each in Sort]
        at = list(Sort).index(self._list.view.sort)
        self._list.app.push_screen(ChooseScreen(own("Sort sessions"), (), orders, at=at), chosen)

    def action_days(self) -> None:
        """Let the user choose a day to jump to; the list is then sorted by day."""
        from gemtui.ui.sessions.day_screen import day_screen

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
            app.push_screen(day_screen(days, self._list.days.today, at), chosen)

    def action_reverse(self) -> None:
        """Reverse the sort order."""
        self._arrange(reverse=not self._list.view.reverse)

    def action_group(self) -> None:
        """Turn grouping by project on or off."""
        self._arrange(grouped=not self._list.view.grouped)

    def action_hidden(self) -> None:
        """Show or hide hidden sessions."""
        self._arrange(hidden=not self._list.view.hidden)

    def action_fold(self) -> None:
        """Fold or unfold the group under the cursor."""
        self._list.fold()
