"""A scrollable view of lines, rendered for the view's width and copied as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from gemtui.ui.draw.lines import Line, plain, strip_of
from gemtui.ui.draw.theme import Look, look_of
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.messages import CopyRequested

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
