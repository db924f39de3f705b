"""A transcript's cursor, the places it can jump to, and which blocks are folded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from gemtui.transcript.model import Block, Message, Outline, Thought, ToolCall, Transcript

LAST = 1 << 30
"""The block index that means a message's last block."""


class Cursor(NamedTuple):
    """The block under the cursor.

    `block`: the block's index; None for the head line of a message that has no blocks.
    """

    message: int
    block: int | None


def cursor_order(cursor: Cursor) -> int:
    """Return a number by which cursors can be sorted in transcript order."""
    return cursor.message * LAST + (-1 if cursor.block is None else cursor.block)


class Target(NamedTuple):
    """A kind of place that the cursor can jump to, such as prompts or failed calls.

    `noun`: the name of such a place in messages to the user. `message`: returns whether a message
    may be or contain a target. `block`: returns whether a block is a target; None if the message
    itself is the target. `at_top`: whether to always scroll the target to the top row.
    """

    noun: str
    message: Callable[[Outline], bool]
    block: Callable[[Block], bool] | None
    at_top: bool


NEXT_PROMPT = Target("prompt", lambda outline: outline.prompt, None, at_top=True)
TOOL = Target(
    "tool call",
    lambda outline: outline.calls > 0,
    lambda block: isinstance(block, ToolCall),
    at_top=False,
)
FAILURE = Target(
    "failed call",
    lambda outline: outline.calls > 0,
    lambda block: isinstance(block, ToolCall) and block.failed,
    at_top=False,
)
"""Failed calls, including commands with a nonzero exit code."""
TARGETS = {"prompt": NEXT_PROMPT, "tool": TOOL, "failure": FAILURE}


def next_target(transcript: Transcript, here: Cursor, target: Target, step: int) -> Cursor | None:
    """Return the next (`step` 1) or previous (`step` -1) target from `here`, or None.

    Blocking: call this on a background thread, because message bodies are read.
    """
    for message in range(len(transcript))[here.message :: step]:
        if target.message(transcript.outlines[message]):
            for cursor in _in_message(transcript, message, here, target, step):
                if (cursor_order(cursor) - cursor_order(here)) * step > 0:
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
    """Return the cursor for a block of the message with this id.

    Returns None if there is no such message.
    """
    found = (index for index, outline in enumerate(transcript.outlines) if outline.id == id)
    message = next(found, None)
    return None if message is None else Cursor(message, block)


def place_of_call(transcript: Transcript, call: str) -> Cursor | None:
    """Return the cursor for a tool call, given its id or its subagent's session id.

    Returns None if there is no such call. Blocking: call this on a background thread, because
    message bodies are read.
    """
    for message, outline in enumerate(transcript.outlines):
        if outline.calls:
            for block, each in enumerate(transcript.read(message).blocks):
                if isinstance(each, ToolCall) and call in (each.id, each.agent_id):
                    return Cursor(message, block)
    return None


class Folds:
    """Records which blocks the user has folded or unfolded.

    All other blocks follow the default rules. `open_thoughts`: whether thoughts are unfolded by
    default.
    """

    def __init__(self, *, open_thoughts: bool) -> None:
        self.all: bool | None = None
        self._open: set[type[Block]] = {Thought} if open_thoughts else set()
        self._choices: dict[str, dict[int, bool]] = {}

    def of(self, message: Message, block: int) -> bool | None:
        """Return whether a block is folded, or None if the default rules apply."""
        choice = self._choices.get(message.id, {}).get(block, self.all)
        is_open = type(message.blocks[block]) in self._open
        return False if choice is None and is_open else choice

    def choose(self, key: str, block: int, *, folded: bool) -> None:
        """Fold or unfold one block of the message with id `key`."""
        self._choices.setdefault(key, {})[block] = folded

    def turn(self, *, folded: bool) -> bool | None:
        """Cycle to the next state: all unfolded, all folded, or default (None).

        Returns the new state: False, True or None. `folded`: whether any visible block is folded;
        if none is, the first state is all folded.
        """
        after = {None: not folded, False: True, True: None}
        self.all = after[self.all]
        self._choices.clear()
        return self.all

    def turn_kind(self, kind: type[Block]) -> bool:
        """Unfold all blocks of one kind, or apply the default rules to them again.

        Returns whether they are now unfolded.
        """
        self.all = None
        self._open ^= {kind}
        self._choices.clear()
        return kind in self._open
