"""A full-screen view of text, such as a stored record or an error with its details."""

from __future__ import annotations

from collections.abc import Iterator

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Log

from gemtui.text import Clean, cells, counted
from gemtui.ui.kit.bars import BarLine, FooterLine
from gemtui.ui.kit.dialog_guard import AnsweringScreen
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.line_view import HalfPages
from gemtui.ui.kit.messages import CopyRequested


class RawText(Log, HalfPages):
    """Scrollable text whose long lines are wrapped on screen but copied unwrapped.

    `what`: what the message shown after copying calls the text.
    """

    BINDINGS = bindings(Where.RAW)

    def __init__(self, text: Clean, what: str) -> None:
        super().__init__(auto_scroll=False)
        self._text, self._what = text.expandtabs(4), what
        self._wrapped = 0
        self.reached_end = False
        """Whether the last line has been visible at any time."""

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Scroll, then note whether the last line is now visible."""
        super().watch_scroll_y(old_value, new_value)
        self.call_after_refresh(self._look_where)

    def _look_where(self) -> None:
        if self._wrapped and self.scroll_offset.y >= self.max_scroll_y:
            self.reached_end = True

    def on_resize(self) -> None:
        """Rewrap the lines if the width has changed."""
        width = self.scrollable_content_region.width
        if width > 0 and width != self._wrapped:
            self._wrapped = width
            self.clear()
            self.write_lines(wrapped(Clean(self._text), width))
        self.call_after_refresh(self._look_where)

    def action_copy(self) -> None:
        self.post_message(CopyRequested(self._text, self._what))

    def action_close(self) -> None:
        self.screen.dismiss(None)


def wrapped(text: Clean, width: int) -> list[str]:
    """Split the text into lines of at most `width` cells, breaking at any character."""
    return [piece for line in text.split("\n") for piece in _pieces(line, width)]


def _pieces(line: str, width: int) -> Iterator[str]:
    start = 0
    while start == 0 or start < len(line):
        end = start + width
        while end > start + 1 and cells(Clean(line[start:end])) > width:
            end -= 1
        yield line[start:end]
        start = end


class RawScreen(AnsweringScreen[None]):
    """A screen that shows only a title and text.

    `what`: what the message shown after copying calls the text.
    """

    def __init__(self, title: Clean, text: Clean, *, what: str) -> None:
        super().__init__()
        self._heading, self._text, self._what = title, text, what

    def compose(self) -> ComposeResult:
        yield BarLine(id="header")
        yield RawText(self._text, self._what)
        yield FooterLine()

    @property
    def reached_end(self) -> bool:
        """Whether the last line of the text has been visible at any time."""
        return self.query_one(RawText).reached_end

    def on_mount(self) -> None:
        lines = self._text.count("\n") + 1
        self.query_one("#header", BarLine).show_parts(
            [Content.styled(self._heading, "bold")], [Content.styled(counted(lines, "line"), "dim")]
        )
