"""Messages as lines of the screen: pure functions that need no app."""

from __future__ import annotations

from gemtui.ui.render.drawn import Drawn, Fence, Part
from gemtui.ui.render.message import default_folded, draw_message, estimate

__all__ = ["Drawn", "Fence", "Part", "default_folded", "draw_message", "estimate"]
