"""A list with a search field above it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
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
"""Number of files above which searching uses a thread."""


class FilterBar(Horizontal):
    """A line that shows a rule, or `/` and an input during a search.

    It only posts the typed text; searching is up to the receiver. `suggester` completes words.
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
    """Whether somebody types here, or is about to: the focus comes a moment after `open`."""

    class Changed(Message):
        """The search text has changed; "" means no search."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Done(Message):
        """The keys belong to the list again; `opens`: open the row under the cursor."""

        def __init__(self, *, opens: bool = False) -> None:
            super().__init__()
            self.opens = opens

    def __init__(self, suggester: Suggester | None = None) -> None:
        super().__init__()
        self._suggester = suggester

    def compose(self) -> ComposeResult:
        """Build both forms; a class on this widget decides which one is visible."""
        ascii = look_of(self.app, 1).glyphs.name == "ascii"
        yield Rule(line_style="ascii" if ascii else "solid")
        yield Static(own("/"))
        yield Input(select_on_focus=False, suggester=self._suggester)

    @property
    def text(self) -> str:
        """The typed text."""
        return self.query_one(Input).value

    def open(self) -> None:
        """Show and focus the input."""
        self.typing = True
        self.add_class("-open")
        self.query_one(Input).focus()

    def close(self) -> None:
        """Clear the search and show the rule again."""
        self.typing = False
        self.query_one(Input).value = ""
        self.remove_class("-open")

    def on_descendant_blur(self) -> None:
        """Note that the focus has moved elsewhere."""
        self.typing = False

    def on_input_changed(self, event: Input.Changed) -> None:
        """Post each change of the text."""
        event.stop()
        self.post_message(self.Changed(event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Handle enter in the input."""
        event.stop()
        self.action_open()

    def action_open(self) -> None:
        """Keep the search, and open its first or selected result."""
        searched = bool(self.text.strip())
        if not searched:
            self.close()
        self.post_message(self.Done(opens=searched))

    def action_done(self) -> None:
        """Keep the search."""
        if not self.text.strip():
            self.close()
        self.post_message(self.Done())

    def action_clear(self) -> None:
        """Clear the search."""
        self.close()
        self.post_message(self.Done())


class SearchedRows(Vertical, Generic[Item]):
    """Rows with a search; every word of the search must occur in `text(item)`."""

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
        """The number of rows without a search."""
        return len(self._all)

    @property
    def query_text(self) -> str:
        """The search text."""
        return self.bar.text.strip()

    def show(self, items: Sequence[Item], *, fresh: bool = False) -> None:
        """Replace the rows and show the matching ones."""
        self._all = items
        if self.query_text:
            self._search()
        else:
            self._put(items, fresh=fresh)

    def search(self) -> None:
        """Show and focus the search."""
        self.bar.open()

    def search_again(self, text: str) -> None:
        """Repeat an earlier search; the rows keep the focus."""
        self.bar.open()
        self.bar.query_one(Input).value = text
        self.rows.focus()

    def clear(self) -> bool:
        """End the search; return False if there was none."""
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
            # A message posted by its parent would not bubble further, so the rows post it.
            self.rows.call_later(self.rows.action_open)

    @property
    def _searches(self) -> list[Worker[Any]]:
        return [each for each in self.workers if each.node is self and each.group == "search"]

    @work(exclusive=True, group="search")
    async def _search(self) -> None:
        self._put(await matching(self._all, self._text, self.query_text))

    def _put(self, items: Sequence[Item], *, fresh: bool = False) -> None:
        self.rows.empty = Clean("no matches") if self.query_text else self.empty
        self.rows.show(items, fresh=fresh)
        self.post_message(self.Searched())


async def matching(
    items: Sequence[Item], text: Callable[[Item], str], query: str
) -> Sequence[Item]:
    """Return the items whose text has every word of `query`.

    Very many items are searched in a thread.
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
    """The keys of a screen around `SearchedRows`: start a search, and end it with esc.

    A plain class: Textual reads styles only from the first of several widget base classes.
    """

    @property
    def searched(self) -> SearchedRows[Any]:
        """The rows with their search."""
        return cast("AnsweringScreen[Any]", self).query_one(SearchedRows)

    def action_filter(self) -> None:
        """Show and focus the search."""
        self.searched.search()

    def key_label(self, action: str) -> str | None:
        """Return what the footer calls a key that does something else now."""
        return "clear" if action == "close" and self.searched.query_text else None

    def action_close(self) -> None:
        """End the search, else close."""
        if not self.searched.clear():
            cast("AnsweringScreen[Any]", super()).action_close()
