"""Copy parts of a message: a block, code within a block, or all of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, assert_never

from textual import on
from textual.app import ComposeResult
from textual.content import Content

from gemtui.calls.paths import asked_path
from gemtui.text import Clean, clean, clean_line, ellipsis, visible
from gemtui.transcript.call_text import output_text
from gemtui.transcript.model import (
    Attachment,
    Block,
    DiffDisplay,
    Image,
    Message,
    Notice,
    Text,
    Thought,
    ToolCall,
    excerpt,
)
from gemtui.transcript.search import block_text
from gemtui.transcript.tools import ToolKind, kind_of, target
from gemtui.ui.draw.lines import own
from gemtui.ui.kit.app_base import DialogScreen
from gemtui.ui.kit.clean_widgets import Dialog, Option, OptionList
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.transcript.drawing import Fence


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
            if output := _output(block):
                diff = isinstance(block.display, DiffDisplay) and not block.error
                return _copy(output, f"{'diff' if diff else 'output'} of {block.name}")
            return _copy(visible(target(block)), f"call to {block.name}")
        case Image():
            return _copy(block_text(block), "file name")
        case Text() | Thought() | Notice() | Attachment():
            return _copy(block_text(block), type(block).__name__.lower())
        case _:
            assert_never(block)


def _code(fence: Fence) -> Copy:
    return _copy(fence.code, f"{fence.language} code" if fence.language else "code")


def copy_of_message(message: Message) -> Copy:
    """Return the text to copy for a message: all its blocks, separated by empty lines."""
    texts = (_text(block).strip("\n") for block in message.blocks)
    return _copy("\n\n".join(text for text in texts if text), "message")


def _text(block: Block) -> Clean:
    """Return a block's text, with control characters replaced by visible ones."""
    if isinstance(block, ToolCall):
        return Clean("\n".join(filter(None, (visible(target(block)), _output(block)))))
    return clean(block_text(block))


def _output(call: ToolCall) -> Clean:
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
        return call.display.path or call.display.name, first_line(call.display.diff)
    path = asked_path(call.args)
    return (path, None) if path else None


def first_line(diff: str) -> int | None:
    """Return the number of a diff's first changed line, as counted in the new file.

    Returns None if the diff has no hunks.
    """
    new: int | None = None
    for line in diff.splitlines():
        if line.startswith("@@"):
            new = _hunk_start(line)
        elif new is not None and line.startswith(("+", "-")):
            return max(1, new)
        elif new is not None:
            new += 1
    return new


def _hunk_start(line: str) -> int | None:
    """Return the new file's line number in a hunk header: 5 in "@@ -3,4 +5,6 @@"."""
    start = next((word[1:] for word in line.split() if word.startswith("+")), "")
    number = start.partition(",")[0]
    return int(number) if number.isascii() and number.isdigit() else None


FIRST = 40
"""Maximum width in cells of the first line of what can be copied."""


class CopyScreen(DialogScreen[Copy | None]):
    """A dialog to choose what to copy; returns the chosen `Copy`, or None."""

    BINDINGS = bindings(Where.DIALOG)

    def __init__(self, copies: Sequence[Copy]) -> None:
        super().__init__()
        self._copies = copies

    def compose(self) -> ComposeResult:
        """Show the choices, each with the first line of its text."""
        with Dialog(own("Copy"), own("enter copy   esc close")):
            yield OptionList(*(Option(_row(copy)) for copy in self._copies))

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._copies[event.option_index])


def _row(copy: Copy) -> Content:
    first = ellipsis(clean_line(excerpt(copy.text)), FIRST)
    return Content.assemble(clean_line(copy.what), "  ", (first, "dim"))
