"""Where a cursor can be in a transcript, and what it can jump to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from gemtui.transcript.model import Block, Outline, ToolCall, Transcript

LAST = 1 << 30
"""As a block index: the last block, whatever its number."""


class Cursor(NamedTuple):
    """The block under the cursor; `block` None is the head line of a message without blocks."""

    message: int
    block: int | None


def order(cursor: Cursor) -> int:
    """Cursors in the order of the transcript, as a number."""
    return cursor.message * LAST + (-1 if cursor.block is None else cursor.block)


class Target(NamedTuple):
    """Something to jump to: messages and, in them, blocks (None: the first one).

    `at_top`: it comes to stand on the top row, wherever it was before.
    """

    message: Callable[[Outline], bool]
    block: Callable[[Block], bool] | None
    at_top: bool


PROMPT = Target(lambda outline: outline.prompt, None, at_top=True)
TOOL = Target(
    lambda outline: outline.calls > 0, lambda block: isinstance(block, ToolCall), at_top=False
)
FAILURE = Target(
    lambda outline: outline.calls > 0,
    lambda block: isinstance(block, ToolCall) and (block.status.failed or bool(block.exit_code)),
    at_top=False,
)
"""Also commands that ended with an exit code: they look failed."""


def next_target(transcript: Transcript, here: Cursor, target: Target, step: int) -> Cursor | None:
    """The next (`step` 1) or previous (-1) target as seen from a cursor, None if there is none.

    Reads the bodies of messages that may hold one: for a thread.
    """
    end = len(transcript) if step > 0 else -1
    for message in range(here.message, end, step):
        if target.message(transcript.outlines[message]):
            for cursor in _in_message(transcript, message, here, target, step):
                if (order(cursor) - order(here)) * step > 0:
                    return cursor
    return None


def _in_message(
    transcript: Transcript, message: int, here: Cursor, target: Target, step: int
) -> Iterator[Cursor]:
    if target.block is not None:
        blocks = list(enumerate(transcript.read(message).blocks))[::step]
        yield from (Cursor(message, number) for number, block in blocks if target.block(block))
    elif message != here.message:
        yield Cursor(message, None)


def place_of_call(transcript: Transcript, call: str) -> Cursor | None:
    """Where the tool call with this id stands, None if it is not there. Reads bodies, as above."""
    for message, outline in enumerate(transcript.outlines):
        if outline.calls:
            for block, each in enumerate(transcript.read(message).blocks):
                if isinstance(each, ToolCall) and each.id == call:
                    return Cursor(message, block)
    return None
