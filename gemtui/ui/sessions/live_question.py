"""A screen with the question that a live session asks the user."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from rich.style import Style
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from gemtui.extension.live import LiveQuestion, LiveSession
from gemtui.text import clean_line, visible, visible_line
from gemtui.ui.draw.lines import BLANK, Line, Piece, wrap
from gemtui.ui.draw.text_rows import text_rows
from gemtui.ui.draw.theme import BOLD, Look, Role
from gemtui.ui.kit.keys import BY_ID, Where, bindings
from gemtui.ui.kit.screens import FullScreen
from gemtui.ui.kit.text_view import DetailView
from gemtui.ui.sessions.live import project_name
from gemtui.ui.transcript.diff import draw_diff

_PATH = 4_000
"""Maximum number of characters of a path to show."""
_ANSWERED = "Already answered."


class LiveQuestionScreen(FullScreen[bool]):
    """A session's question, which can only be answered in the session's own terminal.

    The screen returns whether to show the next session that is waiting for the user. `tty`: the
    terminal's name, or None.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.WAITING)
    HAS_STATUS = False

    def __init__(self, live: LiveSession, *, tty: str | None) -> None:
        super().__init__(id="live-question")
        self._live = live
        self._where = f"process {live.pid}" + (f" in {tty}" if tty else "")
        self._answered = False

    def action_next(self) -> None:
        self.dismiss(True)

    def compose(self) -> ComposeResult:
        yield from self.framed(DetailView(what="the question", id="asked"))

    def on_mount(self) -> None:
        self.header.show_parts(
            [Content.styled(clean_line(f"{project_name(self._live)} is waiting for you"), "bold")],
            [Content.styled(clean_line(self._where), "dim")],
        )
        self.query_one(DetailView).show(self._draw)

    def update_live(self, live: Sequence[LiveSession]) -> None:
        """Update the screen if the question has been answered in the meantime.

        `live`: all live sessions as they are now.
        """
        answered = self._live not in live
        if answered is not self._answered:
            self._answered = answered
            self.query_one(DetailView).show(self._draw, fresh=False)

    def _draw(self, look: Look) -> Sequence[Line]:
        question = self._live.question
        return () if question is None else tuple(draw_question(question, look, self._advice))

    @property
    def _advice(self) -> str:
        if self._answered:
            return _ANSWERED
        question = self._live.question
        if question is not None and question.run:
            return f"A gemtui run is asking. Press {BY_ID['app.runs'].footer()} to answer."
        return f"Answer in Gemini CLI ({self._where})."


def draw_question(question: LiveQuestion, look: Look, advice: str) -> Iterator[Line]:
    """Yield lines with a question, advice, and the change, command or other details.

    The details are those of the tool call that the question is about.
    """
    yield BLANK
    yield from _words(clean_line(question.message), look[Role.TEXT] + BOLD, look)
    yield from _words(clean_line(advice), look[Role.MUTED], look)
    yield BLANK
    about = visible(question.about)
    if question.diff is not None:
        yield from _words(visible_line(about[:_PATH]), look[Role.ACCENT], look)
        yield BLANK
        yield from draw_diff(question.diff, look, folded=False).lines
    elif question.kind == "exec":
        yield from text_rows(about, look, folded=False, language="bash").lines
    else:
        yield from text_rows(about, look, folded=False).lines


def _words(words: str, style: Style, look: Look) -> Iterator[Line]:
    for line in wrap((Piece(words, style),), max(1, look.width - 2)):
        yield Line((Piece(" ", style), *line.pieces))
