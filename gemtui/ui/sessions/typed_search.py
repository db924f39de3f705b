"""The base class of the full-text search and the file list: search field and rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal

from gemtui.text import clean_line
from gemtui.ui.draw.lines import own
from gemtui.ui.kit.clean_widgets import Complete, Input, Static
from gemtui.ui.kit.row_list import RowList, SteeredRows, SteersRows
from gemtui.ui.kit.screens import FullScreen

Answer = TypeVar("Answer")


class Typed(Protocol):
    """The state of such a screen, which a later screen restores.

    `text`: the search text. `everywhere`: whether all projects are in scope. `chosen`: the key of
    the row with the cursor.
    """

    text: str
    everywhere: bool
    chosen: object


class TypedSearch(SteersRows, FullScreen[Answer]):
    """A screen with a search field above its rows.

    `typed`: the state in which an earlier screen was left, to be restored. `project`: the project
    that the rows can be limited to, or None.
    """

    AUTO_FOCUS = "Input"
    typed: Typed
    project: Path | None

    @property
    def rows(self) -> SteeredRows[Any]:
        """The list of results."""
        return self.query_one(SteeredRows)

    def composed(self, rows: SteeredRows[Any], placeholder: str, complete: Complete | None = None) -> ComposeResult:
        """Yield the screen's widgets: header, search field, rows, status line and footer.

        `placeholder`: shown in the empty field. `complete`: suggests a completion for the text
        typed so far (see `Input`).
        """
        line = clean_line(self.typed.text)
        yield from self.framed(
            Horizontal(
                Static(own("/")), Input(line, placeholder=clean_line(placeholder), complete=complete), id="search-line"
            ),
            rows,
        )

    def find(self) -> object:
        """Show the rows that match the search text in the field."""
        raise NotImplementedError

    def scope_changed(self) -> None:
        """Search in the new scope, because `typed.everywhere` has changed."""
        raise NotImplementedError

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable changing the scope if there is no project."""
        del parameters
        return action != "scope" or self.project is not None

    @on(Input.Submitted)
    @on(RowList.Opened)
    def _enter(self) -> None:
        self.action_open()

    def action_open(self) -> Any:
        raise NotImplementedError

    def action_scope(self) -> None:
        self.typed.everywhere = not self.typed.everywhere
        self.scope_changed()

    def action_close(self) -> None:
        """Clear the search or, if there is none, go back to the sessions."""
        if self.typed.text:
            self.query_one(Input).value = ""
        else:
            self.dismiss(None)

    def key_label(self, action: str) -> str | None:
        """Return "clear" for the key that would clear the search, or None for any other."""
        return "clear" if action == "close" and self.typed.text else None

    @on(Input.Changed)
    def _search_typed(self, event: Input.Changed) -> None:
        event.stop()
        if event.value != self.typed.text:
            self.typed.text, self.typed.chosen = event.value, None
            self.find()
        self.refresh_bindings()
