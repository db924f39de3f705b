"""The line below a transcript in which one types what to find there."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal

from gemtui.text import visible_line
from gemtui.ui.clean import Input, Static
from gemtui.ui.keys import Where, bindings
from gemtui.ui.render.lines import own
from gemtui.ui.widgets.finding import Found

if TYPE_CHECKING:
    from gemtui.ui.widgets.searched import SearchedView


class FindBar(Horizontal):
    """Searches its transcript with every keystroke and says which hit of how many this is.

    The transcript puts it below itself; closing it keeps the search, so that n and N go on.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.FIND)
    DEFAULT_CSS = """
    FindBar {
        height: 1;
        & > Static { width: auto; padding: 0 1; color: $text-muted; }
        & > .slash { color: $text-accent; }
        & > Input { width: 1fr; }
    }
    """

    def __init__(self, view: SearchedView) -> None:
        super().__init__()
        self._view = view

    def compose(self) -> ComposeResult:
        """Sign, input, count."""
        yield Static(own("/"), classes="slash")
        yield Input(
            visible_line(self._view.found.query), placeholder=own("find in this transcript")
        )
        yield Static(classes="count")

    def on_mount(self) -> None:
        """Type at once, and keep the count up to date."""
        self.query_one(Input).focus()
        self.watch(self._view, "found", self._say)

    def _say(self, found: Found) -> None:
        words = str(found) if found.query else ""
        again = f"from the {found.wrapped} again  " if found.wrapped else ""
        self.query_one(".count", Static).update(visible_line(again + words))

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        if event.value.strip() != self._view.found.query:
            self._view.find(event.value)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_close()

    def focus_input(self) -> None:
        """Type on, over what is there."""
        text = self.query_one(Input)
        text.focus()
        text.select_all()

    def take(self, event: events.Key) -> None:
        """A key that was typed before this line had the focus."""
        self.query_one(Input).post_message(events.Key(event.key, event.character))

    def action_next(self) -> None:
        """To the next hit."""
        self._view.action_next_match()

    def action_previous(self) -> None:
        """To the hit before."""
        self._view.action_previous_match()

    def action_close(self) -> None:
        """Away with the bar, on with the transcript."""
        self._view.focus()
        self.remove()
