"""The transcript view: it renders single lines and has a cursor on blocks."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import Offset, Region, Size
from textual.selection import Selection
from textual.strip import Strip

from gemtui.transcript.model import Block, Thought, ToolCall, Transcript
from gemtui.ui.draw.theme import Look, look_of
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.messages import (
    BackRequested,
    DroppedRequested,
    SubagentRequested,
    TranscriptMoved,
)
from gemtui.ui.kit.screens import HasParts
from gemtui.ui.transcript.block_keys import BlockKeys
from gemtui.ui.transcript.cursor import TARGETS, next_target
from gemtui.ui.transcript.row_strip import (
    GUTTER,
    RowFrame,
    block_selection,
    clamp_to_window,
    draw_viewport_row,
    running_call,
    text_between,
    unseen_mark,
    with_mark,
    with_time,
)
from gemtui.ui.transcript.search import Finder, SearchedView
from gemtui.ui.transcript.viewport import Viewport

_KINDS: dict[str, type[Block]] = {"thoughts": Thought, "outputs": ToolCall}
READING = 112
"""Maximum width of a line in cells.

This is enough for 100 characters of code in a diff, yet narrow enough to see both ends of a card.
"""


class TranscriptView(HasParts, SearchedView, can_focus=True, inherit_bindings=False):
    """Shows a transcript of any length, reading and rendering messages when needed.

    Whenever a screen receives `TranscriptMoved`, it should read `page.cursor`, `following`, `found`
    and `word`. The user's requests are posted as the other messages in `gemtui.ui.kit.messages`.
    """

    ALLOW_SELECT = True
    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.TRANSCRIPT)
    DEFAULT_CSS = """
    TranscriptView {
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
    }
    """

    def __init__(self, *, id: str | None = None, open_thoughts: bool = False) -> None:
        super().__init__(id=id)
        self.page = Viewport(open_thoughts=open_thoughts)
        self.word = ""
        """A note about the last key, such as "no failed call below"; otherwise ""."""
        self.laid_out = asyncio.Event()
        """Set while the page is wrapped for the current width."""
        self.finder = Finder(self)
        self._block_keys = BlockKeys(self)
        self.add_parts(self._block_keys)
        self._frame: RowFrame | None = None
        self._keys_of: tuple[bool, ...] = ()
        self._lasting: tuple[str, str] | None = None
        self._placing = False
        self._whole = False

    # --- contents ------------------------------------------------------------------------------

    def show(
        self,
        transcript: Transcript,
        *,
        fresh: bool,
        end: bool = False,
        loading: bool = False,
        news: bool = True,
    ) -> None:
        """Show a different transcript (`fresh`), or a newer state of the current one.

        A newer state keeps the cursor, position, folds, search and selection. `end`: show the end
        of a fresh transcript. `loading`: the rest is still being loaded and doesn't count as new.
        `news`: whether additions count as new.
        """
        if fresh:
            self.show_page(self.page.empty_copy())
        same = self.page.show(transcript, fresh=fresh, end=end, loading=loading, news=news)
        self.finder.changed(same)
        self.word = ""
        self.refresh_page()

    def show_page(self, page: Viewport) -> None:
        """Show a page (the state of a transcript on screen), and end a search that was made.

        It may be the page on which a different session was left.
        """
        self.leave_find()
        self._unselect()
        self.page, self.word = page, ""
        self.laid_out.clear()
        self._fit()

    @property
    def following(self) -> bool:
        """Whether the view is at the end and follows new messages."""
        return self.page.following

    @property
    def index(self) -> int:
        """The index of the message under the cursor."""
        return self.page.cursor.message

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self._fit())

    def on_resize(self) -> None:
        self._fit()

    def on_show(self) -> None:
        self._fit()

    def spread(self, *, whole: bool) -> None:
        """Let lines use the full width (`whole`), or limit their width for readability."""
        self._whole = whole
        self._fit()

    def _fit(self) -> None:
        width, height = self.scrollable_size
        if width <= GUTTER:
            return
        room = width - GUTTER
        look = look_of(self.app, room if self._whole else min(room, READING))
        if look != self.page.look:
            self._unselect()
        self.page.resize(look, height)
        self.laid_out.set()
        self.refresh_page()

    def refresh_page(self) -> None:
        """Update the scroll bar, the position and the lines after the page has changed."""
        if not self.is_mounted:
            return
        self._frame = None
        self._placing = True
        size = Size(self.scrollable_size.width, self.page.sheet.heights.total)
        if size != self.virtual_size:  # needs no layout: the scroll bar is always there
            self.set_reactive(TranscriptView.virtual_size, size)
            self.vertical_scrollbar.window_virtual_size = size.height
        if round(self.scroll_y) != self.page.top:
            self.scroll_target_y = self.scroll_y = self.page.top
        self._placing = False
        self.refresh()
        part = self.page.part()
        keys_of = () if part is None else (part.foldable, part.folded, part.opens, part.media)
        if keys_of != self._keys_of:
            self._keys_of = keys_of
            self.refresh_bindings()
        self.post_message(TranscriptMoved())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Scroll the page when the mouse wheel or the scroll bar is used.

        A resize also changes this value, before the new size is reported; that doesn't count as
        scrolling.
        """
        resized = self.scrollable_size.height != self.page.height
        if not self._placing and not resized and round(new_value) != self.page.top:
            self.page.scroll_to(round(new_value))
            self.refresh_page()
        super().watch_scroll_y(old_value, self.scroll_y)

    def scroll_to(self, *args: Any, **options: Any) -> None:
        """Scroll without animation, because heights may change on the way."""
        super().scroll_to(*args, **options | {"animate": False})

    # --- rendering -----------------------------------------------------------------------------

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the rows of the window.

        If there hasn't been a resize event yet, the page is laid out afterwards.
        """
        if not self.page.height:
            self.call_later(self._fit)
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Return one row of the window."""
        look = self.page.look
        if look is None or not self.page.height:
            return Strip.blank(self.scrollable_size.width, self.rich_style)
        strip = draw_viewport_row(self.page, y, self._frame or self._new_frame(look))
        if self._lasting is not None and running_call(self.page, y) == self._lasting[0]:
            strip = with_time(strip, self._lasting[1], look)
        mark = unseen_mark(self.page, look) if y == self.page.height - 1 else None
        return strip if mark is None else with_mark(strip, mark)

    def show_time(self, lasting: tuple[str, str] | None) -> None:
        """Show on its card how long a call has been running, if the card is visible.

        `lasting`: the call's id, and for how long; None if no call is running.
        """
        ids = {id for id, _ in filter(None, (self._lasting, lasting))}
        self._lasting = lasting
        for row in range(self.page.height if ids else 0):
            if running_call(self.page, row) in ids:
                self.refresh(Region(0, row, self.size.width, 1))

    def _new_frame(self, look: Look) -> RowFrame:
        self._frame = RowFrame(
            width=self.scrollable_size.width,
            look=look,
            base=self.rich_style,
            focused=self.has_focus,
            selection=self.text_selection,
            selected=self.selection_style + Style(dim=False),
            marks=self.finder.marks,
        )
        return self._frame

    def notify_style_update(self) -> None:
        """Discard the cached row settings, because the colours have changed."""
        super().notify_style_update()
        self._frame = None

    def on_focus(self) -> None:
        self._redraw()

    def on_blur(self) -> None:
        """Redraw the cursor, which looks different without the focus."""
        self._redraw()

    def _redraw(self) -> None:
        self._frame = None
        self.refresh()

    # --- the mouse -----------------------------------------------------------------------------

    def selection_updated(self, selection: Selection | None) -> None:  # noqa: ARG002
        """Redraw the lines, because the selection has changed."""
        self._redraw()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the selected text as shown, without frames and wrapping."""
        if not self.total or not self.page.height:
            return None
        whole = clamp_to_window(self.page, selection)
        return text_between(whole, self.page.sheet.drawn, self.total), "\n"

    def text_select_all(self) -> None:
        """Select the block under the cursor; Textual calls this on a double click."""
        if self.total:
            self.screen.selections = {self: block_selection(self.page)}

    def _unselect(self) -> None:
        if self.is_mounted and self.text_selection is not None:
            self.screen.clear_selection()

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the block that was clicked.

        Clicking the first or last line of the card under the cursor folds or unfolds it. Clicking
        the mark for unseen messages goes to the end.
        """
        offset = event.get_content_offset(self)
        if offset is None or self.text_selection is not None:
            return
        if self._on_unseen_mark(offset):
            self.action_follow()
        elif (place := self.page.row(offset.y)) is not None:
            self.page.move_cursor(self.page.stops.at(place))
            if event.chain == 1 and self.page.is_fold_handle(place):
                self.page.fold()
            self.refresh_page()

    def _on_unseen_mark(self, offset: Offset) -> bool:
        if self.page.look is None or offset.y != self.page.height - 1:
            return False
        mark = unseen_mark(self.page, self.page.look)
        return mark is not None and offset.x >= self.scrollable_size.width - mark.cell_length

    # --- navigation ----------------------------------------------------------------------------

    def action_step(self, step: int) -> None:
        """Move down (`step` 1) or up (-1) by a block; in a long block, by a line."""
        self.act(self.page.down if step > 0 else self.page.up)

    def action_page(self, pages: float) -> None:
        """Scroll by a number of screens; negative numbers scroll up."""
        self.act(lambda: self.page.page(pages))

    def action_start(self) -> None:
        """Move to the first message."""
        self.act(self.page.start)

    def action_follow(self) -> None:
        self.act(self.page.follow)

    async def action_jump(self, kind: str, step: int) -> None:
        """Jump to the next (`step` 1) or previous (-1) target, or show a note.

        `kind`: a key of `TARGETS`.
        """
        page = self.page
        transcript = self.page.transcript
        target = TARGETS[kind]
        target_place = await asyncio.to_thread(next_target, transcript, page.cursor, target, step)
        if target_place is not None:
            page.jump(
                target_place, transcript.outlines[target_place.message].id, at_top=target.at_top
            )
        where = "below" if step > 0 else "above"
        self.act(lambda: target_place is not None, f"no {target.noun} {where}")

    # --- folding and opening -------------------------------------------------------------------

    def action_fold(self) -> None:
        self._unselect()
        self.act(self.page.fold, "nothing to fold here")

    def action_fold_all(self) -> None:
        """Cycle to the next state: all unfolded, all folded, or default folding."""
        self._unselect()
        folded = self.page.fold_everything()
        outcome = {True: "all folded", False: "all unfolded", None: "default folding"}[folded]
        self.word = outcome
        self.refresh_page()

    def action_fold_kind(self, kind: str) -> None:
        """Unfold all thoughts or outputs, or apply the default folding to them again."""
        self._unselect()
        unfolded = self.page.fold_kind(_KINDS[kind])
        self.word = f"{kind}: {'all unfolded' if unfolded else 'default folding'}"
        self.refresh_page()

    def action_open(self) -> None:
        """Open a subagent's session or an image; fold or unfold any other block."""
        block = self.page.block
        part = self.page.part()
        if isinstance(block, ToolCall) and block.agent_id:
            self.post_message(SubagentRequested(block.agent_id))
        elif part is not None and part.media and not part.foldable:
            self._block_keys.action_open_file()
        else:
            self.action_fold()

    def action_dropped(self) -> None:
        self.post_message(DroppedRequested())

    def key_label(self, action: str) -> str | None:
        """Return the current footer label of a key, or None for its usual label."""
        part = self.page.part()
        if action == "fold" and part is not None and part.folded:
            return "Expand"
        return "End search" if action == "back" and self.found.query else None

    def only_says_why(self, action: str) -> bool:
        """Return whether the action's key does nothing for the block under the cursor."""
        part = self.page.part()
        if action == "fold":
            return part is None or not part.foldable
        if action == "open":
            return part is None or not (part.opens or (part.media and not part.foldable))
        return super().only_says_why(action)

    def action_back(self) -> None:
        """End the search or, if there is none, leave the transcript."""
        if self.found.query:
            self.finder.clear()
        else:
            self.post_message(BackRequested())
