"""What is searched of a session: a document for each block of its messages.

The text of a document is `block_text` of the block, so that what is found can also be found, and
seen, in the open transcript.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from gemtui.errors import NotASession, SessionTooLarge
from gemtui.search.words import parts
from gemtui.transcript.display_model import DiffDisplay
from gemtui.transcript.model import (
    Attachment,
    Author,
    Block,
    Dropped,
    Image,
    Message,
    Notice,
    Text,
    Thought,
    ToolCall,
)
from gemtui.transcript.search import block_text
from gemtui.transcript.tools import asked_path, kind_of

if TYPE_CHECKING:
    from gemtui.sessions.records import SessionLog

UNREADABLE = (NotASession, SessionTooLarge, OSError, RecursionError, MemoryError)
"""Errors of a file that is no session, or can't be read."""


_BLOCKS = 10
"""Bits of an order that number the blocks of a message."""


class DocumentKind(IntEnum):
    """Who says a document; its number is what the index holds."""

    USER = 0
    MODEL = 1
    THOUGHT = 2
    TOOL = 3
    NOTICE = 4
    """The CLI itself: "Request cancelled."."""

    @property
    def word(self) -> str:
        """As JSON and people name it."""
        return self.name.lower()


class SearchDocument(Struct, frozen=True, kw_only=True):
    """One block of a message.

    `message`, `block`: the message's id in the transcript and the block's index in it. `order`:
    greater than that of the documents before it in the session. `time`: of
    the message, or when the tool ended. `paths`: files that a tool call names. `tool`: its name.
    `parts`: those of the names in the text. `failed`: the call, or the prompt. `dropped`: it is no
    longer part of the conversation. `line`: offset and length of the line that holds all of it;
    None = several do.
    """

    message: str
    block: int
    order: int
    kind: DocumentKind
    text: str
    time: datetime | None = None
    tool: str = ""
    paths: tuple[str, ...] = ()
    parts: str = ""
    failed: bool = False
    dropped: bool = False
    line: tuple[int, int] | None = None

    @property
    def tool_words(self) -> str:
        """The tool's name and its kind, by both of which it is looked for."""
        return f"{self.tool} {kind_of(self.tool).value}" if self.tool else ""


class FileDocuments(NamedTuple):
    """What the index takes of a file; `session`: that in it, as `file_list.session_of`."""

    session: str = ""
    documents: Iterable[SearchDocument] = ()


def documents_of(
    log: SessionLog, *, start: int = 0, stop: int | None = None
) -> Iterator[SearchDocument]:
    """Yield the documents of a session as far as it was read, dropped messages included.

    `start`, `stop`: of these messages alone, as `placed_messages` counts them.
    """
    from gemtui.sessions.load import placed_messages

    placed = placed_messages(log, start=start, stop=stop)
    for place, (message, slot) in enumerate(placed, start):
        line = None if slot is None else (slot.offset, slot.length)
        for number, block in enumerate(message.blocks):
            if text := block_text(block):
                order = (place << _BLOCKS) + min(number, (1 << _BLOCKS) - 1)
                yield _document(message, number, order, block, text, line)


def _document(
    message: Message, number: int, order: int, block: Block, text: str, line: tuple[int, int] | None
) -> SearchDocument:
    call = block if isinstance(block, ToolCall) else None
    return SearchDocument(
        message=message.id,
        block=number,
        order=order,
        kind=_kind(block, message.author),
        text=text,
        parts=parts(text),
        time=(call.time if call else None) or message.time,
        tool=call.name if call else "",
        paths=_paths(block),
        failed=call.failed if call else message.dropped is Dropped.FAILED_PROMPT,
        dropped=message.dropped is not None,
        line=line,
    )


def _kind(block: Block, author: Author) -> DocumentKind:
    match block:
        case ToolCall():
            return DocumentKind.TOOL
        case Thought():
            return DocumentKind.THOUGHT
        case Notice():
            return DocumentKind.NOTICE
        case Text() | Image() | Attachment():
            return DocumentKind.MODEL if author is Author.MODEL else DocumentKind.USER


def _paths(block: Block) -> tuple[str, ...]:
    """The files that a block is about: read, written, or put behind a prompt."""
    match block:
        case ToolCall():
            shown = block.display.path if isinstance(block.display, DiffDisplay) else ""
            several = block.args.get("paths")
            named = several if isinstance(several, list) else []
            found = (shown or asked_path(block.args), *named)
            return tuple(path for path in found if path and isinstance(path, str))
        case Attachment():
            return (block.name,)
        case Image() if block.name:
            return (block.name,)
        case _:
            return ()
