"""The scope and period of screens about many sessions, and those with a search field."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content

from gemtui.text import clean_line, short_path
from gemtui.ui.draw.lines import fit_end
from gemtui.ui.draw.theme import Glyphs
from gemtui.ui.kit.clean_widgets import Complete, Input, Static
from gemtui.ui.kit.row_list import RowList, SteeredRows, SteersRows
from gemtui.ui.kit.screens import FullScreen
from gemtui.ui.sessions.list import scope_label

AnswerT = TypeVar("AnswerT")


class Period(NamedTuple):
    """A period of time that ends now.

    `days`: its length; None means all time.
    """

    words: str
    days: int | None


SPANS = (
    Period("all time", None),
    Period("30 days", 30),
    Period("7 days", 7),
    Period("24 hours", 1),
)


def since(span: int, now: datetime) -> datetime | None:
    """Return the start of the period with this index in `SPANS`, or None for all time."""
    days = SPANS[span].days
    return None if days is None else now - timedelta(days=days)


_LONGEST_PATH = 36
"""Cells of a header for the folder that the scope is limited to, so that the period fits beside it.
"""


def scope_parts(
    title: str, project: Path | None, glyphs: Glyphs, span: int | None = None
) -> list[Content]:
    """Return the parts of a header: a title, the scope and the period.

    `project`: the folder that the scope is limited to; None for all projects. `span`: the period's
    index in `SPANS`; None for no period.
    """
    where = "all projects"
    if project is not None:
        where = fit_end(short_path(project), _LONGEST_PATH, glyphs.ellipsis)
    period = [] if span is None else [Content(SPANS[span].words)]
    return [Content.styled(title, "bold"), Content(where), *period]


@dataclass(slots=True)
class ScreenState:
    """The state of such a screen, which a later screen restores.

    `text`: the search text. `everywhere`: whether all projects are in scope. `chosen`: the key of
    the row with the cursor.
    """

    text: str = ""
    everywhere: bool = True
    chosen: object = None


class SearchedScreen(SteersRows, FullScreen[AnswerT]):
    """A screen with a search field above its rows.

    `state`: the state in which an earlier screen was left, to be restored. `project`: the project
    that the rows can be limited to, or None.
    """

    AUTO_FOCUS = "Input"
    state: ScreenState
    project: Path | None

    @property
    def rows(self) -> SteeredRows[Any]:
        """The list of results."""
        return self.query_one(SteeredRows)

    def composed(
        self, rows: SteeredRows[Any], placeholder: str, complete: Complete | None = None
    ) -> ComposeResult:
        """Yield the screen's widgets: header, search field, rows, status line and footer.

        `placeholder`: shown in the empty field. `complete`: suggests a completion for the text
        typed so far (see `Input`).
        """
        line = clean_line(self.state.text)
        yield from self.framed(
            Horizontal(
                Static("/"),
                Input(line, placeholder=clean_line(placeholder), complete=complete),
                id="search-line",
            ),
            rows,
        )

    @abstractmethod
    def find(self) -> object:
        """Show the rows that match the search text in the field."""

    @abstractmethod
    def scope_changed(self) -> None:
        """Search in the new scope, because `state.everywhere` has changed."""

    def can(self, action: str) -> bool:
        """Return False for "scope" if there is no project."""
        return action != "scope" or self.project is not None

    @on(Input.Submitted)
    @on(RowList.Opened)
    def _enter(self) -> None:
        self.action_open()

    @abstractmethod
    def action_open(self) -> Any: ...

    def action_scope(self) -> None:
        self.state.everywhere = not self.state.everywhere
        self.scope_changed()

    def action_close(self) -> None:
        """Go back to the sessions; the search text is kept in the state."""
        self.dismiss(None)

    def key_label(self, action: str) -> str | None:
        """Return what the key for the scope does now, or None for any other action."""
        return scope_label(everywhere=self.state.everywhere) if action == "scope" else None

    @on(Input.Changed)
    def _search_typed(self, event: Input.Changed) -> None:
        event.stop()
        if event.value != self.state.text:
            self.state.text, self.state.chosen = event.value, None
            self.find()
        self.refresh_bindings()
