"""ASCII forms of what Textual draws itself and no style can change."""

from __future__ import annotations

from typing import ClassVar

from textual.scrollbar import ScrollBar, ScrollBarRender


class PlainBar(ScrollBarRender):
    """A scroll bar of whole cells in two colours, without block characters at its ends."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "] * 8
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "] * 8


def draw_plainly() -> None:
    """From now on every scroll bar of this process is plain."""
    ScrollBar.renderer = PlainBar
