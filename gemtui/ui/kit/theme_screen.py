"""A dialog for choosing a theme, with a preview of the theme under the cursor."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult

from gemtui.text import clean_line
from gemtui.ui.draw.lines import own
from gemtui.ui.kit.clean_widgets import Dialog, Option, OptionList
from gemtui.ui.kit.dialog_guard import DialogScreen
from gemtui.ui.kit.keys import Where, bindings


class ThemeScreen(DialogScreen[str]):
    """A dialog that returns the chosen theme.

    Esc restores the old theme and returns None.
    """

    BINDINGS = bindings(Where.DIALOG)

    def __init__(self, before: str) -> None:
        super().__init__()
        self._before = before

    def compose(self) -> ComposeResult:
        """Yield the list of themes: gemtui's own first, then Textual's."""
        names = sorted(self.app.available_themes, key=lambda name: (not _ours(name), name))
        with Dialog(own("Theme"), own("enter apply   esc keep the old theme")):
            yield OptionList(*(Option(clean_line(name), id=name) for name in names))

    def on_mount(self) -> None:
        options = self.query_one(OptionList)
        options.highlighted = options.get_option_index(self._before)

    @on(OptionList.OptionHighlighted)
    def _preview(self, event: OptionList.OptionHighlighted) -> None:
        if event.option_id is not None:
            self.app.theme = event.option_id

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_id)

    def action_close(self) -> None:
        self.app.theme = self._before
        self.dismiss(None)


def _ours(name: str) -> bool:
    return name.startswith("gemtui")
