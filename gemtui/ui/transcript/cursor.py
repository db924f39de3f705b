"""The positions of the cursor in a transcript, the targets that it jumps to, and folds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from gemtui.transcript.model import Block, Message, Outline, Thought, ToolCall, Transcript

LAST = 1 << 30
"""As a block index: the last block, whatever its number."""


class Cursor(NamedTuple):
    """The block under the cursor; `block` None is the head line of a message without blocks."""

    message: int
    block: int | None


def order(cursor: Cursor) -> int:
    """Return a number that orders cursors as in the transcript."""
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
    lambda block: isinstance(block, ToolCall) and block.failed,
    at_top=False,
)
"""Also commands that ended with an exit code: they look failed."""


def next_target(transcript: Transcript, here: Cursor, target: Target, step: int) -> Cursor | None:
    """The next (`step` 1) or previous (-1) target as seen from a cursor, None if there is none.

    Reads the bodies of messages that may hold one: for a thread.
    """
    for message in range(len(transcript))[here.message :: step]:
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


def place_of_message(transcript: Transcript, id: str, block: int) -> Cursor | None:
    """Where a message with this id has its block of this number; None if there is none."""
    found = (place for place, outline in enumerate(transcript.outlines) if outline.id == id)
    message = next(found, None)
    return None if message is None else Cursor(message, block)


def place_of_call(transcript: Transcript, call: str) -> Cursor | None:
    """Where the tool call with this id stands, or the one that called the subagent with this id.

    None if there is none. Reads bodies, as above.
    """
    for message, outline in enumerate(transcript.outlines):
        if outline.calls:
            for block, each in enumerate(transcript.read(message).blocks):
                if isinstance(each, ToolCall) and call in (each.id, each.agent_id):
                    return Cursor(message, block)
    return None


class Folds:
    """Which blocks the reader has folded or unfolded; others are folded by default rules.

    `open_thoughts`: thoughts are unfolded by default.
    """

    def __init__(self, *, open_thoughts: bool) -> None:
        self.open_thoughts = open_thoughts
        self.all: bool | None = None
        self._choices: dict[str, dict[int, bool]] = {}

    def of(self, message: Message, block: int) -> bool | None:
        """Whether a block is folded; None = by the default rules."""
        choice = self._choices.get(message.id, {}).get(block, self.all)
        open = self.open_thoughts and isinstance(message.blocks[block], Thought)
        return False if choice is None and open else choice

    def choose(self, key: str, block: int, *, folded: bool) -> None:
        """Fold or unfold one block of the message with the id `key`."""
        self._choices.setdefault(key, {})[block] = folded

    def turn(self, *, folded: bool) -> bool | None:
        """Unfold all blocks, then fold all, then return to the default rules (None); return which.

        `folded`: whether anything in view is folded; if nothing is, all are folded first.
        """
        after = {None: not folded, False: True, True: None}
        self.all = after[self.all]
        self._choices.clear()
        return self.all
