"""The result of rendering a message."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from rich.style import Style
from textual.strip import Strip

from gemtui.text import Clean


class DrawnBlock(Struct, frozen=True, kw_only=True):
    """The lines `start` to `end` (exclusive) of a rendered message, showing one block.

    `block`: the block's index in the message, or None for the head line. `foldable`: whether
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
    """A piece of code that can be copied, in the lines `start` to `end` (exclusive).

    `code`: the complete code, even if some of its lines aren't shown.
    """

    block: int
    start: int
    end: int
    code: Clean
    language: Clean


class Drawn(Struct, frozen=True, kw_only=True):
    """A message as lines, none wider than the look's width, without trailing spaces.

    The last line is empty, to separate the message from the next one. For selecting text, three
    fields have one item per line. `margins`: the number of cells at the left that belong to the
    frame (bar, border or line number) and not to the content. `joints`: the text that joins the
    line to the one above if both show the same line of text: "" within a word or a line of code, or
    a space between words; None if the line stands alone. `grounds`: the background of the rest of
    the line, up to the frame at its right.
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
