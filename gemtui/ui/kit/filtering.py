"""A list with a search field above it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, cast

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Rule
from textual.worker import Worker, WorkerCancelled

from gemtui.text import composed
from gemtui.ui.draw.lines import Pieces
from gemtui.ui.draw.theme import Look, glyphs_of
from gemtui.ui.kit.app_base import AnsweringScreen
from gemtui.ui.kit.clean_widgets import Complete, Input, Static
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.row_list import Item, RowList

_MANY = 2_000
"""Lists with at least this many items are searched on a background thread."""


class FilterBar(Horizontal):
    """A horizontal rule that turns into `/` and an input while the user searches.

    The bar only posts the search text; its parent does the filtering. `complete`: suggests a
    completion for the text typed so far (see `Input`).
    """

    BINDINGS = bindings(Where.FILTER)
    DEFAULT_CSS = """
    FilterBar {
        height: 1;
        & > Static { width: 3; padding: 0 1; color: $text-accent; }
        & > Input { width: 1fr; }
        & > Rule.-horizontal { margin: 0; color: $foreground 30%; }
        & > Static, & > Input { display: none; }
        &.-open > Static, &.-open > Input { display: block; }
        &.-open > Rule { display: none; }
    }
    """

    kept = ""
    """The last search text, which `open` brings back after `close`."""
    typing = False
    """Whether the user is typing in the search field or is about to.

    `open` sets this attribute right away, because the field gets the focus only a moment later.
    """

    @dataclass
    class QueryChanged(Message):
        """Posted when the search text has changed; "" means no search."""

        text: str

    @dataclass
    class Finished(Message):
        """Posted when the user has finished typing a search.

        `opens`: whether the list should now open the row under its cursor.
        """

        opens: bool = False

    def __init__(self, complete: Complete | None = None) -> None:
        super().__init__()
        self._complete = complete

    def compose(self) -> ComposeResult:
        """Build the rule and the search field; a CSS class decides which one is visible."""
        ascii = glyphs_of(self.app).ascii
        yield Rule(line_style="ascii" if ascii else "solid")
        yield Static("/")
        yield Input(select_on_focus=False, complete=self._complete)

    @property
    def text(self) -> str:
        """The text in the search field."""
        return self.query_one(Input).value

    @property
    def words(self) -> str:
        """The search text or, if the field is closed, the last one."""
        return self.text if self.has_class("-open") else self.kept

    def open(self) -> None:
        """Show and focus the search field; the last search is selected, to be replaced."""
        self.typing = True
        self.add_class("-open")
        field = self.query_one(Input)
        if not field.value:
            field.value = self.kept
            field.select_all()
        field.focus()

    def close(self) -> None:
        """End the search and show the rule again."""
        self.kept, self.typing = self.words, False
        self.query_one(Input).value = ""
        self.remove_class("-open")

    def on_descendant_blur(self) -> None:
        self.typing = False

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.QueryChanged(event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_open()

    def action_open(self) -> None:
        """Keep the search, and ask the list to open the row under its cursor.

        Without search text, close the field instead.
        """
        searched = bool(self.text.strip())
        if not searched:
            self.close()
        self.post_message(self.Finished(opens=searched))

    async def action_search(self) -> None:
        """Open the screen that searches all sessions, with these words."""
        await self.screen.run_action("search")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return False for "search" on screens that can't search all sessions."""
        del parameters
        return action != "search" or hasattr(self.screen, "action_search")

    def action_done(self) -> None:
        if not self.text.strip():
            self.close()
        self.post_message(self.Finished())

    def action_clear(self) -> None:
        self.close()
        self.post_message(self.Finished())


class SearchedRows(Vertical, Generic[Item]):
    """A list with a search field above it.

    `draw`: renders an item. `text`: returns the text to search in an item; a row matches if this
    text contains every word of the search. `empty`: the text to show if there are no rows.
    """

    DEFAULT_CSS = "SearchedRows { height: 1fr; } SearchedRows RowList { height: 1fr; }"

    class Searched(Message):
        """Posted when a list's matching rows may have changed."""

    def __init__(
        self,
        draw: Callable[[Item, Look], Pieces],
        text: Callable[[Item], str],
        *,
        empty: str,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id, classes="pane")
        self.rows = RowList(draw, empty=empty)
        self.bar = FilterBar()
        self._text, self.empty = text, empty
        self._all: Sequence[Item] = ()

    def compose(self) -> ComposeResult:
        yield self.bar
        yield self.rows

    @property
    def total(self) -> int:
        """The number of rows before the search filters them."""
        return len(self._all)

    @property
    def query_text(self) -> str:
        """The search text."""
        return self.bar.text.strip()

    def show(self, items: Sequence[Item], *, fresh: bool = False) -> None:
        """Replace the rows; during a search, show only the matching ones.

        `fresh`: move the cursor to the first row (ignored during a search).
        """
        self._all = items
        if self.query_text:
            self._search()
        else:
            self._put(items, fresh=fresh)

    def search(self) -> None:
        """Show and focus the search field."""
        self.bar.open()

    def search_again(self, text: str) -> None:
        """Repeat an earlier search for `text`, keeping the focus on the rows."""
        self.bar.open()
        self.bar.query_one(Input).value = text
        self.rows.focus()

    def clear(self) -> bool:
        """End the search and focus the rows; return whether there was a search to end."""
        searched = bool(self.bar.text)
        self.bar.close()
        self.rows.focus()
        return searched

    @on(FilterBar.QueryChanged)
    def _changed(self, event: FilterBar.QueryChanged) -> None:
        event.stop()
        self._search()

    @on(FilterBar.Finished)
    async def _done(self, event: FilterBar.Finished) -> None:
        event.stop()
        self.rows.focus()
        if event.opens:
            for search in self._searches:
                with suppress(WorkerCancelled):
                    await search.wait()
            # Call this in the rows' message loop: a message sent from this widget's own loop
            # wouldn't bubble up any further.
            self.rows.call_later(self.rows.action_open)

    @property
    def _searches(self) -> list[Worker[Any]]:
        return [
            worker for worker in self.workers if worker.node is self and worker.group == "search"
        ]

    @work(exclusive=True, group="search")
    async def _search(self) -> None:
        self._put(await matching_items(self._all, self._text, self.query_text))

    def _put(self, items: Sequence[Item], *, fresh: bool = False) -> None:
        self.rows.empty = "No matches." if self.query_text else self.empty
        self.rows.show(items, fresh=fresh)
        self.post_message(self.Searched())


async def matching_items(
    items: Sequence[Item], text: Callable[[Item], str], query: str
) -> Sequence[Item]:
    """Return the items whose text matches a search (see `matcher`).

    If there are `_MANY` items or more, they are searched on a background thread.
    """
    if not query.split():
        return items
    matches = matcher(query)

    def found() -> Sequence[Item]:
        return [each for each in items if matches(text(each))]

    return found() if len(items) < _MANY else await asyncio.to_thread(found)


def matcher(query: str) -> Callable[[str], bool]:
    """Return a function that says whether a text contains every word of a search, ignoring case."""
    wanted = composed(query).lower().split()

    def matches(text: str) -> bool:
        searched = composed(text).lower()
        return all(word in searched for word in wanted)

    return matches


class FiltersRows:
    """Mixin for a screen with `SearchedRows`: the actions that start and end a search.

    This class isn't a widget because Textual reads the styles of only the first widget among a
    class's bases.
    """

    @property
    def searched(self) -> SearchedRows[Any]:
        """The list with its search field."""
        return cast("AnsweringScreen[Any]", self).query_one(SearchedRows)

    def action_filter(self) -> None:
        self.searched.search()

    def key_label(self, action: str) -> str | None:
        """Return "Clear" for the key that would end a search, or None for the usual label."""
        return "Clear" if action == "close" and self.searched.query_text else None

    def action_close(self) -> None:
        """End the search or, if there is none, close the screen."""
        if not self.searched.clear():
            cast("AnsweringScreen[Any]", super()).action_close()
