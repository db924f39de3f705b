"""Keys that come in one burst with the one that opens a search: they are typed, not commands."""

from __future__ import annotations

from abc import abstractmethod

from textual import events
from textual.scroll_view import ScrollView


class TypedAhead(ScrollView, inherit_bindings=False):
    """A view whose `/` opens a search: keys that still reach the view are handed over to it."""

    _hands_over = False

    @abstractmethod
    async def open_search(self) -> None:
        """Put the search where keys can be handed over to it."""

    @abstractmethod
    def hand_over(self, event: events.Key) -> None:
        """Let the search have this key."""

    async def handle_key(self, event: events.Key) -> bool:
        """The search's key acts here and now: its binding would run after the keys behind it."""
        if not self._hands_over and event.key != "slash":
            return await super().handle_key(event)
        event.stop()
        if self._hands_over:
            self.hand_over(event)
        else:
            self._hands_over = True
            await self.open_search()
        return True

    def on_blur(self) -> None:
        """The search has the focus now: keys that come here later are the view's again."""
        self._hands_over = False
