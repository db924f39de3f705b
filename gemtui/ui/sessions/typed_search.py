"""What search and written files share: a line to type in, above rows whose cursor it moves."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.suggester import Suggester

from gemtui.text import clean_line
from gemtui.ui.draw.lines import own
from gemtui.ui.kit.clean_widgets import Input, Static
from gemtui.ui.kit.full_screen import FullScreen
from gemtui.ui.kit.row_list import RowList, SteeredRows, SteersRows

Answer = TypeVar("Answer")


class Typed(Protocol):
    """What is typed, and whether all projects are meant; a later screen can go on with it."""

    text: str
    everywhere: bool


class TypedSearch(SteersRows, FullScreen[Answer]):
    """`typed`: what it goes on with. `project`: the narrow scope; None = there is none."""

    AUTO_FOCUS = "Input"
    typed: Typed
    project: Path | None

    @property
    def rows(self) -> SteeredRows[Any]:
        """What was found."""
        return self.query_one(SteeredRows)

    def composed(
        self, rows: SteeredRows[Any], placeholder: str, suggester: Suggester | None = None
    ) -> ComposeResult:
        """Title, the line to type in, rows, how it goes, keys."""
        line = clean_line(self.typed.text)
        yield from self.framed(
            Horizontal(
                Static(own("/")),
                Input(line, placeholder=clean_line(placeholder), suggester=suggester),
                id="search-line",
            ),
            rows,
        )

    def scope_changed(self) -> None:
        """Look in the other scope."""
        raise NotImplementedError

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Without a project there is one scope."""
        del parameters
        return action != "scope" or self.project is not None

    @on(Input.Submitted)
    @on(RowList.Opened)
    def _enter(self) -> None:
        self.action_open()

    def action_open(self) -> Any:
        """Show what is behind the row under the cursor."""
        raise NotImplementedError

    def action_scope(self) -> None:
        """This project or all."""
        self.typed.everywhere = not self.typed.everywhere
        self.scope_changed()

    def action_close(self) -> None:
        """End the search; without one, back to the sessions."""
        if self.typed.text:
            self.query_one(Input).value = ""
        else:
            self.dismiss(None)

    def key_label(self, action: str) -> str | None:
        """Return what the footer calls a key that does something else now."""
        return "clear" if action == "close" and self.typed.text else None

    @on(Input.Changed)
    def _label_again(self) -> None:
        self.refresh_bindings()
