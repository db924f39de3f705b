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
from textual.suggester import Suggester
from textual.widgets import Rule
from textual.worker import Worker, WorkerCancelled

from gemtui.text import Clean
from gemtui.ui.draw.lines import Pieces, own
from gemtui.ui.draw.theme import Look, look_of
from gemtui.ui.kit.clean_widgets import Input, Static
from gemtui.ui.kit.dialog_guard import AnsweringScreen
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.row_list import Item, RowList

_MANY = 2_000
"""Number of items from which the search runs in a thread."""


class FilterBar(Horizontal):
    """A horizontal line that turns into `/` and an input during a search.

    It only posts the typed text; the receiver does the searching. `suggester` completes words.
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

    typing = False
    """Whether the user is typing here, or is about to.

    It is set by `open`, because the focus arrives a moment later.
    """

    @dataclass
    class Changed(Message):
        """The search text has changed; "" means no search."""

        text: str

    @dataclass
    class Done(Message):
        """The keys go to the list again; `opens`: also open the row under the cursor."""

        opens: bool = False

    def __init__(self, suggester: Suggester | None = None) -> None:
        super().__init__()
        self._suggester = suggester

    def compose(self) -> ComposeResult:
        """Build the line and the search field; a CSS class decides which one is visible."""
        ascii = look_of(self.app, 1).glyphs.name == "ascii"
        yield Rule(line_style="ascii" if ascii else "solid")
        yield Static(own("/"))
        yield Input(select_on_focus=False, suggester=self._suggester)

    @property
    def text(self) -> str:
        """The text in the search field."""
        return self.query_one(Input).value

    def open(self) -> None:
        """Show and focus the search field."""
        self.typing = True
        self.add_class("-open")
        self.query_one(Input).focus()

    def close(self) -> None:
        """Clear the search and show the horizontal line again."""
        self.typing = False
        self.query_one(Input).value = ""
        self.remove_class("-open")

    def on_descendant_blur(self) -> None:
        """Note that the focus has left the search field."""
        self.typing = False

    def on_input_changed(self, event: Input.Changed) -> None:
        """Post the text after each change."""
        event.stop()
        self.post_message(self.Changed(event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Finish the search when enter is pressed."""
        event.stop()
        self.action_open()

    def action_open(self) -> None:
        """Keep the search, and open its first result or the selected one."""
        searched = bool(self.text.strip())
        if not searched:
            self.close()
        self.post_message(self.Done(opens=searched))

    def action_done(self) -> None:
        """Keep the search and return to the list."""
        if not self.text.strip():
            self.close()
        self.post_message(self.Done())

    def action_clear(self) -> None:
        """Clear the search and return to the list."""
        self.close()
        self.post_message(self.Done())


class SearchedRows(Vertical, Generic[Item]):
    """Rows with a search field above them.

    A row matches if `text(item)` contains every word of the search.
    """

    DEFAULT_CSS = "SearchedRows { height: 1fr; } SearchedRows RowList { height: 1fr; }"

    class Searched(Message):
        """The matching rows have changed."""

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
        """Build the search, then the rows."""
        yield self.bar
        yield self.rows

    @property
    def total(self) -> int:
        """The number of rows without the search."""
        return len(self._all)

    @property
    def query_text(self) -> str:
        """The search text."""
        return self.bar.text.strip()

    def show(self, items: Sequence[Item], *, fresh: bool = False) -> None:
        """Replace the rows; with a search, show only the matching ones.

        `fresh`: move the cursor to the first row.
        """
        self._all = items
        if self.query_text:
            self._search()
        else:
            self._put(items, fresh=fresh)

    def search(self) -> None:
        """Show and focus the search."""
        self.bar.open()

    def search_again(self, text: str) -> None:
        """Repeat an earlier search, leaving the focus on the rows."""
        self.bar.open()
        self.bar.query_one(Input).value = text
        self.rows.focus()

    def clear(self) -> bool:
        """End the search and focus the rows; return False if there was no search."""
        searched = bool(self.bar.text)
        self.bar.close()
        self.rows.focus()
        return searched

    @on(FilterBar.Changed)
    def _changed(self, event: FilterBar.Changed) -> None:
        event.stop()
        self._search()

    @on(FilterBar.Done)
    async def _done(self, event: FilterBar.Done) -> None:
        event.stop()
        self.rows.focus()
        if event.opens:
            for search in self._searches:
                with suppress(WorkerCancelled):
                    await search.wait()
            # Called in the rows' message loop, because a message sent from this widget's loop would
            # stop bubbling here.
            self.rows.call_later(self.rows.action_open)

    @property
    def _searches(self) -> list[Worker[Any]]:
        return [each for each in self.workers if each.node is self and each.group == "search"]

    @work(exclusive=True, group="search")
    async def _search(self) -> None:
        self._put(await matching(self._all, self._text, self.query_text))

    def _put(self, items: Sequence[Item], *, fresh: bool = False) -> None:
        self.rows.empty = Clean("No matches.") if self.query_text else self.empty
        self.rows.show(items, fresh=fresh)
        self.post_message(self.Searched())


async def matching(
    items: Sequence[Item], text: Callable[[Item], str], query: str
) -> Sequence[Item]:
    """Return the items whose text contains every word of `query`, ignoring case.

    `_MANY` items or more are searched in a thread.
    """
    words = query.lower().split()

    def found() -> Sequence[Item]:
        return [each for each in items if _holds(text(each).lower(), words)]

    if not words:
        return items
    return found() if len(items) < _MANY else await asyncio.to_thread(found)


def _holds(text: str, words: Sequence[str]) -> bool:
    return all(word in text for word in words)


class FiltersRows:
    """The keys of a screen with `SearchedRows`: start a search, and end it with esc.

    This is not a widget, because Textual reads styles only from the first of several widget base
    classes.
    """

    @property
    def searched(self) -> SearchedRows[Any]:
        """The rows with their search field."""
        return cast("AnsweringScreen[Any]", self).query_one(SearchedRows)

    def action_filter(self) -> None:
        """Show and focus the search."""
        self.searched.search()

    def key_label(self, action: str) -> str | None:
        """Return the footer label of a key that currently has a different effect."""
        return "clear" if action == "close" and self.searched.query_text else None

    def action_close(self) -> None:
        """End the search, or close the screen if there is none."""
        if not self.searched.clear():
            cast("AnsweringScreen[Any]", super()).action_close()
