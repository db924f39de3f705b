"""A session's searchable documents: one for each block of its messages.

A document's text is the block's `block_text`, so that every hit can also be found, and seen, in the
open transcript.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from gemtui.search.words import parts, symbols
from gemtui.sessions.catalog.query import tool_words
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
from gemtui.transcript.tools import named_file, named_paths

if TYPE_CHECKING:
    from gemtui.sessions.read.session_log import SessionLog

_BLOCKS = 10
"""Number of low bits in `SearchDocument.order` that hold the block's index."""


class DocumentKind(IntEnum):
    """The authors of documents; a document is one block of a message.

    The index stores the numbers of the members.
    """

    USER = 0
    MODEL = 1
    THOUGHT = 2
    TOOL = 3
    NOTICE = 4
    """A notice from Gemini CLI itself, such as "Request cancelled."."""

    @property
    def word(self) -> str:
        """The kind's name, for JSON and for display."""
        return self.name.lower()


class SearchDocument(Struct, frozen=True, kw_only=True, array_like=True):
    """One block of a message, prepared for the index.

    * `message`: the message's id in the transcript. `block`: the block's index in the message.
    * `order`: a number greater than that of any earlier document in the session.
    * `time`: when the message was written, or when the tool ended.
    * `tool`: the tool's name. `paths`: the files that the tool call names.
    * `parts`: the parts of compound names in the text.
    * `symbols`: the pieces of symbols in the text.
    * `failed`: whether the call or prompt failed.
    * `dropped`: whether the message is no longer part of the conversation.
    * `line`: offset and length, in the session's file, of the line that contains the whole
      document; None if the document is spread over several lines.
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
    symbols: str = ""
    failed: bool = False
    dropped: bool = False
    line: tuple[int, int] | None = None

    @property
    def tool_words(self) -> str:
        """The text in which `tool:` searches; "" if this is no tool call."""
        return tool_words(self.tool) if self.tool else ""


class FileDocuments(NamedTuple):
    """A file's indexable contents.

    `session`: the key of its session, as returned by `file_list.session_of`.
    """

    session: str = ""
    documents: Iterable[SearchDocument] = ()


def documents_of(
    log: SessionLog, *, start: int = 0, stop: int | None = None
) -> Iterator[SearchDocument]:
    """Yield the documents of the part of a session that `log` has read so far.

    Dropped messages are included. `start`, `stop`: yield only the documents of the messages with
    these indexes, counted as in `placed_messages`.
    """
    from gemtui.sessions.read.conversation import placed_messages

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
        symbols=" ".join(symbols(text)),
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
    """Return the files that a block reads, writes, or attaches to a prompt."""
    match block:
        case ToolCall():
            return named_paths(block.args, named_file(block, str))
        case Attachment():
            return (block.name,)
        case Image() if block.name:
            return (block.name,)
        case _:
            return ()
