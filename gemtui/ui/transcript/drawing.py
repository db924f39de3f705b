"""The result of rendering a message."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from rich.style import Style
from textual.strip import Strip

from gemtui.text import Clean


class DrawnBlock(Struct, frozen=True, kw_only=True):
    """The lines from `start` to `end` (exclusive) of a rendered message that show one block.

    `block`: the block's index in the message; None for the message's head line. `foldable`: whether
    folding changes what is shown. `opens`: whether the block opens another session. `media`:
    whether an image or other binary content is stored in it.
    """

    block: int | None
    start: int
    end: int
    foldable: bool = False
    folded: bool = False
    opens: bool = False
    media: bool = False


class Fence(Struct, frozen=True, kw_only=True):
    """A piece of code in the lines from `start` to `end` (exclusive), for copying the code.

    `code`: the complete code, even if some of its lines are not shown.
    """

    block: int
    start: int
    end: int
    code: Clean
    language: Clean


class Drawn(Struct, frozen=True, kw_only=True):
    """A message as lines, none wider than the look's width, without trailing spaces.

    The last line is empty, to separate the message from the next one. Three fields have an item for
    each line, for selections. `margins`: the number of cells on the left that belong to the frame
    (bar, border, or line number) instead of the content. `joints`: the text that joins the line to
    the line above if both are part of the same line of text (an empty string within a word or a
    line of code, a space between words), or None if it is a line of its own. `grounds`: the
    background of the rest of the line, up to the frame on its right.
    """

    strips: Sequence[Strip]
    parts: tuple[DrawnBlock, ...]
    margins: tuple[int, ...]
    joints: tuple[str | None, ...]
    fences: tuple[Fence, ...] = ()
    grounds: tuple[Style | None, ...]

    @property
    def height(self) -> int:
        """The number of lines, including the empty one at the end."""
        return len(self.strips)
