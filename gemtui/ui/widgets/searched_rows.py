"""Rows with a search: a line above them in which somebody types, and what matches below."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from gemtui.text import Clean
from gemtui.ui.render.lines import Pieces
from gemtui.ui.theme import Look
from gemtui.ui.widgets.filter import FilterBar
from gemtui.ui.widgets.rows import Item, RowList


class SearchedRows(Vertical, Generic[Item]):
    """`text(item)` is what the search looks in; every word of the search must be in it."""

    DEFAULT_CSS = "SearchedRows { height: 1fr; } SearchedRows RowList { height: 1fr; }"

    class Searched(Message):
        """Other rows match."""

    def __init__(
        self,
        draw: Callable[[Item, Look], Pieces],
        text: Callable[[Item], str],
        *,
        empty: Clean,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self.rows = RowList(draw, empty=empty)
        self.bar = FilterBar()
        self._text, self.empty = text, empty
        self._all: Sequence[Item] = ()

    def compose(self) -> ComposeResult:
        """The search, then the rows."""
        yield self.bar
        yield self.rows

    @property
    def total(self) -> int:
        """How many rows there would be without a search."""
        return len(self._all)

    @property
    def query_text(self) -> str:
        """What is searched for."""
        return self.bar.text.strip()

    def show(self, items: Sequence[Item], *, fresh: bool = False) -> None:
        """Other rows, of which those are shown that match."""
        self._all = items
        if self.query_text:
            self._search()
        else:
            self._put(items, fresh=fresh)

    def search(self) -> None:
        """Let somebody type."""
        self.bar.open()

    def clear(self) -> bool:
        """End the search; False if there is none."""
        searched = bool(self.bar.text)
        self.bar.close()
        self.rows.focus()
        return searched

    @on(FilterBar.Changed)
    def _changed(self, event: FilterBar.Changed) -> None:
        event.stop()
        self._search()

    @on(FilterBar.Done)
    def _done(self, event: FilterBar.Done) -> None:
        event.stop()
        self.rows.focus()

    @work(exclusive=True, group="search")
    async def _search(self) -> None:
        words, items, text = self.query_text.lower().split(), self._all, self._text
        if not words:
            self._put(items)
            return

        def matching() -> list[Item]:
            return [item for item in items if _holds(text(item).lower(), words)]

        found = matching() if len(items) < 2000 else await asyncio.to_thread(matching)
        self._put(found)

    def _put(self, items: Sequence[Item], *, fresh: bool = False) -> None:
        self.rows.empty = Clean("nothing matches") if self.query_text else self.empty
        self.rows.show(items, fresh=fresh)
        self.post_message(self.Searched())


def _holds(text: str, words: Sequence[str]) -> bool:
    return all(word in text for word in words)
