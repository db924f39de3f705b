"""A list of any length with a cursor; rows of one line, drawn when they come into view."""

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
"""Cells at the left for the cursor."""


class CursorKeys:
    """What the keys that move a cursor over rows do."""

    @property
    def cursor(self) -> int:
        """The number of the row with the cursor, from 0."""
        raise NotImplementedError

    @property
    def count(self) -> int:
        """How many rows there are."""
        raise NotImplementedError

    def go(self, place: int, step: int = 1) -> None:
        """The cursor on this row, or on the next one in the direction of `step` that takes it."""
        raise NotImplementedError

    def turn(self, pages: float) -> None:
        """Move the cursor by pages; up where they are less than 0."""
        raise NotImplementedError

    def action_cursor_up(self) -> None:
        """One row up."""
        self.go(self.cursor - 1, -1)

    def action_cursor_down(self) -> None:
        """One row down."""
        self.go(self.cursor + 1)

    def action_page_up(self) -> None:
        """One page up."""
        self.turn(-1)

    def action_page_down(self) -> None:
        """One page down."""
        self.turn(1)

    def action_half_up(self) -> None:
        """Half a page up."""
        self.turn(-0.5)

    def action_half_down(self) -> None:
        """Half a page down."""
        self.turn(0.5)

    def action_first(self) -> None:
        """To the first row."""
        self.go(0)

    def action_last(self) -> None:
        """To the last row."""
        self.go(self.count - 1, -1)


class RowList(CursorKeys, ScrollView, Generic[Item], can_focus=True, inherit_bindings=False):
    """Rows; `draw(item, look)` makes one, for a look that is as wide as the row may be.

    `stops`: whether the cursor can stand on a row; headings are skipped. `key`: by what a row is
    known again when others are shown: the cursor stays on it. `empty`: stands there without rows.
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
        """The cursor is on another row."""

        def __init__(self, rows: RowList[Any]) -> None:
            super().__init__()
            self.rows = rows

        @property
        def control(self) -> RowList[Any]:
            """The list in which it happened."""
            return self.rows

    class Opened(Highlighted):
        """Somebody wants to see what is behind the row under the cursor."""

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
        """What the cursor is on."""
        here = self._cursor < len(self.items) and self._stops(self.items[self._cursor])
        return self.items[self._cursor] if here else None

    @property
    def active(self) -> bool:
        """Whether keys move the cursor."""
        return self.has_focus

    @property
    def cursor(self) -> int:
        """The number of the row with the cursor, from 0."""
        return self._cursor

    def show(self, items: Sequence[Item], *, fresh: bool = False, wanted: object = None) -> None:
        """Other rows; `fresh`: the cursor goes to the first one.

        `wanted`: the key of the row to which it goes, where that is one of them.
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
        """Where the row with this key stands now; `near` where it is gone, or stays."""
        items = self.items
        if near < len(items) and self._key(items[near]) == key:
            return near
        return next((at for at, item in enumerate(items) if self._key(item) == key), near)

    def go(self, place: int, step: int = 1) -> None:
        """The cursor on this row, or on the next one in the direction of `step` that takes it."""
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
        taller = len(self.items) > height  # rows that are new may need a bar that is not there yet
        if self._cursor >= top + height:
            self.scroll_to(y=self._cursor - height + 1, animate=False, force=taller)
        elif first < top:
            self.scroll_to(y=first, animate=False)

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width

    # --- drawing -------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        """One row of what is in sight."""
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
        """The cursor stays in sight."""
        self.virtual_size = Size(self._width, len(self.items))
        self._show_cursor()
        self.refresh()

    def place_of(self, event: events.Click) -> int | None:
        """The number of the row that was clicked, if the cursor can stand on it."""
        inside = event.get_content_offset(self)
        place = -1 if inside is None else inside.y + self.scroll_offset.y
        here = 0 <= place < len(self.items) and self._stops(self.items[place])
        return place if here else None

    def on_click(self, event: events.Click) -> None:
        """One click moves the cursor, two open."""
        if (place := self.place_of(event)) is not None:
            self.go(place)
            if event.chain == 2:
                self.action_open()

    # --- actions -------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Without rows there is nothing to move over or to open."""
        del action, parameters
        return bool(self.items)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.items)

    def turn(self, pages: float) -> None:
        """Move the cursor by pages; up where they are less than 0."""
        rows = max(1, int(abs(pages) * (self.size.height - 1)))
        step = 1 if pages > 0 else -1
        self.go(self._cursor + step * rows, step)

    def action_open(self) -> None:
        """Show what is behind the row."""
        if self.chosen is not None:
            self.post_message(self.Opened(self))


class SteeredRows(RowList[Item], can_focus=False):
    """Rows whose cursor is moved by keys that go elsewhere, as to a line above to type in."""

    @property
    def active(self) -> bool:
        """Always: the focus stays where one types."""
        return True


class SteersRows(CursorKeys):
    """The keys of a cursor, for a screen whose `SteeredRows` have no focus of their own."""

    @property
    def rows(self) -> SteeredRows[Any]:
        """The rows."""
        raise NotImplementedError

    @property
    def cursor(self) -> int:
        """The number of the row with the cursor, from 0."""
        return self.rows.cursor

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.rows.count

    def go(self, place: int, step: int = 1) -> None:
        """The cursor on this row, or on the next one in the direction of `step` that takes it."""
        self.rows.go(place, step)

    def turn(self, pages: float) -> None:
        """Move the cursor by pages; up where they are less than 0."""
        self.rows.turn(pages)
