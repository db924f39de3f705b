"""The prompt field: multi-line text, earlier prompts, and completions.

Files are completed after an @, commands after a slash.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import var

from gemtui.text import cells, clean, short_path, visible_line
from gemtui.ui.draw.lines import fit_end
from gemtui.ui.draw.theme import glyphs_of
from gemtui.ui.kit.bars import LEAST
from gemtui.ui.kit.clean_widgets import Option, OptionList, name_frame
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.text_area import TextArea
from gemtui.ui.run.prompt_sources import (
    OWN,
    SENT_AT_ONCE,
    History,
    Offer,
    matching_paths,
    paths_below,
    slash_offers,
    slash_word,
)

LONGEST = 50_000
"""How many characters can be typed; a prompt loaded from a file may be longer."""
MOST_OFFERED, MOST_COMMANDS = 6, 200
"""Maximum numbers of files and of commands to offer; six are visible at a time."""
_GAP = "  "
_SHORTEST_PATH = 8
"""How many cells of the folder's path are always shown."""
_CORNERS = 4
"""Cells at the ends of the frame's bottom border that can't hold text."""
_FRESH = 5.0
"""Seconds after which a folder's completions are loaded again."""
_MENTION = re.compile(r"(?:^|(?<=\s))@((?:[^\s\\]|\\.)*)$")


class PromptArea(TextArea):
    """The text area for the prompt.

    Keys that have no effect here are passed on to the screen.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.PROMPT)

    hears: var[bool] = var(False, bindings=True)
    """Whether the active run accepts messages."""

    @dataclass
    class Submitted(Message):
        """Request to send the text as a prompt."""

        text: str

    @dataclass
    class SaidNow(Message):
        """Request to send the text to the active run right away."""

        text: str

    class PromptLeft(Message):
        """Posted when the user leaves the field, so that letters work as keys again."""

    @dataclass
    class Mentioned(Message):
        """Posted when the word to complete at the cursor may have changed.

        `wanted`: the word, or None if there is none. `slash`: whether the word is a command after a
        slash at the start of the prompt; otherwise it is a file after an @.
        """

        wanted: str | None
        slash: bool = False

    class ModeRequested(Message):
        """Request to switch the next run to the next mode."""

    @dataclass
    class CompletionKey(Message):
        """Posted when a key was pressed that acts on the list of completions.

        `what`: "up", "down", "take", "enter" or "close".
        """

        what: str

    def __init__(self, history: History) -> None:
        super().__init__(longest=LONGEST)
        self.commands: Collection[str] = {command.name for command in OWN}
        """The names of all slash commands found so far."""
        self.offering = False
        """Whether completions are shown; enter, tab, the arrows and esc then act on them."""
        self.beside = False
        """Whether the run on screen is active, so that the user may try to message it."""
        self._history = history
        self._at: int | None = None
        self._draft = ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable sending a message unless the active run accepts messages."""
        del parameters
        return self.hears if action == "say" else True

    # --- text ----------------------------------------------------------------------------------

    def set_text(self, text: str) -> None:
        """Replace the prompt's text, and move the cursor to its end."""
        self.text = clean(text)
        self.move_cursor(self.document.end)

    async def _on_key(self, event: events.Key) -> None:
        """Handle enter here, because a binding would run before earlier keys are inserted.

        While a run is active, ctrl+s is also handled here: if the run accepts no messages, the
        binding is disabled, but pressing the key should explain why.
        """
        if event.key == "enter" or (event.key == "ctrl+s" and self.beside):
            event.prevent_default()
            event.stop()
            self.action_send() if event.key == "enter" else self.action_say()

    def action_send(self) -> None:
        if self.offering and self._typed() is not None and not self._is_whole():
            self.post_message(self.CompletionKey("enter"))
        elif self.text.strip():
            self.post_message(self.Submitted(self.text))

    def action_say(self) -> None:
        if self.text.strip():
            self.post_message(self.SaidNow(self.text))

    def sent(self, text: str) -> None:
        """Remember a prompt that has been sent, and remove it from the field.

        Text that the user has typed after it stays in the field.
        """
        if self.text.startswith(text):
            self._history.add(text)
            self._at, self._draft = None, ""
            self.set_text(self.text.removeprefix(text))

    def action_mode(self) -> None:
        self.post_message(self.ModeRequested())

    def action_new_line(self) -> None:
        self.insert("\n")

    # --- earlier prompts -----------------------------------------------------------------------

    def action_cursor_up(self, select: bool = False) -> None:
        """Move up a line; on the first line, recall the previous prompt.

        While completions are shown, choose the previous one instead.
        """
        if self.offering:
            self.post_message(self.CompletionKey("up"))
        elif not select and self.navigator.is_first_wrapped_line(self.cursor_location):
            self._recall(-1)
        else:
            super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:
        """Move down a line; on the last line, recall the next prompt.

        While completions are shown, choose the next one instead.
        """
        if self.offering:
            self.post_message(self.CompletionKey("down"))
        elif not select and self.navigator.is_last_wrapped_line(self.cursor_location):
            self._recall(1)
        else:
            super().action_cursor_down(select)

    def _recall(self, step: int) -> None:
        prompts = self._history.prompts
        position = len(prompts) if self._at is None else self._at
        there = position + step
        if not 0 <= there <= len(prompts):
            return
        if self._at is None:
            self._draft = self.text
        self._at = None if there == len(prompts) else there
        self.set_text(self._draft if self._at is None else prompts[self._at])

    # --- completions ---------------------------------------------------------------------------

    def action_leave(self) -> None:
        if self.offering:
            self.post_message(self.CompletionKey("close"))
        else:
            self.post_message(self.PromptLeft())

    def action_complete(self) -> None:
        if self.offering:
            self.post_message(self.CompletionKey("take"))
        else:
            self.screen.focus_next()

    def _typed(self) -> tuple[str, bool] | None:
        """Return the word to complete at the cursor, and whether it follows a slash.

        Returns None if there is no such word.
        """
        row, column = self.cursor_location
        before = self.document.get_line(row)[:column]
        if row == 0 and (name := slash_word(before)) is not None:
            return name, True
        mention = _MENTION.search(before)
        return (mention[1].replace("\\", ""), False) if mention else None

    def _is_whole(self) -> bool:
        """Return whether a slash command's name has been typed in full, so enter sends it."""
        typed = self._typed()
        return typed is not None and typed[1] and typed[0] in self.commands

    @on(TextArea.Changed)
    @on(TextArea.SelectionChanged)
    def _look_for_mention(self) -> None:
        typed = self._typed()
        wanted, slash = typed or (None, False)
        self.post_message(self.Mentioned(wanted, slash=slash))

    def complete_word(self, text: str) -> None:
        """Replace the command or file name at the cursor with the chosen completion."""
        typed = self._typed()
        if typed is not None and typed[1]:
            self.replace(f"/{text} ", (0, 0), self.cursor_location)
        else:
            self.mention(text)

    def mention(self, path: str) -> None:
        """Replace the `@…` before the cursor with this path."""
        row, column = self.cursor_location
        mention = _MENTION.search(self.document.get_line(row)[:column])
        if mention is None:
            return
        more = path.endswith("/")
        escaped = re.sub(r"([\s\\,;()\[\]{}!?])", r"\\\1", path)
        self.replace(f"@{escaped}{'' if more else ' '}", (row, mention.start()), (row, column))


class PromptBox(Vertical):
    """The prompt's text area in a frame, with completions for `@…` and `/…` above it."""

    def __init__(self, history: History, *, id: str) -> None:
        super().__init__(id=id)
        self.folder = Path()
        self.area = PromptArea(history)
        self._offers: dict[bool, tuple[Path, float, tuple[Offer, ...]]] = {}
        """The loaded completions by kind: True for commands, False for files.

        Each entry holds the folder, the time of loading and the completions.
        """
        self._offered: tuple[str, ...] = ()
        self._hint = ""
        self._needed: Sequence[Content] = ()
        self._unusual: Sequence[Content] = ()
        self._spent: Sequence[Content] = ()

    def compose(self) -> ComposeResult:
        yield OptionList(id="files")
        yield self.area

    def show_hint(
        self,
        what: str,
        folder: Path,
        needed: Sequence[Content],
        unusual: Sequence[Content],
        spent: Sequence[Content],
    ) -> None:
        """Show in the frame what enter does with the prompt, and the next run's options.

        `folder`: the next run's folder, which is always shown, although the start of its path may
        be cut. Its files are offered as completions. `needed`: options that are always shown.
        `unusual`: options of which the last ones are left out on a narrow screen. `spent`: costs,
        which are shown only if all options are, and if they fit beside the end of the path.
        """
        self.folder, self._hint = folder, what
        self._needed, self._unusual, self._spent = needed, unusual, spent
        self._frame_again()

    def on_resize(self) -> None:
        self._frame_again()

    def _frame_again(self) -> None:
        path: str = short_path(self.folder)
        room, gap = self.size.width - _CORNERS - len(_GAP), Content(_GAP)
        needed = gap.join(self._needed)
        options = _with_fitting(needed, self._unusual, room - min(cells(path), _SHORTEST_PATH))
        if options.cell_length == gap.join([needed, *self._unusual]).cell_length:
            options = _with_fitting(options, self._spent, room - min(cells(path), LEAST))
        path = fit_end(
            path, max(room - options.cell_length, _SHORTEST_PATH), glyphs_of(self.app).ellipsis
        )
        options = options.truncate(max(room - cells(path), 0), ellipsis=True)
        name_frame(self, self._hint, gap.join([options, Content(path)]))

    @property
    def _offer(self) -> OptionList:
        return self.query_one("#files", OptionList)

    @on(PromptArea.Mentioned)
    @work(exclusive=True)
    async def _offer_files(self, event: PromptArea.Mentioned) -> None:
        if event.wanted is None:
            self._close()
            return
        offers = await self._known(slash=event.slash)
        if event.slash:
            self.area.commands = offers.keys()
        matching = _found(event.wanted, offers, slash=event.slash)
        offer = self._offer
        offer.clear_options()
        offer.add_options(Option(_row(text, offers[text], slash=event.slash)) for text in matching)
        self._offered = matching
        offer.highlighted = 0 if matching else None
        self.set_class(bool(matching), "-offering")
        self.area.offering = bool(matching)

    async def _known(self, *, slash: bool) -> dict[str, str]:
        """Return all completions for this folder, each with its description.

        `slash`: whether to return commands instead of files.
        """
        folder, now = self.folder, time.monotonic()
        before = self._offers.get(slash)
        if before is None or before[0] != folder or now - before[1] > _FRESH:
            offers = await asyncio.to_thread(slash_offers if slash else _file_offers, folder)
            self._offers[slash] = before = folder, now, offers
        return {offer.text: offer.words for offer in before[2]}

    @on(PromptArea.CompletionKey)
    def _choose(self, event: PromptArea.CompletionKey) -> None:
        match event.what:
            case "up":
                self._offer.action_cursor_up()
            case "down":
                self._offer.action_cursor_down()
            case "take":
                self._take()
            case "enter":
                self._take()
                if self.area.text.strip() in SENT_AT_ONCE:
                    self.post_message(PromptArea.Submitted(self.area.text))
            case _:
                self._close()

    @on(OptionList.OptionSelected)
    def _take(self) -> None:
        at = self._offer.highlighted
        self._close()
        if at is not None:
            self.area.complete_word(self._offered[at])
        self.area.focus()

    def _close(self) -> None:
        self.area.offering = False
        self.remove_class("-offering")


def _with_fitting(line: Content, parts: Iterable[Content], room: int) -> Content:
    """Return the line with as many of the parts as fit into `room` cells."""
    for part in parts:
        longer = Content(_GAP).join([line, part])
        if longer.cell_length > room:
            break
        line = longer
    return line


def _found(wanted: str, offers: Iterable[str], *, slash: bool) -> tuple[str, ...]:
    """Return the completions that match the typed word, best first.

    Without a typed word, all commands match. `offers`: all possible completions. `slash`: whether
    they are commands instead of files.
    """
    if slash and not wanted:
        return tuple(offers)
    return matching_paths(wanted, offers, most=MOST_COMMANDS if slash else MOST_OFFERED)


def _file_offers(folder: Path) -> tuple[Offer, ...]:
    return tuple(Offer(path, "") for path in paths_below(folder))


def _row(text: str, words: str, *, slash: bool) -> str:
    return f"/{visible_line(text):<12}  {words}" if slash else visible_line(text)
