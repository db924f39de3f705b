"""Search within one transcript."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, assert_never

from gemtui.text import either_form
from gemtui.transcript.call_text import call_text
from gemtui.transcript.media import image_text
from gemtui.transcript.model import (
    Attachment,
    Block,
    Image,
    Notice,
    Text,
    Thought,
    ToolCall,
    Transcript,
)


class TranscriptHit(NamedTuple):
    """A place where a query was found.

    `message`: the index of the message in the transcript. `block`: the index of the block in the
    message. `start` and `end`: the span of characters in the block's `block_text()`.
    """

    message: int
    block: int
    start: int
    end: int


_NOTHING = r"(?!)"


def find(
    transcript: Transcript,
    query: str | re.Pattern[str],
    *,
    cancelled: Callable[[], bool] = lambda: False,
) -> Iterator[TranscriptHit]:
    """Yield the places where a query is found, in the order of the transcript.

    A string is converted by `pattern`. Messages are read one after the other, until `cancelled()`
    returns True.
    """
    wanted = pattern(query) if isinstance(query, str) else query
    for index in range(len(transcript)):
        if cancelled():
            return
        for number, block in enumerate(transcript.read(index).blocks):
            for match in wanted.finditer(block_text(block)):
                yield TranscriptHit(index, number, *match.span())


def pattern(query: str) -> re.Pattern[str]:
    """Return a pattern for the query, which matches nothing if the query has no word.

    The search is case-sensitive only if the query has a capital letter. Whitespace in the query
    matches any whitespace, and accented letters match composed or not.
    """
    word_patterns = list(map(either_form, query.split()))
    exact = any(char.isupper() for char in query)
    return re.compile(r"\s+".join(word_patterns) or _NOTHING, 0 if exact else re.I)


def block_text(block: Block) -> str:
    """Return a block's searchable text, raw and untrusted: everything that a screen can show of it.

    For a tool call, this is `call_text`.
    """
    match block:
        case Text() | Notice():
            return block.text
        case Attachment():
            return f"{block.shown_name}\n{block.text}"
        case Thought():
            return "\n".join(filter(None, (block.subject, block.description)))
        case Image():
            return image_text(block)
        case ToolCall():
            return call_text(block)
        case _:
            assert_never(block)
