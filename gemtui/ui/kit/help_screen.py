"""The keys that act on the present screen: a list that can be searched, and run from."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult
from textual.content import Content

from gemtui.ui.draw.lines import own
from gemtui.ui.kit.clean_widgets import Dialog, Input, Option, OptionList
from gemtui.ui.kit.dialog_guard import DialogScreen
from gemtui.ui.kit.keys import Key, Where, bindings


class HelpScreen(DialogScreen[Key]):
    """Closes with the key whose action was chosen, or with None."""

    BINDINGS = bindings(Where.DIALOG, Where.HELP)

    def __init__(self, keys: Sequence[Key], *, ascii: bool) -> None:
        super().__init__()
        self._keys = keys
        self._ascii = ascii

    def compose(self) -> ComposeResult:
        """A search and the list."""
        with Dialog(own("Keys that work here"), own("enter does it   esc closes")):
            yield Input(placeholder=own("Search"))
            yield OptionList()

    def on_mount(self) -> None:
        """Show all keys."""
        self._fill("")

    @on(Input.Changed)
    def _searched(self, event: Input.Changed) -> None:
        self._fill(event.value.strip().lower())

    def _fill(self, wanted: str) -> None:
        options = self.query_one(OptionList)
        options.clear_options()
        place: Where | None = None
        for key in self._keys:
            shown = key.shown(ascii=self._ascii)
            if wanted not in f"{shown} {key.label} {key.help} {key.group}".lower():
                continue
            if key.where is not place:
                place = key.where
                options.add_option(Option(Content.styled(place, "bold"), disabled=True))
            options.add_option(Option(self._row(shown, key.help), id=key.id))
        options.action_first()

    def _row(self, shown: str, help: str) -> Content:
        return Content.assemble("  ", (f"{shown:<13}", "$text-accent"), " ", help)

    def key_down(self) -> None:
        """Move in the list while typing."""
        self.query_one(OptionList).action_cursor_down()

    def key_up(self) -> None:
        """Move in the list while typing."""
        self.query_one(OptionList).action_cursor_up()

    def action_page_up(self) -> None:
        """Move in the list while typing."""
        self.query_one(OptionList).action_page_up()  # type: ignore[no-untyped-call]

    def action_page_down(self) -> None:
        """Move in the list while typing."""
        self.query_one(OptionList).action_page_down()  # type: ignore[no-untyped-call]

    def action_half_up(self) -> None:
        """Move in the list before typing."""
        self.query_one(OptionList).action_half_up()

    def action_half_down(self) -> None:
        """Move in the list before typing."""
        self.query_one(OptionList).action_half_down()

    @on(Input.Submitted)
    def _entered(self) -> None:
        self.query_one(OptionList).action_select()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(next(key for key in self._keys if key.id == event.option_id))

    def action_close(self) -> None:
        """Close without doing anything."""
        self.dismiss(None)
