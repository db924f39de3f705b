"""What the reader folded and unfolded, block by block and all at once."""

from __future__ import annotations

from gemtui.transcript.model import Message, Thought


class Folds:
    """The reader's choices; what they did not choose is folded in its own way.

    `open_thoughts`: thoughts are unfolded at first.
    """

    def __init__(self, *, open_thoughts: bool) -> None:
        self.open_thoughts = open_thoughts
        self.all: bool | None = None
        self._choices: dict[str, dict[int, bool]] = {}

    def of(self, message: Message, block: int) -> bool | None:
        """Whether a block is folded; None: in its own way."""
        choice = self._choices.get(message.id, {}).get(block, self.all)
        open = self.open_thoughts and isinstance(message.blocks[block], Thought)
        return False if choice is None and open else choice

    def choose(self, key: str, block: int, *, folded: bool) -> None:
        """One block of the message with this id."""
        self._choices.setdefault(key, {})[block] = folded

    def turn(self, *, folded: bool) -> bool | None:
        """All blocks: unfolded, then folded, then each in its own way again (None); says which.

        `folded`: whether something that is seen is folded now. Without it nothing would be seen to
        unfold, and all are folded first.
        """
        after = {None: not folded, False: True, True: None}
        self.all = after[self.all]
        self._choices.clear()
        return self.all
