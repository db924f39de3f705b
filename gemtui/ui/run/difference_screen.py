"""A run's changes to one file, on a screen of their own."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.content import Content

from gemtui.runs.file_tracker import FileStates
from gemtui.text import clean_line
from gemtui.ui.draw.code import language_of
from gemtui.ui.draw.gutter_rows import text_rows
from gemtui.ui.draw.lines import Line
from gemtui.ui.draw.theme import Look
from gemtui.ui.kit.bars import BarLine, FooterLine
from gemtui.ui.kit.clean_widgets import Static
from gemtui.ui.kit.dialog_guard import AnsweringScreen
from gemtui.ui.kit.line_view import DetailView
from gemtui.ui.transcript.card_body import draw_diff


class DifferenceScreen(AnsweringScreen[None]):
    """The screen for one file.

    `row`: the file's row in the list of changed files. `name`: the last part of the file's path.
    `found`: the diff or text to show.
    """

    def __init__(self, row: Content, name: str, found: FileStates, ascii: bool) -> None:
        super().__init__()
        self._row, self._file, self._found, self._ascii = row, name, found, ascii

    def compose(self) -> ComposeResult:
        """Build the header, a note, the lines, and the footer."""
        yield BarLine(id="header")
        yield Static(clean_line(self._found.why), id="why")
        yield DetailView(what="the change", id="difference")
        yield FooterLine(ascii=self._ascii)

    def on_mount(self) -> None:
        """Show the header, the note and the lines."""
        self.query_one("#header", BarLine).say([self._row])
        self.query_one("#why", Static).display = bool(self._found.why)
        self.query_one(DetailView).show(self._draw)

    def _draw(self, look: Look) -> Sequence[Line]:
        if self._found.diff is not None:
            return draw_diff(self._found.diff, look, folded=False).lines
        language = language_of(clean_line(self._file))
        return text_rows(self._found.text, look, folded=False, language=language).lines
