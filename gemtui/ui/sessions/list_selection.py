"""The sessions that are selected in the list."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

from gemtui.sessions.listing import Heading, Row, SessionRow
from gemtui.ui.kit.parts import KeyPart
from gemtui.ui.sessions.labels import selection
from gemtui.ui.sessions.list_base import ArrangedSessions


class ListSelection(KeyPart):
    """The selection, which can include sessions hidden by a search.

    `keys`: the keys of the selected rows.
    """

    def __init__(self, sessions: ArrangedSessions) -> None:
        self.keys: set[str] = set()
        self._list = sessions
        self._last: str | None = None

    @property
    def words(self) -> str:
        """How many sessions are selected, in words; "" if there are none."""
        return selection(len(self.keys), len(self.keys) - len(self._listed))

    @property
    def _listed(self) -> set[str]:
        return {key for key in self.keys if self._list.find(key) is not None}

    def keep_listed(self) -> None:
        """Deselect sessions that aren't listed."""
        if (listed := self._listed) != self.keys:
            self._select(listed)

    def clear(self) -> bool:
        """Deselect all sessions; return False if none were selected."""
        selected = bool(self.keys)
        if selected:
            self._select(set())
        return selected

    def action_select(self) -> None:
        """Select or deselect the session, and move to the next row.

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
        """Select all sessions between the one selected last and this one."""
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
