"""A checkbox."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Checkbox

from gemtui.text import Clean


class Tick(Checkbox):
    """A checkbox that shows its state by a character, not only by colour."""

    BUTTON_LEFT = "["
    BUTTON_RIGHT = "]"

    def __init__(self, words: Clean, ticked: bool = False, *, id: str) -> None:
        super().__init__(Content(words), ticked, id=id, compact=True)

    @property
    def _button(self) -> Content:
        return Content(f"[{'x' if self.value else ' '}]")
