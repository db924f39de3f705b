"""Fixes for errors of Textual that end the app; they apply to its own widgets, too."""

from __future__ import annotations

from textual.widgets import OptionList  # noqa: TID251 (its own class is what is mended)

_move_page = OptionList._move_page


def _move_page_if_there_is_one(self: OptionList, direction: int) -> None:
    """A list that a small terminal leaves no line of knows no lines, and so no pages."""
    if self.scrollable_content_region:
        _move_page(self, direction)  # type: ignore[arg-type]


def mend() -> None:
    """Mend Textual's classes; once is enough, and twice does no harm."""
    OptionList._move_page = _move_page_if_there_is_one  # type: ignore[method-assign]
