"""The pane with the list of sessions, its description and its search field."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.style import Style
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.strip import Strip
from textual.widget import Widget

from gemtui.extension.live import LiveSession
from gemtui.ui.draw.lines import Line, Piece, Pieces, strip_of, two_ended, width_of
from gemtui.ui.draw.theme import Glyphs, Look, Role, look_of
from gemtui.ui.kit.bars import BarLine
from gemtui.ui.kit.filtering import FilterBar
from gemtui.ui.sessions.list import SessionList
from gemtui.ui.sessions.live import line_words
from gemtui.ui.sessions.marks import complete_tag, tags_in_use


class Crumbs(Widget):
    """A one-line description of the list, and the headings of its columns.

    Parts that don't fit are cut or left out.
    """

    DEFAULT_CSS = "Crumbs { height: 1; }"

    def __init__(self, rows: SessionList) -> None:
        super().__init__()
        self._rows = rows

    def render_line(self, y: int) -> Strip:  # noqa: ARG002
        """Return the strip with the description."""
        look = look_of(self.app, self.size.width)
        heads = self._rows.column_heads(look)
        scroll_bar = Piece(" ", look[Role.MUTED])
        line = two_ended(self._pieces(look, width_of(heads)), (*heads, scroll_bar), look)
        strip = strip_of(Line(line), look.width).adjust_cell_length(look.width)
        return strip.apply_style(self.rich_style)

    def _pieces(self, look: Look, taken: int) -> Pieces:
        """Return the longest form of the description that fits beside `taken` cells.

        If there is too little room, the heading "Sessions" is left out first.
        """
        title = Piece("Sessions ", look[Role.HEADING])
        *forms, shortest = _shorter(self._rows.crumbs)
        forms += [shortest[:kept] for kept in range(len(shortest), 0, -1)]
        lines = [_joined(words, look) for words in forms]
        lines = [(title, *lines[0]), *lines]
        fitting = (line for line in lines if width_of(line) < look.width - taken - 1)
        return (_BLANK, *next(fitting, lines[-1]))


_BLANK = Piece(" ", Style())


def _joined(words: tuple[str, ...], look: Look) -> Pieces:
    dot = Piece(f" {look.glyphs.dot} ", look[Role.MUTED])
    pieces: list[Piece] = []
    for word in words:
        style = look[Role.MUTED if pieces else Role.HEADING]
        pieces += [dot, Piece(word, style)] if pieces else [Piece(word, style)]
    return tuple(pieces)


def _shorter(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the list's description, followed by ever shorter versions of it.

    The sort order is shortened first, then the scope. `words`: its parts (`SessionList.crumbs`).
    """
    yield words
    words = tuple(word.removesuffix(" first") for word in words)
    yield words
    words = tuple(word for word in words if word != "newest")  # the usual order
    yield words
    yield tuple(_SHORT.get(word, word) for word in words)


_SHORT = {"all projects": "all", "this project": "this one"}


class SessionPane(Vertical):
    """A `SessionList` below its description and search field."""

    DEFAULT_CSS = "SessionPane { width: 1fr; height: 1fr; }"

    def __init__(self, project: Path | None = None, *, id: str | None = None) -> None:
        super().__init__(id=id, classes="pane")
        self.bar = FilterBar(self._complete)
        self.list = SessionList(self.bar, project)
        self._live = BarLine(id="live", mark="", gives_way="left")
        self._live.display = False
        self._crumbs = Crumbs(self.list)

    def compose(self) -> ComposeResult:
        yield self._crumbs
        yield self.bar
        yield self._live
        yield self.list

    def _complete(self, text: str) -> str | None:
        return complete_tag(text, lambda: tags_in_use(self.list.marks), sign="#")

    def update_live(self, live: Sequence[LiveSession], glyphs: Glyphs) -> None:
        """Show what sessions are doing.

        Their states are shown in their rows and in a line above the list.
        """
        self.list.update_live({each.session: each.state for each in live})
        words = [*line_words(live, glyphs)]
        self._live.display = bool(words)
        self._live.show_parts(words)

    @on(SessionList.Arranged)
    def _say(self) -> None:
        self._crumbs.refresh()
        if not self.list.view.query and not self.bar.typing:
            self.bar.close()

    @on(FilterBar.QueryChanged)
    def _search(self, event: FilterBar.QueryChanged) -> None:
        """Filter the list by the search text, once for all letters that came meanwhile.

        This runs in the list's message loop, so that the list's messages bubble up past this pane.
        """
        del event
        self.list.call_next(lambda: self.list.filter(self.bar.text))

    @on(FilterBar.Finished)
    def _back(self, event: FilterBar.Finished) -> None:
        self.list.focus()
        if event.opens:
            self.list.call_next(self.list.action_open)
