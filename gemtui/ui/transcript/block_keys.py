"""Keys for a transcript's current block (copy, open, show raw) and its prompts.

Images, sounds, videos and PDFs are opened in the desktop's viewers.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, assert_never, cast

from textual import on
from textual.app import ComposeResult
from textual.content import Content

from gemtui.calls.paths import asked_path
from gemtui.errors import GemtuiError, message_of
from gemtui.files import write_new
from gemtui.processes import FOLDER, IndependentProcess, find_program
from gemtui.system import DETACHED
from gemtui.text import clean, clean_line, ellipsis, visible
from gemtui.transcript.call_text import output_text
from gemtui.transcript.displays import has_line_numbers
from gemtui.transcript.media import (
    MediaDamaged,
    file_name_of,
    image_bytes,
    image_words,
    media_type,
    stored_images,
)
from gemtui.transcript.model import (
    Attachment,
    Block,
    DiffDisplay,
    Image,
    Message,
    Notice,
    Outline,
    Text,
    Thought,
    ToolCall,
    excerpt,
)
from gemtui.transcript.search import block_text
from gemtui.transcript.tools import ToolKind, kind_of, target
from gemtui.ui.draw.formats import format_time
from gemtui.ui.draw.theme import Look
from gemtui.ui.kit.app_base import DialogScreen, start_worker
from gemtui.ui.kit.clean_widgets import Dialog, Option, OptionList
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.messages import CopyRequested, FileRequested, HistoryRequested
from gemtui.ui.kit.screens import KeyPart
from gemtui.ui.transcript.cursor import Cursor
from gemtui.ui.transcript.diff import first_line
from gemtui.ui.transcript.message import Fence
from gemtui.ui.transcript.search import SearchedView

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase


FIRST = 40
"""Maximum width in cells of the first line of what can be copied."""
_PATIENCE = 3.0
"""Seconds to wait for an opener to fail; after that, it counts as successful."""
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

        self._view.app.push_screen(ChooseScreen("Prompts", (), rows, at=at, filters=True), jump)

    def action_open_file(self) -> None:
        """Open an attached image in a viewer, or a tool call's file in the editor."""
        images = stored_images(self._view.page.block)
        if images:
            open_one(cast("AppBase", self._view.app), images)
        elif (file := self._file()) is not None:
            self._view.post_message(FileRequested(*file))

    def action_history(self) -> None:
        file = self._file()
        if file is not None:
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
        """Show the message's stored record or, on a tool call, only the part for that call."""
        from gemtui.jsonout import indented
        from gemtui.ui.kit.text_view import show_text

        message, block = self._view.page.current_message, self._view.page.block
        app = cast("AppBase", self._view.app)
        if message is None:
            return
        record = message.original
        if record is None:
            app.show_message("There is no stored record of this block.")
            return
        if isinstance(block, ToolCall):
            calls = record.get("toolCalls")
            for call in calls if isinstance(calls, list) else ():
                if isinstance(call, dict) and call.get("id") == block.id:
                    show_text(app, f"{block.name}, as stored", indented(call), what="the tool call")
                    return
        show_text(app, f"Record {message.id}", indented(record), what="the record")

    def action_copy_block(self) -> None:
        """Copy the block under the cursor, or a piece of code in it."""
        page = self._view.page
        block = page.block
        if block is None:
            return
        fences = page.sheet.drawn(page.cursor.message).fences
        copies = copies_of_block(block, [f for f in fences if f.block == page.cursor.block])
        if len(copies) == 1:
            self._copy(copies[0])
        else:
            self._view.app.push_screen(CopyScreen(copies), self._copy)

    def action_copy_message(self) -> None:
        spoken = self._view.page.current_message
        if spoken is not None:
            self._copy(copy_of_message(spoken))

    def _copy(self, copy: Copy | None) -> None:
        if copy is not None:
            self._view.post_message(CopyRequested(copy.text, copy.what))


def _prompt_words(prompt: Outline, look: Look) -> tuple[str, str]:
    excerpt = ellipsis(clean_line(prompt.excerpt), PROMPT_ROOM, mark=look.glyphs.ellipsis)
    when = "" if prompt.time is None else format_time(prompt.time, look)
    return excerpt or "(no words)", when


# --- copying ------------------------------------------------------------------------------------


class Copy(NamedTuple):
    """Sanitized text for the clipboard, and a name for it."""

    text: str
    what: str


def copies_of_block(block: Block, fences: Sequence[Fence]) -> tuple[Copy, ...]:
    """Return what can be copied from a block, most likely choice first.

    For text that contains code, these are the pieces of code and, if there are several, the whole
    text. For a shell command with output, they are the output and the command; if the command
    failed, it comes first, because the user may want to run it again.
    """
    if isinstance(block, ToolCall) and kind_of(block.name) is ToolKind.SHELL and _output(block):
        both = (copy_of_block(block), _copy(visible(target(block)), "command"))
        return both[::-1] if block.failed else both
    if not isinstance(block, Text) or not fences:
        return (copy_of_block(block),)
    codes = tuple(_code(fence) for fence in fences)
    return codes if len(codes) == 1 else (*codes, copy_of_block(block))


def copy_of_block(block: Block) -> Copy:
    """Return the text to copy for a block.

    For a tool call, this is its output or, if there is none, its request.
    """
    match block:
        case ToolCall():
            output = _output(block)
            if output:
                diff = isinstance(block.display, DiffDisplay) and not block.error
                return _copy(output, f"{'diff' if diff else 'output'} of {block.name}")
            return _copy(visible(target(block)), f"call to {block.name}")
        case Image():
            return _copy(block.name or block.uri or block.mime_type, "file name")
        case Attachment():
            return _copy(block.text, "attachment")
        case Text() | Thought() | Notice():
            return _copy(block_text(block), type(block).__name__.lower())
        case _:
            assert_never(block)


def _code(fence: Fence) -> Copy:
    return _copy(fence.code, f"{fence.language} code" if fence.language else "code")


def copy_of_message(message: Message) -> Copy:
    """Return the text to copy for a message: all its blocks, separated by empty lines."""
    texts = (_text(block).strip("\n") for block in message.blocks)
    return _copy("\n\n".join(text for text in texts if text), "message")


def _text(block: Block) -> str:
    """Return a block's text, with control characters replaced by visible ones."""
    if isinstance(block, ToolCall):
        return "\n".join(filter(None, (visible(target(block)), _output(block))))
    return copy_of_block(block).text


def _output(call: ToolCall) -> str:
    cleaned = visible if isinstance(call.display, DiffDisplay) else clean
    return cleaned(output_text(call))


def _copy(text: str, what: str) -> Copy:
    text = clean(text)
    lines = text.count("\n") + (not text.endswith("\n"))
    return Copy(text, clean_line(what if lines == 1 else f"{what}, {lines} lines"))


def file_of(call: ToolCall) -> tuple[str, int | None] | None:
    """Return the path of a call's file, and the number of its first changed line.

    The number is None if it is unknown. Returns None if the call has no file.
    """
    if isinstance(call.display, DiffDisplay):
        line = first_line(call.display.diff) if has_line_numbers(call.display) else None
        return call.display.path or call.display.name, line
    path = asked_path(call.args)
    return (path, None) if path else None


class CopyScreen(DialogScreen[Copy | None]):
    """A dialog to choose what to copy; returns the chosen `Copy`, or None."""

    BINDINGS = bindings(Where.DIALOG)

    def __init__(self, copies: Sequence[Copy]) -> None:
        super().__init__()
        self._copies = copies

    def compose(self) -> ComposeResult:
        """Show the choices, each with the first line of its text."""
        with Dialog("Copy", "enter copy   esc close"):
            yield OptionList(*(Option(_row(copy)) for copy in self._copies))

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._copies[event.option_index])


def _row(copy: Copy) -> Content:
    first = ellipsis(clean_line(excerpt(copy.text)), FIRST)
    return Content.assemble(clean_line(copy.what), "  ", (first, "dim"))


# --- attachments --------------------------------------------------------------------------------


def open_one(app: AppBase, images: Sequence[Image]) -> None:
    """Open the only image, or the one the user chooses, in the desktop's viewer."""
    if len(images) == 1:
        start_worker(app, partial(_open, app, images[0]))
        return
    from gemtui.ui.kit.dialogs import Choice, ChooseScreen  # slow, so not imported earlier

    choices = [Choice(str(place), image_words(image)) for place, image in enumerate(images)]

    def chosen(place: str | None) -> None:
        if place is not None:
            start_worker(app, partial(_open, app, images[int(place)]))

    app.push_screen(ChooseScreen("Which attachment?", (), choices), chosen)


async def _open(app: AppBase, image: Image) -> None:
    """Open the content in a viewer; if its type isn't supported, show why not."""
    try:
        content = await asyncio.to_thread(image_bytes, image)
        if media_type(content) is None:
            raise NoViewer("Not opened, because it is not an image, sound, video or PDF")
        await asyncio.to_thread(open_content, file_name_of(image), content)
    except (MediaDamaged, NoViewer, OSError) as error:
        app.show_message(f"{message_of(error)}.", problem=True)


class NoViewer(GemtuiError):
    """Raised if no program can show a file, or the program has failed."""


def opener(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> str:
    """Return the path of the system's program for opening files.

    Raises NoViewer if there is no such program or no display. Without a display, `xdg-open` could
    start a program in this terminal.
    """
    mac = platform == "darwin"
    remote = "SSH_CONNECTION" in environ
    if remote if mac else not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")):
        raise NoViewer(f"There is no display to show it on{' over ssh' if remote else ''}")
    name = "open" if mac else "xdg-open"
    program = find_program(name, environ)
    if program is None:
        raise NoViewer(f"{name}, which opens files, was not found on PATH")
    return program


def open_content(name: str, content: bytes) -> None:
    """Write a file to a private folder and open it; the folder is deleted on exit.

    `name`: a safe file name with the right suffix for `content`. Waits up to three seconds for the
    opener to fail. Raises NoViewer and OSError.
    """
    program = opener()
    path = Path(tempfile.mkdtemp(dir=_folder().name)) / name
    write_new(path, content)
    nothing = subprocess.DEVNULL
    started = IndependentProcess(
        [program, str(path)],
        stdin=nothing,
        stdout=nothing,
        stderr=nothing,
        cwd=FOLDER,
        **DETACHED,
    )
    try:
        code = started.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        return
    if code:
        raise NoViewer(f"{Path(program).name} could not open it (exit code {code})")


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="gemtui-", ignore_cleanup_errors=True)
