"""The result of drawing a message."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from rich.style import Style
from textual.strip import Strip

from gemtui.text import Clean


class DrawnBlock(Struct, frozen=True, kw_only=True):
    """The lines `start` up to `end` (not included) of a drawing that show one block.

    `block`: its index in the message, None for the message's head line. `foldable`: folding changes
    the drawing. `opens`: it opens another session. `media`: an image or similar is stored in it.
    """

    block: int | None
    start: int
    end: int
    foldable: bool = False
    folded: bool = False
    opens: bool = False
    media: bool = False


class Fence(Struct, frozen=True, kw_only=True):
    """A piece of code in the lines `start` up to `end` (not included), for copying it.

    `code` is complete even if the drawing leaves lines out.
    """

    block: int
    start: int
    end: int
    code: Clean
    language: Clean


class Drawn(Struct, frozen=True, kw_only=True):
    """A message as lines, none wider than the look's width, without trailing blanks.

    The last line is empty, to separate the next message. For selections there is, for each line: in
    `margins` the number of cells at its left that are frame (bar, border, line number) and not
    content; in `joints` the text that joins it to the line above if both are one line of the text
    ("" for a cut word or line of code, " " for wrapped words), None if it is a line of its own. The
    background of the rest of a line, up to the frame at its right, is in `grounds`.
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
