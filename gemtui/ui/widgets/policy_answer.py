"""What would happen to a call, and why: an explanation, drawn."""

from __future__ import annotations

from gemtui.policy.decide import Explanation
from gemtui.text import Clean
from gemtui.ui.render.lines import Line, Piece
from gemtui.ui.render.policy import draw_explanation
from gemtui.ui.theme import Look, Role
from gemtui.ui.widgets.drawing import Drawing


class PolicyAnswer(Drawing):
    """One explanation, or a line in its place."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(what="the explanation", id=id)
        self.shown: Explanation | None = None

    def answer(self, found: Explanation) -> None:
        """Show an explanation; of the same call it stays where it was scrolled to."""
        fresh = self.shown is None or self.shown.call != found.call
        self.shown = found
        self.show(lambda look: draw_explanation(found, look), fresh=fresh)

    def say(self, words: Clean) -> None:
        """Show words: there is nothing to explain."""
        self.shown = None

        def draw(look: Look) -> list[Line]:
            return [Line((Piece(words, look[Role.MUTED]),))]

        self.show(draw)
