"""The dialog to edit a list of tool names."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult

from gemtui.policy.model import tool_catalog
from gemtui.text import Clean, visible_line
from gemtui.ui.draw.lines import own
from gemtui.ui.kit.clean_widgets import Dialog, Input, Static
from gemtui.ui.kit.field_screen import FieldScreen
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.rules.form import NameSuggester, tool_hint
from gemtui.ui.rules.form_fields import names


class ToolListScreen(FieldScreen[tuple[str, ...]]):
    """A dialog that returns the names (() for no list), or None for no change."""

    BINDINGS = bindings(Where.DIALOG)

    def __init__(self, title: Clean, meaning: Clean, chosen: tuple[str, ...]) -> None:
        super().__init__(subject=title)
        self._heading, self._meaning, self._chosen = title, meaning, chosen

    def compose(self) -> ComposeResult:
        """Build the meaning of the list, the field for the names, and a note on them."""
        known_names = [tool.name for tool in tool_catalog.TOOLS]
        with Dialog(self._heading, own("enter takes it   esc closes")):
            yield Static(self._meaning)
            yield Input(
                visible_line(", ".join(self._chosen)),
                placeholder=own("names separated by commas; empty for no list"),
                suggester=NameSuggester(known_names),
                id="names",
            )
            yield Static(id="tools-hint", classes="hint")
            yield Static(own("  ".join(known_names)), id="known")

    @on(Input.Changed)
    def _look(self, event: Input.Changed) -> None:
        self.query_one("#tools-hint", Static).update(tool_hint(event.value))

    def action_take(self) -> None:
        """Close with the names."""
        self.dismiss(names(self.query_one("#names", Input).value))
