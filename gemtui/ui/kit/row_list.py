"""A list of any length with a cursor; each row is one line, drawn when visible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from gemtui.text import Clean
from gemtui.ui.draw.lines import Line, Piece, Pieces, fit, own, strip_of
from gemtui.ui.draw.theme import Look, Role, look_of
from gemtui.ui.kit.keys import Where, bindings

Item = TypeVar("Item")
GUTTER = 1
"""Cells at the left that are reserved for the cursor."""


class CursorKeys:
    """The actions of the keys that move a cursor over rows."""

    @property
    def cursor(self) -> int:
        """The index of the row with the cursor."""
        raise NotImplementedError

    @property
    def count(self) -> int:
        """The number of rows."""
        raise NotImplementedError

    def go(self, place: int, step: int = 1) -> None:
        """Move the cursor to this row, or the next selectable one by `step`."""
        raise NotImplementedError

    def turn(self, pages: float) -> None:
        """Move the cursor by pages; negative numbers move up."""
        raise NotImplementedError

    def action_cursor_up(self) -> None:
        """Move up one row."""
        self.go(self.cursor - 1, -1)

    def action_cursor_down(self) -> None:
        """Move down one row."""
        self.go(self.cursor + 1)

    def action_page_up(self) -> None:
        """Move up a page."""
        self.turn(-1)

    def action_page_down(self) -> None:
        """Move down a page."""
        self.turn(1)

    def action_half_up(self) -> None:
        """Move up half a page."""
        self.turn(-0.5)

    def action_half_down(self) -> None:
        """Move down half a page."""
        self.turn(0.5)

    def action_first(self) -> None:
        """Move to the first row."""
        self.go(0)

    def action_last(self) -> None:
        """Move to the last row."""
        self.go(self.count - 1, -1)


class RowList(CursorKeys, ScrollView, Generic[Item], can_focus=True, inherit_bindings=False):
    """A list of rows with a cursor; `draw(item, look)` draws one row.

    The width of `look` is the width of the row. `stops`: returns whether a row can have the cursor;
    headings can't. `key`: identifies a row, so that the cursor stays on that row when the rows
    change. `empty`: the text to show if there are no rows.
    """

    BINDINGS = bindings(Where.ROWS)
    DEFAULT_CSS = """
    RowList {
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-gutter: stable;
    }
    """

    class Highlighted(Message):
        """The cursor has moved, or the row under the cursor has changed."""

        def __init__(self, rows: RowList[Any]) -> None:
            super().__init__()
            self.rows = rows

        @property
        def control(self) -> RowList[Any]:
            """The list that posted this message."""
            return self.rows

    class Opened(Highlighted):
        """The row under the cursor has been opened."""

    def __init__(
        self,
        draw: Callable[[Item, Look], Pieces],
        *,
        stops: Callable[[Item], bool] = lambda _: True,
        key: Callable[[Item], object] = lambda item: item,
        empty: Clean = Clean(""),  # noqa: B008 (a string)
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self._draw, self._stops, self._key = draw, stops, key
        self.empty = empty
        self.items: Sequence[Item] = ()
        self._cursor = 0

    @property
    def chosen(self) -> Item | None:
        """The item under the cursor, or None if there is none."""
        here = self._cursor < len(self.items) and self._stops(self.items[self._cursor])
        return self.items[self._cursor] if here else None

    @property
    def active(self) -> bool:
        """Whether key presses move the cursor."""
        return self.has_focus

    @property
    def cursor(self) -> int:
        """The index of the row with the cursor."""
        return self._cursor

    def show(self, items: Sequence[Item], *, fresh: bool = False, wanted: object = None) -> None:
        """Replace the rows.

        `fresh`: move the cursor to the first row. `wanted`: the key of the row to which the cursor
        moves, if there is such a row.
        """
        chosen, place = self.chosen, 0 if fresh else self._cursor
        before = None if chosen is None else self._key(chosen)
        self.items = items
        if before is not None and not fresh:
            place = self._find(before, place)
        if wanted is not None:
            place = self._find(wanted, place)
        self._cursor = self._near(place, 1)
        self.virtual_size = Size(self._width, len(items))
        if fresh:
            self.scroll_to(y=0, animate=False)
        self._show_cursor()
        self.refresh()
        if fresh or self.chosen is None or self._key(self.chosen) != before:
            self.post_message(self.Highlighted(self))

    def _find(self, key: object, near: int) -> int:
        """Return the current index of the row with this key; `near` if the row is gone."""
        items = self.items
        if near < len(items) and self._key(items[near]) == key:
            return near
        return next((at for at, item in enumerate(items) if self._key(item) == key), near)

    def go(self, place: int, step: int = 1) -> None:
        """Move the cursor to this row, or the next selectable one by `step`."""
        self._cursor = self._near(place, step)
        self._show_cursor()
        self.refresh()
        self.post_message(self.Highlighted(self))

    def _near(self, place: int, step: int) -> int:
        last = len(self.items) - 1
        if last < 0:
            return 0
        place = max(0, min(place, last))
        ahead = range(place, last + 1) if step > 0 else range(place, -1, -1)
        behind = range(place, -1, -1) if step > 0 else range(place, last + 1)
        found = (at for at in (*ahead[:1000], *behind[:1000]) if self._stops(self.items[at]))
        return next(found, place)

    def _show_cursor(self) -> None:
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        first = self._cursor
        if 0 < first <= 3 and not any(map(self._stops, self.items[:first])):
            first = 0
        taller = len(self.items) > height  # new rows may need a scroll bar that does not exist yet
        if self._cursor >= top + height:
            self.scroll_to(y=self._cursor - height + 1, animate=False, force=taller)
        elif first < top:
            self.scroll_to(y=first, animate=False)

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width

    # --- drawing -------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        """Return one visible row."""
        look = look_of(self.app, self._width)
        place = y + self.scroll_offset.y
        pieces: Pieces = ()
        if place < len(self.items):
            drawn = self._draw(self.items[place], look.narrowed(GUTTER))
            pieces = (*self._front(place, look), *drawn)
        elif not self.items and place == 0:
            pieces = (
                Piece(own(" " * GUTTER), look[Role.MUTED]),
                Piece(self.empty, look[Role.MUTED]),
            )
        line = Line(fit(pieces, look.width, own(look.glyphs.ellipsis)))
        return (
            strip_of(line, look.width).adjust_cell_length(look.width).apply_style(self.rich_style)
        )

    def _front(self, place: int, look: Look) -> Pieces:
        if place != self._cursor or not self._stops(self.items[place]):
            return (Piece(own(" " * GUTTER), look[Role.TEXT]),)
        role = Role.CURSOR if self.active else Role.MUTED
        return (Piece(own(look.glyphs.cursor), look[role]),)

    def on_resize(self) -> None:
        """Keep the cursor visible."""
        self.virtual_size = Size(self._width, len(self.items))
        self._show_cursor()
        self.refresh()

    def place_of(self, event: events.Click) -> int | None:
        """Return the index of the clicked row, or None if it can't have the cursor."""
        inside = event.get_content_offset(self)
        place = -1 if inside is None else inside.y + self.scroll_offset.y
        here = 0 <= place < len(self.items) and self._stops(self.items[place])
        return place if here else None

    def on_click(self, event: events.Click) -> None:
        """Move the cursor on a click, and open the row on a double click."""
        if (place := self.place_of(event)) is not None:
            self.go(place)
            if event.chain == 2:
                self.action_open()

    # --- actions -------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable all actions if there are no rows."""
        del action, parameters
        return bool(self.items)

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.items)

    def turn(self, pages: float) -> None:
        """Move the cursor by pages; negative numbers move up."""
        rows = max(1, int(abs(pages) * (self.size.height - 1)))
        step = 1 if pages > 0 else -1
        self.go(self._cursor + step * rows, step)

    def action_open(self) -> None:
        """Open the row under the cursor."""
        if self.chosen is not None:
            self.post_message(self.Opened(self))


class SteeredRows(RowList[Item], can_focus=False):
    """Rows whose cursor is moved by keys pressed elsewhere, such as in a field above."""

    @property
    def active(self) -> bool:
        """Whether key presses move the cursor: always, because the field has the focus."""
        return True


class SteersRows(CursorKeys):
    """The cursor keys of a screen whose `SteeredRows` never have the focus."""

    @property
    def rows(self) -> SteeredRows[Any]:
        """The rows."""
        raise NotImplementedError

    @property
    def cursor(self) -> int:
        """The index of the row with the cursor."""
        return self.rows.cursor

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.rows.count

    def go(self, place: int, step: int = 1) -> None:
        """Move the cursor to this row, or the next selectable one by `step`."""
        self.rows.go(place, step)

    def turn(self, pages: float) -> None:
        """Move the cursor by pages; negative numbers move up."""
        self.rows.turn(pages)
