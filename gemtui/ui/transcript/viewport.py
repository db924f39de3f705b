"""The visible part of a transcript, independent of the app."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from gemtui.transcript.model import Block, Message, Outline, Transcript
from gemtui.ui.draw.theme import Look
from gemtui.ui.transcript.cursor import LAST, Cursor, Folds, cursor_order
from gemtui.ui.transcript.layout import Anchor, Layout, LayoutLine, Stops
from gemtui.ui.transcript.message import Drawn, DrawnBlock, draw_message, estimate, turn_of

EMPTY = Transcript.of(())
GUESS_WIDTH = 80


class News:
    """A count of what was added below a window since the user last saw the transcript's end.

    `messages`: how many messages. `grown`: whether the message that was last then is longer now.
    """

    def __init__(self) -> None:
        self.messages = 0
        self.grown = False

    def count(self, last: Outline, index: int, outlines: Sequence[Outline]) -> None:
        """Count what follows `last`, the message that was last and is now at `index`."""
        now = outlines[index]
        self.messages += len(outlines) - 1 - index
        longer = now.id == last.id and (now.calls, now.size) > (last.calls, last.size)
        self.grown = self.grown or longer


class TopShare:
    """The position of a window's top row in its message, as a share from 0 to 1.

    It is stored while the width changes repeatedly, so that rounding errors don't add up.
    """

    def __init__(self) -> None:
        self._stored = (0, 0.0, -1)

    def at(self, top: int, layout: Layout) -> tuple[int, float]:
        """Return the index of the message at the line `top`, and the line's share of it."""
        message, share, stored_top = self._stored
        if stored_top == top and message < len(layout):
            return message, share
        message, line = layout.heights.find(top)
        return message, line / max(1, layout.heights[message])

    def store(self, message: int, share: float, top: int) -> None:
        """Store a share, to be returned as long as `top` is the window's first line."""
        self._stored = (message, share, top)


class Viewport:
    """A window of `height` lines on a transcript; `top` is its first line.

    The cursor is on a block and always visible. `following`: the window is at the end and stays
    there when messages arrive. `news`: what has arrived since the window left the end.
    `open_thoughts`: whether thoughts are unfolded by default.
    """

    def __init__(self, *, open_thoughts: bool = False) -> None:
        self.open_thoughts = open_thoughts
        self.transcript = EMPTY
        self.look: Look | None = None
        self.height = 0
        self._start()

    def empty_copy(self) -> Viewport:
        """Return a viewport of the same size without a transcript."""
        page = Viewport(open_thoughts=self.open_thoughts)
        page.look, page.height = self.look, self.height
        return page

    def _start(self) -> None:
        self.sheet = Layout(self._draw, self._guess)
        self.stops = Stops(self.sheet)
        self.top = 0
        self.news = News()
        self.cursor = Cursor(0, None)
        self.following = False
        self.folds = Folds(open_thoughts=self.open_thoughts)
        self._stays = self._loading = False
        self._top_share = TopShare()

    # --- the transcript ---

    def show(
        self,
        transcript: Transcript,
        *,
        fresh: bool,
        end: bool = False,
        loading: bool = False,
        news: bool = True,
    ) -> int:
        """Show a different transcript, or a newer state of the current one.

        Returns how many messages at the start are unchanged. `fresh`: the transcript is a different
        one. `end`: show its end. `loading`: the transcript is still being loaded; what is added
        until that is done doesn't count as new. `news`: whether additions count as new.
        """
        if fresh:
            self._start()
        anchor = self._anchor()
        on_last = self._on_last()
        cursor = self.sheet.key(self.cursor.message)
        key = None if anchor is None else self.sheet.key(anchor.message)
        last = self.sheet.outlines[-1:]
        news = news and not (self._loading or loading)
        count = len(self.sheet)
        self.transcript, self._loading = transcript, loading
        same = self.sheet.show(transcript.outlines)
        if fresh:
            self.cursor = Cursor(len(transcript) - 1, LAST) if end else Cursor(0, None)
            self.following = end
        elif self.following and on_last:
            self.cursor = Cursor(len(transcript) - 1, LAST)
        else:
            self.cursor = self.cursor._replace(message=self.sheet.index_of(*cursor, same))
        if anchor is not None and key is not None:
            anchor = anchor._replace(message=self.sheet.index_of(*key, same))
        if news and last and len(transcript):
            index = self.sheet.index_of(count - 1, last[0].id, same)
            self.news.count(last[0], index, self.sheet.outlines)
        self._rest(None if self.following else anchor or Anchor(0, 0, 0))
        return same

    def _anchor(self) -> Anchor | None:
        return self.sheet.anchor(self.top, self.height) if len(self.sheet) else None

    def _draw(self, index: int) -> Drawn:
        assert self.look is not None
        message = self.transcript.read(index)
        return draw_message(
            message,
            self.look,
            turn=turn_of(self.transcript.outlines, index),
            folded=partial(self.folds.of, message),
        )

    def _guess(self, outline: Outline) -> int:
        return estimate(outline, GUESS_WIDTH if self.look is None else self.look.width)

    # --- the window ---

    def resize(self, look: Look, height: int) -> None:
        """Apply a different look or height.

        The top row stays in place, unless the block under the cursor would leave the window. If the
        cursor is on the last block and the window follows the end of the transcript, the end stays
        on the last row instead.
        """
        cursor = self.cursor
        whole = self._is_whole()
        end = self.following and (self._on_last() or not self.height)
        self._fit(look, height, end=end)
        if end or not height or not len(self.sheet):
            return
        if self.cursor != self.stops.real(cursor) or (whole and not self._is_whole()):
            self._measure(cursor.message)
            self._enter(self.stops.real(cursor), down=True)

    def _is_whole(self) -> bool:
        """Return whether the whole block under the cursor is visible."""
        if not self.height or not len(self.sheet):
            return False
        start, end = self._span()
        return self.top <= start and end <= self.top + self.height

    def _fit(self, look: Look, height: int, *, end: bool) -> None:
        if self.look == look or not self.height or not len(self.sheet):
            anchor = self._anchor()
            self.look, self.height = look, height
            self._rest(None if end else anchor)
            return
        message, share = self._top_share.at(self.top, self.sheet)
        self.look, self.height = look, height
        self.sheet.forget_all()
        line = int(share * self.sheet.drawn(message).height + 1e-6)
        self._rest(None if end else Anchor(message, line, 0))
        self._top_share.store(message, share, self.top)

    @property
    def end(self) -> int:
        """The value of `top` that shows the end of the transcript."""
        return max(0, self.sheet.heights.total - self.height)

    @property
    def at_end(self) -> bool:
        """Whether the last line is visible."""
        return self.top >= self.end

    def _rest(self, anchor: Anchor | None) -> None:
        """Render the window around an anchor (a line that stays on its row).

        If the anchor is None, the window shows the end of the transcript. Updates `top`, the
        cursor, and what depends on whether the end is visible.
        """
        if not len(self.sheet):
            self.top = 0
            self.cursor = Cursor(0, None)
            self.following = self.following or not (self._stays or self._loading)
            return
        if not self.height:
            return
        settle = self.sheet.settle
        self.top = settle(anchor, self.height) if anchor else self.sheet.settle_end(self.height)
        self._keep_cursor_in_sight()
        at_end = self.following or not self._loading
        self.following = at_end and self.at_end and not self._stays
        if self.at_end:
            self.news = News()

    def scroll_to(self, line: int) -> None:
        """Scroll so that `line` of the layout is on the top row."""
        if not len(self.sheet):
            return
        line = max(0, min(line, self.end))
        self._stays = line < self.top
        self._move(line)

    def _move(self, line: int) -> None:
        at_end = line >= self.end and line > self.top
        self._rest(None if at_end else self.sheet.anchor(line, self.height))

    def page(self, pages: float) -> None:
        """Scroll by `pages` screens; where that is impossible, move the cursor instead.

        Negative numbers scroll up. A screen counts as one line less than it has, so that one line
        stays visible.
        """
        top = self.top
        rows = max(1, int(abs(pages) * (self.height - 1)))
        self.scroll_to(top + rows if pages > 0 else top - rows)
        if self.top == top and len(self.sheet):
            self.cursor = Cursor(len(self.sheet) - 1, LAST) if pages > 0 else Cursor(0, None)
            self._keep_cursor_in_sight()

    def start(self) -> None:
        """Move to the first message."""
        self._stays = True
        self.cursor = Cursor(0, None)
        self._rest(Anchor(0, 0, 0))

    def follow(self) -> None:
        """Move to the end, and follow new messages."""
        self._stays = False
        self.following = True
        self.cursor = Cursor(max(0, len(self.sheet) - 1), LAST)
        self._rest(None)

    def row(self, row: int) -> LayoutLine | None:
        """Return the contents of a row of the window; None below the transcript's end."""
        return self.sheet.place(self.top + row)

    # --- the cursor ---

    @property
    def current_message(self) -> Message | None:
        """The message under the cursor, read from the transcript."""
        return self.transcript.read(self.cursor.message) if len(self.sheet) else None

    @property
    def block(self) -> Block | None:
        """The block under the cursor."""
        spoken, number = self.current_message, self.cursor.block
        if spoken is None or number is None or number >= len(spoken.blocks):
            return None
        return spoken.blocks[number]

    def is_fold_handle(self, place: LayoutLine) -> bool:
        """Return whether a click on a line folds or unfolds the block under the cursor.

        This is the case on the first and last line of a foldable block. `place`: a line of the
        message under the cursor.
        """
        part = self.part()
        return part is not None and part.foldable and place.line in (part.start, part.end - 1)

    def part(self) -> DrawnBlock | None:
        """Return the lines of the block under the cursor; None if none are drawn."""
        return self.stops.part(self.cursor) if len(self.sheet) and self.look else None

    def _span(self) -> tuple[int, int]:
        start, end = self.stops.inside(self.cursor)
        top = self.sheet.heights.top(self.cursor.message)
        return top + start, top + end

    def _keep_cursor_in_sight(self) -> None:
        last = min(self.top + self.height, self.sheet.heights.total) - 1
        first_place, last_place = self.sheet.place(self.top), self.sheet.place(last)
        if first_place is None or last_place is None:
            return
        first, final = self.stops.at(first_place, below=True), self.stops.at(last_place)
        if self.cursor.message < first.message:
            self.cursor = first
        elif self.cursor.message > final.message:
            self.cursor = final
        else:
            wanted = self.stops.real(self.cursor)
            self.cursor = min(max(wanted, first, key=cursor_order), final, key=cursor_order)

    def move_cursor(self, cursor: Cursor) -> None:
        """Move the cursor to a block that is already visible, without scrolling."""
        self._stays = self._stays or not self._is_last(cursor)
        self.cursor = self.stops.real(cursor)
        self._rest(self._anchor())

    def _is_last(self, cursor: Cursor) -> bool:
        return self.stops.is_last(cursor, drawn=bool(self.height))

    def _on_last(self) -> bool:
        return bool(len(self.sheet)) and self._is_last(self.cursor)

    def down(self) -> None:
        """Move to the next block, or scroll down a line if this one continues below."""
        if not len(self.sheet):
            return
        if self._span()[1] > self.top + self.height:
            self.scroll_to(self.top + 1)
        elif (following := self._neighbour(1)) is None:
            self.follow()
        else:
            self._enter(following, down=True)

    def up(self) -> None:
        """Move to the previous block, or scroll up a line if this one starts above."""
        if not len(self.sheet):
            return
        if self._span()[0] < self.top:
            self.scroll_to(self.top - 1)
        elif (before := self._neighbour(-1)) is not None:
            self._enter(before, down=False)

    def _neighbour(self, step: int) -> Cursor | None:
        beside = self.stops.beside(self.cursor, step)
        if beside is None or beside.message == self.cursor.message:
            return beside
        self._measure(beside.message)
        return self.stops.real(beside)

    def _measure(self, message: int) -> None:
        """Render a message while keeping the visible part in place."""
        anchor = self.sheet.anchor(self.top, self.height)
        self.sheet.drawn(message)
        self.top = self.sheet.settle(anchor, self.height)

    def _enter(self, cursor: Cursor, *, down: bool) -> None:
        """Move the cursor to a block, scrolling as little as possible to show it.

        If the block is taller than the window, its nearer end is shown: its start if `down` is
        true.
        """
        self.cursor = cursor
        start, end = self._span()
        if end - start > self.height:
            line = start if down else end - self.height
        else:
            line = min(max(self.top, end - self.height), start)
        self._stays = not (down and self._is_last(cursor))
        self._move(line)

    # --- jumps and folds ---

    def jump(self, found: Cursor, key: str, *, at_top: bool) -> None:
        """Jump to a block of the message with id `key`.

        Does nothing if the message is no longer at index `found.message`. `at_top`: always scroll
        the block to the top row.
        """
        outlines = self.sheet.outlines
        if found.message < len(outlines) and outlines[found.message].id == key:
            self.go(found, at_top=at_top)

    def go(self, cursor: Cursor, *, at_top: bool = False, line: int | None = None) -> None:
        """Move the cursor to any block, scrolling only if necessary to make it visible.

        `at_top`: always scroll the block to the top row. `line`: the line of the message to make
        visible; None means the block's first line.
        """
        self._stays = not self._is_last(cursor)
        self._measure(cursor.message)
        self.cursor = self.stops.real(cursor)
        start, end = self.stops.inside(self.cursor)
        wanted = start if line is None else line
        row = self.sheet.heights.top(cursor.message) + wanted - self.top
        shown = min(end - start, self.height) if line is None else 1
        if at_top:
            row = 0
        elif not 0 <= row <= self.height - shown:
            row = 0 if end - start > self.height and line is None else self.height // 4
        self._rest(Anchor(cursor.message, wanted, row))

    def fold(self, folded: bool | None = None) -> bool:
        """Fold or unfold the block under the cursor.

        Returns False if that is impossible. `folded`: the state to set; None changes the current
        one.
        """
        part = self.part()
        if part is None or part.block is None or not part.foldable or part.folded is folded:
            return False
        key = self.sheet.outlines[self.cursor.message].id
        self.folds.choose(key, part.block, folded=not part.folded)
        self._redraw(lambda: self.sheet.forget(self.cursor.message))
        return True

    def fold_everything(self) -> bool | None:
        """Cycle to the next state: all unfolded, all folded, or the default rules (None).

        Returns the new state.
        """
        places = map(self.row, range(self.height))
        parts = (part for place in places if place is not None for part in place.drawn.parts)
        folded = self.folds.turn(folded=any(part.folded for part in parts))
        self._redraw_all()
        return folded

    def fold_kind(self, kind: type[Block]) -> bool:
        """Unfold all blocks of one kind, or fold them as by default; return which."""
        unfolded = self.folds.turn_kind(kind)
        self._redraw_all()
        return unfolded

    def _redraw_all(self) -> None:
        if len(self.sheet):
            self._redraw(self.sheet.forget_all)

    def _redraw(self, change: Callable[[], None]) -> None:
        """Apply a change to the rendering, keeping the block under the cursor on its row."""
        row = max(0, self._span()[0] - self.top)
        change()
        self._rest(Anchor(self.cursor.message, self.stops.inside(self.cursor)[0], row))
