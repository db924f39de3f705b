"""Scrollable views of lines and of long text, and a screen that shows only a text.

Lines are rendered for the view's width and copied as text. Text, such as a stored record or an
error with its details, is wrapped at any character and copied unwrapped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from textual.app import ComposeResult
from textual.content import Content
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Log

from gemtui.text import cells, clean, clean_line, counted
from gemtui.ui.draw.lines import Line, plain, strip_of
from gemtui.ui.draw.theme import Look, look_of
from gemtui.ui.kit.app_base import AppBase
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.messages import CopyRequested
from gemtui.ui.kit.screens import FullScreen

DrawLines = Callable[[Look], Sequence[Line]]


class HalfPages(ScrollView, inherit_bindings=False):
    """A scrollable view that can also scroll by half pages."""

    def action_page(self, pages: float) -> None:
        """Scroll by a number of pages; negative numbers scroll up."""
        lines = max(1, int(abs(pages) * self.size.height))
        self.scroll_relative(y=lines if pages > 0 else -lines)


class LineView(HalfPages, can_focus=True, inherit_bindings=False):
    """A scrollable view of the lines returned by a function, `draw(look)`.

    `what`: what the message shown after copying calls the contents.
    """

    BINDINGS = bindings(Where.DRAWING)
    DEFAULT_CSS = """
    LineView {
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-gutter: stable;
    }
    """

    def __init__(self, *, what: str, id: str | None = None) -> None:
        super().__init__(id=id)
        self._what = what
        self._draw: DrawLines = lambda _look: ()
        self._look: Look | None = None
        self._lines: Sequence[Line] = ()

    def show(self, draw: DrawLines, *, fresh: bool = True) -> None:
        """Show the lines that `draw` returns, now and after each change of width or theme.

        `fresh`: scroll to the first line.
        """
        self._draw, self._look = draw, None
        if fresh:
            self.scroll_to(y=0, animate=False, immediate=True)
        self._lay_out()

    @property
    def text(self) -> str:
        """The text of all lines, without styles."""
        return "\n".join(plain(line.pieces).rstrip() for line in self._lines)

    def _lay_out(self) -> None:
        width = self.scrollable_content_region.width
        if width <= 0:
            return
        look = look_of(self.app, width)
        if self._look != look:
            self._look, self._lines = look, self._draw(look)
            self.virtual_size = Size(width, len(self._lines))
        self.refresh()

    def on_resize(self) -> None:
        """Render the lines again for the new width."""
        self._lay_out()

    def notify_style_update(self) -> None:
        """Render the lines again after a change of theme."""
        super().notify_style_update()
        if self.is_attached:
            self._lay_out()

    def render_line(self, y: int) -> Strip:
        """Return the strip for one visible line."""
        width, line = self.scrollable_content_region.width, y + self.scroll_offset.y
        drawn = self._lines[line] if line < len(self._lines) else Line()
        strip = strip_of(drawn, width).extend_cell_length(width, drawn.ground)
        return strip.apply_style(self.rich_style)

    def action_copy(self) -> None:
        self.post_message(CopyRequested(self.text, self._what))


class DetailView(LineView):
    """A `LineView` that fills a whole screen; its close key closes the screen."""

    BINDINGS = bindings(Where.RAW)

    def action_close(self) -> None:
        self.screen.dismiss(None)


class RawText(Log, HalfPages):
    """Scrollable text whose long lines are wrapped on screen but copied unwrapped.

    `what`: what the message shown after copying calls the text.
    """

    BINDINGS = bindings(Where.RAW)

    def __init__(self, text: str, what: str) -> None:
        super().__init__(auto_scroll=False)
        self._text, self._what = clean(text).expandtabs(4), what
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
            self.write_lines(wrapped(self._text, width))
        self.call_after_refresh(self._look_where)

    def action_copy(self) -> None:
        self.post_message(CopyRequested(self._text, self._what))

    def action_close(self) -> None:
        self.screen.dismiss(None)


def wrapped(text: str, width: int) -> list[str]:
    """Split the text into lines of at most `width` cells, after blanks where possible."""
    return [piece for line in text.split("\n") for piece in _pieces(line, width)]


def _pieces(line: str, width: int) -> Iterator[str]:
    start = 0
    while start == 0 or start < len(line):
        end = start + width
        while end > start + 1 and cells(line[start:end]) > width:
            end -= 1
        blank = line.rfind(" ", start + width // 2, end)
        if end < len(line) and blank > 0:
            end = blank + 1
        yield line[start:end]
        start = end


class RawScreen(FullScreen[None]):
    """A screen that shows only a title and text.

    `what`: what the message shown after copying calls the text.
    """

    HAS_STATUS = False

    def __init__(self, title: str, text: str, *, what: str) -> None:
        super().__init__()
        self._heading, self._text, self._what = title, text, what

    def compose(self) -> ComposeResult:
        yield from self.framed(RawText(self._text, self._what))

    @property
    def reached_end(self) -> bool:
        """Whether the last line of the text has been visible at any time."""
        return self.query_one(RawText).reached_end

    def on_mount(self) -> None:
        lines = self._text.count("\n") + 1
        self.header.show_parts(
            [Content.styled(self._heading, "bold")], [Content.styled(counted(lines, "line"), "dim")]
        )


def show_text(app: AppBase, title: str, text: str, *, what: str) -> None:
    """Show long text on a screen of its own, where it can be copied.

    `what`: what the message shown after copying calls the text, such as "details".
    """
    app.push_screen(RawScreen(clean_line(title), clean(text), what=what))
