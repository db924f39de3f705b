"""One file of an undo on a separate screen: its change, and three of its states."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from gemtui.checkpoints.plan import Step
from gemtui.runs.undo import StepTexts
from gemtui.text import clean_line
from gemtui.ui.kit.bars import BarLine, FooterLine
from gemtui.ui.kit.dialog_guard import AnsweringScreen
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.line_view import LineView
from gemtui.ui.undo.drawing import Page, pages_of

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase


class UndoFileScreen(AnsweringScreen[None]):
    """Shows the views of one file in turn."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.UNDO_FILE)
    AUTO_FOCUS = "LineView"

    def __init__(self, step: Step, texts: StepTexts) -> None:
        super().__init__(id="undo-file")
        self._path = clean_line(os.fsdecode(step.path))
        self._pages: Sequence[Page] = pages_of(step, texts)
        self._at = 0

    def compose(self) -> ComposeResult:
        """Build the header, the lines and the footer."""
        app = cast("AppBase", self.app)
        yield BarLine(id="header", mark=app.glyphs.ellipsis)
        yield LineView(what="the text")
        yield FooterLine(ascii=app.config.ascii)

    def on_mount(self) -> None:
        """Show the first view."""
        self._show()

    def _show(self) -> None:
        page = self._pages[self._at]
        place = f"{self._at + 1} of {len(self._pages)}"
        left = [Content.styled(self._path, "bold"), Content(page.title)]
        self.query_one("#header", BarLine).say(left, [Content.styled(place, "dim")])
        self.query_one(LineView).show(page.draw)

    def action_turn(self, step: int) -> None:
        """Show the next view (`step` 1) or the previous one (-1)."""
        self._at = (self._at + step) % len(self._pages)
        self._show()
