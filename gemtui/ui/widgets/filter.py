"""The line above the list: a rule, or the search that somebody types."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Rule

from gemtui.ui.clean import Input, Static
from gemtui.ui.keys import Where, bindings
from gemtui.ui.render.lines import own
from gemtui.ui.theme import look_of


class FilterBar(Horizontal):
    """One line: a rule while there is no search, else `/` and an input.

    It only says what is typed; what is searched is up to who listens. A search inside of the
    sessions' text belongs beside it, as another source of rows.
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
        """The search is another one; "" means none."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Done(Message):
        """The search stays, the keys belong to the list again."""

    def compose(self) -> ComposeResult:
        """Both forms; a class on this widget decides which one shows."""
        ascii = look_of(self.app, 1).glyphs.name == "ascii"
        yield Rule(line_style="ascii" if ascii else "solid")
        yield Static(own("/"))
        yield Input(select_on_focus=False)

    @property
    def text(self) -> str:
        """What is typed."""
        return self.query_one(Input).value

    def open(self) -> None:
        """Let somebody type."""
        self.typing = True
        self.add_class("-open")
        self.query_one(Input).focus()

    def close(self) -> None:
        """No search any more: the rule again."""
        self.typing = False
        self.query_one(Input).value = ""
        self.remove_class("-open")

    def on_descendant_blur(self) -> None:
        """The focus has gone elsewhere."""
        self.typing = False

    def on_input_changed(self, event: Input.Changed) -> None:
        """Every keystroke counts."""
        event.stop()
        self.post_message(self.Changed(event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter in the input."""
        event.stop()
        self.action_done()

    def action_done(self) -> None:
        """Keep the search."""
        if not self.text.strip():
            self.close()
        self.post_message(self.Done())

    def action_clear(self) -> None:
        """Give the search up."""
        self.close()
        self.post_message(self.Done())
