"""The result of rendering a message."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from rich.style import Style
from textual.strip import Strip

from gemtui.text import Clean


class DrawnBlock(Struct, frozen=True, kw_only=True):
    """The lines of a rendered message that show one block.

    They are the lines from `start` to `end` (exclusive). `block`: the block's index in the message,
    or None for the head line. `foldable`: whether folding changes what is shown. `opens`: whether
    it is a subagent's call, whose session can be opened. `media`: whether an image or other binary
    content is stored in it.
    """

    block: int | None
    start: int
    end: int
    foldable: bool = False
    folded: bool = False
    opens: bool = False
    media: bool = False


class Fence(Struct, frozen=True, kw_only=True):
    """A piece of code in a rendered message, which can be copied.

    `start`, `end`: its lines, `end` excluded. `code`: the complete code, even if some of its lines
    aren't shown.
    """

    block: int
    start: int
    end: int
    code: Clean
    language: Clean


class Drawn(Struct, frozen=True, kw_only=True):
    """A rendered message: lines that fit the width, without trailing spaces.

    `strips`: the lines; the last one is empty, to separate the message from the next one. `parts`:
    which of the lines show which block. `fences`: the code in the message. The other fields have
    one item per line and are used for selecting text. `margins`: the number of cells at the left
    that belong to the frame (bar, border or line number) and not to the text. `joints`: for a line
    that continues the wrapped line above it, the text to put between the two, which is "" or a
    space; None for all other lines. `grounds`: the background of the rest of the line, up to the
    frame at its right; None for the usual one.
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
