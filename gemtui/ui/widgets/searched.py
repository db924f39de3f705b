"""A view with a search: its line below, its keys, and what is typed before that line is there."""

from __future__ import annotations

from textual import events, on
from textual.reactive import var
from textual.widget import Widget

from gemtui.ui.widgets.find_bar import FindBar
from gemtui.ui.widgets.finder import Finder, HitsFound
from gemtui.ui.widgets.finding import NOTHING, Found
from gemtui.ui.widgets.typed_ahead import TypedAhead


class SearchedView(TypedAhead, inherit_bindings=False):
    """What can be searched by `/`, with n and N from hit to hit; `finder` does the searching."""

    finder: Finder
    found: var[Found] = var(NOTHING)
    """How far the search is."""

    _bar: FindBar | None = None

    def find(self, query: str) -> None:
        """Marks what is found and goes to the first hit below the cursor; "" ends the search."""
        self.finder.find(query)

    async def open_search(self) -> None:
        """The line below appears; it may hold a search already."""
        await self.action_find()

    def hand_over(self, event: events.Key) -> None:
        """A key that was typed before the line below had the focus."""
        if self._bar is not None:
            self._bar.take(event)

    async def action_find(self) -> None:
        """Type what to find, in a line below."""
        assert isinstance(self.parent, Widget)
        if self._bar is None or not self._bar.is_attached:
            self._bar = FindBar(self)
            await self.parent.mount(self._bar, after=self)
        else:
            self._bar.focus_input()

    def close_find(self) -> None:
        """No search any more, and no line for it."""
        self.finder.clear()
        if self._bar is not None and self._bar.is_attached:
            self._bar.remove()

    def watch_found(self, before: Found, found: Found) -> None:
        """The keys for the next and the previous hit act only in a search."""
        if bool(before.query) != bool(found.query):
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether a key does something now."""
        del parameters
        return action not in ("next_match", "previous_match") or bool(self.found.query)

    def action_next_match(self) -> None:
        """To the next hit."""
        self.finder.step(1)

    def action_previous_match(self) -> None:
        """To the hit before."""
        self.finder.step(-1)

    @on(HitsFound)
    def _hits_found(self, message: HitsFound) -> None:
        message.stop()
        self.finder.take(message)
