"""A list with a cursor that renders only visible rows, so it can be of any length.

A screen may show details of the row under the cursor beside it.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain
from typing import Any, Generic, NamedTuple, TypeVar

from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from gemtui.ui.draw.lines import Line, Piece, Pieces, cut, strip_of
from gemtui.ui.draw.theme import Look, Role, look_of
from gemtui.ui.kit.keys import Where, bindings

Item = TypeVar("Item")


GUTTER = 1
"""Cells reserved for the cursor at the left edge."""


_FAR = 1_000
"""Maximum number of rows, in each direction, to check for one that can be chosen."""


class RowKind(NamedTuple, Generic[Item]):
    """The functions by which a list learns about its rows without rendering them.

    `key(item)`: returns a value that identifies the row. `stops(item)`: returns whether the cursor
    can be on the row; False for headings. `heights(items, width)`: returns the number of lines that
    each row takes at this width; None instead of a function if every row takes one line.
    `find(items, key)`: returns the index of the row with a key, or None; None instead of a function
    if all keys are compared.
    """

    key: Callable[[Item], object]
    stops: Callable[[Item], bool]
    heights: Callable[[Sequence[Item], int], Iterable[int]] | None
    find: Callable[[Sequence[Item], object], int | None] | None


class RowIndex(Generic[Item]):
    """The rows of a list `width` cells wide, with the lines that each row takes up.

    In the methods, `place` is a row's index.
    """

    def __init__(self, kind: RowKind[Item], rows: Sequence[Item] = (), width: int = 0) -> None:
        self._kind, self.rows = kind, rows
        self._tops: Sequence[int] = ()
        self.measure(width)

    def measure(self, width: int) -> None:
        """Recompute the rows' positions for a new width."""
        heights, rows = self._kind.heights, self.rows
        if heights is None:
            self._tops = range(len(rows) + 1)
        else:
            self._tops = [*accumulate(heights(rows, width), initial=0)]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def height(self) -> int:
        """The total number of lines that the rows take up."""
        return self._tops[-1]

    def key(self, place: int) -> object:
        """Return the value that identifies a row."""
        return self._kind.key(self.rows[place])

    @cached_property
    def _keys(self) -> list[object]:
        return list(map(self._kind.key, self.rows))

    def find(self, key: object, near: int = -1) -> int | None:
        """Return the index of the row with this key, or None.

        `near`: an index to check first, because the row is probably there.
        """
        if 0 <= near < len(self.rows) and self.key(near) == key:
            return near
        if key is None:
            return None
        if self._kind.find is not None:
            return self._kind.find(self.rows, key)
        try:
            return self._keys.index(key)
        except ValueError:
            return None

    def nearest(self, place: int) -> int:
        """Return `place` or, if there is no such row, the closest index that has one.

        Returns 0 if there are no rows.
        """
        return max(0, min(place, len(self.rows) - 1))

    def stop(self, place: int, step: int = 1) -> int:
        """Return the index of the first row from `place` that can have the cursor.

        `step`: the direction in which to look first, 1 for down or -1 for up. If there is no such
        row in either direction, `place` is returned.
        """
        place, end = self.nearest(place), len(self.rows)
        below, above = range(place, min(end, place + _FAR)), range(place, max(-1, place - _FAR), -1)
        around = chain(below, above) if step > 0 else chain(above, below)
        return next((at for at in around if self.stops(at)), place)

    def stops(self, place: int) -> bool:
        """Return whether this row exists and the cursor can be on it."""
        return 0 <= place < len(self.rows) and self._kind.stops(self.rows[place])

    def at(self, line: int) -> int:
        """Return the index of the row that covers this line, or of the nearest row."""
        return self.nearest(bisect_right(self._tops, line) - 1)

    def top(self, place: int) -> int:
        """Return the number of a row's first line."""
        return self._tops[place]

    def bottom(self, place: int) -> int:
        """Return the number of the line after a row's last line."""
        return self._tops[place + 1]

    def is_within(self, place: int, top: int, bottom: int) -> bool:
        """Return whether a row exists and lies completely within a range of lines.

        `top`: the first line of the range. `bottom`: the line after its last one.
        """
        return place < len(self) and top <= self.top(place) and self.bottom(place) <= bottom


class RowList(ScrollView, Generic[Item], can_focus=True, inherit_bindings=False):
    """A list with a cursor; cursor and scroll position are kept when the rows change.

    `draw(item, look)` renders one row `look.width` cells wide. A subclass can render rows of
    several lines by overriding `strips`. `stops`, `key`, `heights` and `find`: see `RowKind`.
    `empty`: the text to show if there are no rows.
    """

    BINDINGS = bindings(Where.ROWS)
    DEFAULT_CSS = """
    RowList {
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-gutter: stable;
    }
    """

    @dataclass
    class Highlighted(Message):
        """Posted when the cursor has moved, or when the row under it has changed."""

        rows: RowList[Any]

        @property
        def control(self) -> RowList[Any]:
            """The list that posted this message."""
            return self.rows

    class Opened(Highlighted):
        """Posted when the user has opened the row under the cursor."""

    def __init__(
        self,
        draw: Callable[[Item, Look], Pieces],
        *,
        stops: Callable[[Item], bool] = lambda _: True,
        key: Callable[[Item], object] = lambda item: item,
        heights: Callable[[Sequence[Item], int], Iterable[int]] | None = None,
        find: Callable[[Sequence[Item], object], int | None] | None = None,
        empty: str = "",
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self._draw, self._kind = draw, RowKind(key, stops, heights, find)
        self.empty = empty
        self._places = RowIndex(self._kind)
        self._cursor = 0
        self._height = 0
        self._look: Look | None = None
        self._drawn: dict[int, Sequence[Strip]] = {}

    @property
    def items(self) -> Sequence[Item]:
        """The items shown as rows, including headings."""
        return self._places.rows

    @property
    def count(self) -> int:
        """The number of rows, including headings."""
        return len(self._places)

    @property
    def chosen(self) -> Item | None:
        """The item under the cursor, or None if there is none."""
        here = self._places.stops(self._cursor)
        return self._places.rows[self._cursor] if here else None

    @property
    def chosen_key(self) -> object:
        """The key of the item under the cursor, or None if there is none."""
        return self._places.key(self._cursor) if self._places.stops(self._cursor) else None

    def find(self, key: object) -> int | None:
        """Return the index of the row with this key, or None."""
        return self._places.find(key)

    @property
    def active(self) -> bool:
        """Whether key presses move this list's cursor."""
        return self.has_focus

    @property
    def cursor(self) -> int:
        """The index of the row with the cursor."""
        return self._cursor

    def show(self, items: Sequence[Item], *, fresh: bool = False, wanted: object = None) -> None:
        """Replace the rows; the cursor stays on the same item if it still exists.

        `fresh`: move the cursor to the first row instead. `wanted`: move the cursor to the row with
        this key, if it exists.
        """
        before = self.chosen_key
        keys, otherwise = ((wanted,), 0) if fresh else ((wanted, before), self._cursor)
        if fresh:
            self.scroll_to(y=0, animate=False)
        self.put(items, keys, otherwise, shows=fresh or wanted is not None)
        if fresh or self.chosen is None or self.chosen_key != before:
            self.report_cursor()

    def put(
        self, items: Sequence[Item], keys: Iterable[object], otherwise: int, *, shows: bool
    ) -> None:
        """Replace the rows without posting a message about the cursor.

        The cursor moves to the row with the first of `keys` that exists, or else to the row at
        index `otherwise`. `shows`: scroll to the cursor even if it wasn't visible before.
        """
        had_rows = bool(self.items)
        with self._kept_in_place(shows=shows):
            self._places, self._drawn = RowIndex(self._kind, items, self._width), {}
            found = (self._places.find(key, self._cursor) for key in keys)
            place = next((at for at in found if at is not None), otherwise)
            self._cursor = self._places.stop(place)
        if bool(items) != had_rows:  # see `check_action`
            self.refresh_bindings()

    def go(self, place: int, step: int = 1) -> None:
        """Move the cursor to the row at index `place`.

        If the cursor can't be on that row, it goes to the next possible row in direction `step` or,
        if there is none, in the other direction.
        """
        before, self._cursor = self._cursor, self._places.stop(place, step)
        self._show_cursor()
        for row in {before, self._cursor} if self._places else ():
            top = self._places.top(row)
            self.refresh_lines(top, self._places.bottom(row) - top)
        self.report_cursor()

    def report_cursor(self) -> None:
        """Post `Highlighted` for the row that is now under the cursor."""
        self.post_message(self.Highlighted(self))

    # --- lines ---------------------------------------------------------------------------------

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width

    def in_sight(self, place: int) -> bool:
        """Return whether the row at this index is fully visible."""
        top = self.scroll_offset.y
        return self._places.is_within(place, top, top + self._height)

    @contextmanager
    def _kept_in_place(self, *, shows: bool = False) -> Iterator[None]:
        """Keep the visible rows in place on screen while the `with` block changes rows.

        Afterwards, the cursor is visible if it was before, or if `shows` is set. If the user has
        scrolled away from the cursor with the mouse wheel, the scroll position doesn't change.
        """
        places, top, laid_out = self._places, self.scroll_offset.y, self._height > 0
        seen, held = self.in_sight(self._cursor), None
        if top and places:
            place = self._cursor if seen else places.at(top)
            held = place, places.key(place), places.top(place) - top
        yield
        self._height = self.size.height
        self.virtual_size = Size(self._width, self._places.height)
        self.refresh()
        if held is not None:
            place, key, line = held
            now = self._places.find(key, place)
            if now is not None:
                self.scroll_to_line(self._places.top(now) - line)
        if shows or seen or not laid_out:
            self._show_cursor()

    def scroll_to_line(self, y: int) -> None:
        """Scroll to a line, even if the scroll bar hasn't been updated for new rows yet."""
        taller = self._places.height > self.size.height
        self.scroll_to(y=y, animate=False, force=taller)

    def lead(self, place: int) -> int:
        """Return the index of the row to scroll to so that the row at `place` is visible.

        This is the list's first row if there are only a few headings above `place`, so that they
        are visible too. Otherwise, it is `place` itself.
        """
        above = range(min(place, 4))
        return 0 if place <= 3 and not any(map(self._places.stops, above)) else place

    def _show_cursor(self) -> None:
        """Scroll until the cursor's row is visible, along with its heading if it has one."""
        places, top, height = self._places, self.scroll_offset.y, self.size.height
        if not places:
            return
        start, end = places.top(self.lead(self._cursor)), places.bottom(self._cursor)
        if end > top + height:
            self.scroll_to_line(end - height)
        elif start < top:
            self.scroll_to_line(start)

    def on_resize(self) -> None:
        """Lay out the rows again, because their heights may depend on the width."""
        with self._kept_in_place():
            self._places.measure(self._width)

    # --- rendering -----------------------------------------------------------------------------

    def render_lines(self, crop: Region) -> list[Strip]:
        """Render a region of the list, rendering each of its rows only once."""
        self._look = look_of(self.app, self._width)
        self._drawn = {}
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Return the strip for one visible line."""
        look = self._look or look_of(self.app, self._width)
        line = y + self.scroll_offset.y
        place = self._places.at(line) if self._places else -1
        if place not in self._drawn:
            drawn = self.strips(place, look) if self._places else self.empty_strips(look)
            self._drawn[place] = drawn
        lines = self._drawn[place]
        inside = line - self._places.top(place) if self._places else line
        strip = lines[inside] if inside < len(lines) else Strip([])
        chosen = place == self._cursor and self.active and self._places.stops(place)
        ground = look[Role.CHOSEN] if chosen else Style.null()
        return strip.adjust_cell_length(look.width).apply_style(self.rich_style + ground)

    def strips(self, place: int, look: Look) -> Sequence[Strip]:
        """Return the lines of the row at this index, with the cursor if it is there."""
        front = Piece(" " * GUTTER, look[Role.TEXT])
        if place == self._cursor and self._places.stops(place):
            front = Piece(look.glyphs.cursor, look[Role.CURSOR if self.active else Role.MUTED])
        return _fitted((front, *self._draw(self.items[place], look.narrowed(GUTTER))), look)

    def empty_strips(self, look: Look) -> Sequence[Strip]:
        """Return the lines to show if there are no rows."""
        style = look[Role.MUTED]
        return _fitted((Piece(" " * GUTTER, style), Piece(self.empty, style)), look)

    # --- the mouse -----------------------------------------------------------------------------

    def place_of(self, event: events.Click) -> int | None:
        """Return the index of the clicked row, or None if the cursor can't be on it."""
        inside = event.get_content_offset(self)
        line = -1 if inside is None else inside.y + self.scroll_offset.y
        place = self._places.at(line)
        return place if 0 <= line < self._places.height and self._places.stops(place) else None

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the clicked row; a double click opens that row."""
        place = self.place_of(event)
        if place is not None:
            self.go(place)
            if self.opens(event.chain):
                self.action_open()

    def opens(self, clicks: int) -> bool:
        """Return whether this many successive clicks open a row."""
        return clicks == 2

    # --- actions -------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable all actions if there are no rows."""
        del action, parameters
        return bool(self.items)

    def action_step(self, rows: int) -> None:
        """Move the cursor by a number of rows; negative numbers move up."""
        self.go(self._cursor + rows, rows)

    def action_page(self, pages: float) -> None:
        """Move the cursor by a number of pages; negative numbers move up."""
        if self._places:
            top, bottom = self._places.top(self._cursor), self._places.bottom(self._cursor)
            lines = max(bottom - top, int(abs(pages) * (self.size.height - (bottom - top))))
            step = 1 if pages > 0 else -1
            self.go(self._places.at(top + step * lines), step)

    def action_first(self) -> None:
        """Move to the first row."""
        self.go(0)

    def action_last(self) -> None:
        self.go(self.count - 1, -1)

    def action_open(self) -> None:
        if self.chosen is not None:
            self.post_message(self.Opened(self))


def _fitted(pieces: Pieces, look: Look) -> Sequence[Strip]:
    line = Line(cut(pieces, look))
    return (strip_of(line, look.width),)


class SteeredRows(RowList[Item], can_focus=False):
    """A list whose cursor is moved by keys pressed elsewhere, as in a search field."""

    @property
    def active(self) -> bool:
        """Always True: keys move the cursor although a field above the list has the focus."""
        return True


class SteersRows:
    """Mixin for a screen with `SteeredRows`: actions that move the list's cursor.

    The list itself never has the focus.
    """

    @property
    @abstractmethod
    def rows(self) -> SteeredRows[Any]:
        """The list whose cursor to move."""

    def action_step(self, rows: int) -> None:
        """Move the cursor by a number of rows; negative numbers move up."""
        self.rows.action_step(rows)

    def action_page(self, pages: float) -> None:
        """Move the cursor by a number of pages; negative numbers move up."""
        self.rows.action_page(pages)
