"""Keys for a transcript's current block (copy, open, show raw) and its prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gemtui.text import Clean, clean_line, ellipsis
from gemtui.transcript.media import stored_images
from gemtui.transcript.model import Outline, ToolCall
from gemtui.ui.draw.formats import format_time
from gemtui.ui.draw.lines import own
from gemtui.ui.draw.theme import Look
from gemtui.ui.kit.messages import CopyRequested, FileRequested, HistoryRequested, RawRequested
from gemtui.ui.kit.screens import KeyPart
from gemtui.ui.transcript.copy import Copy, CopyScreen, copies_of_block, copy_of_message, file_of
from gemtui.ui.transcript.cursor import Cursor
from gemtui.ui.transcript.search_bar import SearchedView

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase

PROMPT_ROOM = 50
"""Maximum width in cells of a prompt in the list of prompts."""


class BlockKeys(KeyPart):
    """Keys that list prompts, or copy, open or show the block under the cursor."""

    def __init__(self, view: SearchedView) -> None:
        self._view = view

    def action_prompts(self) -> None:
        from gemtui.ui.kit.dialogs import Choice, ChooseScreen

        look, outlines = self._view.page.look, self._view.page.transcript.outlines
        places = [place for place, outline in enumerate(outlines) if outline.prompt]
        if look is None or not places:
            self._view.act(lambda: False, "no prompts here")
            return
        rows = [Choice(str(place), *_prompt_words(outlines[place], look)) for place in places]
        at = max(0, sum(place <= self._view.page.cursor.message for place in places) - 1)

        def jump(chosen: str | None) -> None:
            if chosen is not None:
                place = int(chosen)
                self._view.page.jump(Cursor(place, None), outlines[place].id, at_top=True)
                self._view.refresh_page()

        self._view.app.push_screen(ChooseScreen(own("Prompts"), (), rows, at=at), jump)

    def action_open_file(self) -> None:
        """Open an attached image in a viewer, or a tool call's file in the editor."""
        if images := stored_images(self._view.page.block):
            from gemtui.ui.transcript.media import open_one

            open_one(cast("AppBase", self._view.app), images)
        elif (file := self._file()) is not None:
            self._view.post_message(FileRequested(*file))

    def action_history(self) -> None:
        if (file := self._file()) is not None:
            self._view.post_message(HistoryRequested(file[0]))

    def _file(self) -> tuple[str, int | None] | None:
        """Return the path and line number of the file that a tool call is about.

        This is the call under the cursor. If there is no such call or file, a note is shown and
        None is returned.
        """
        block = self._view.page.block
        file = file_of(block) if isinstance(block, ToolCall) else None
        self._view.act(lambda: file is not None, "no file here")
        return file

    def action_raw(self) -> None:
        if (spoken := self._view.page.current_message) is not None:
            self._view.post_message(RawRequested(spoken, self._view.page.block))

    def action_copy_block(self) -> None:
        """Copy the block under the cursor, or a piece of code in it."""
        page = self._view.page
        if (block := page.block) is None:
            return
        fences = page.sheet.drawn(page.cursor.message).fences
        copies = copies_of_block(block, [f for f in fences if f.block == page.cursor.block])
        if len(copies) == 1:
            self._copy(copies[0])
        else:
            self._view.app.push_screen(CopyScreen(copies), self._copy)

    def action_copy_message(self) -> None:
        if (spoken := self._view.page.current_message) is not None:
            self._copy(copy_of_message(spoken))

    def _copy(self, copy: Copy | None) -> None:
        if copy is not None:
            self._view.post_message(CopyRequested(copy.text, copy.what))


def _prompt_words(prompt: Outline, look: Look) -> tuple[Clean, Clean]:
    words = ellipsis(clean_line(prompt.excerpt), PROMPT_ROOM, mark=look.glyphs.ellipsis)
    when = "" if prompt.time is None else format_time(prompt.time, look)
    return words or own("(no words)"), own(when)
