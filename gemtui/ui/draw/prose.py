"""Rendering of long text: as Markdown up to a limit, and unformatted beyond it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gemtui.text import BLANKS, Clean, clean
from gemtui.ui.draw.gutter_rows import note_line, text_rows
from gemtui.ui.draw.lines import BLANK, Line
from gemtui.ui.draw.theme import Look

CHARACTERS = 30_000
LINES = 1_000
MARKS = 2_000
"""The maximum number of brackets and bars in text that is parsed as Markdown.

Together with `CHARACTERS` and `LINES`, it limits parsing to about 50 ms.
"""

DrawText = Callable[[Clean, Look], Iterator[Line]]


def draw_prose(text: str, look: Look, draw: DrawText) -> Iterator[Line]:
    """Yield the lines of `text`: rendered by `draw` up to a limit, then unformatted.

    If the unformatted rest is very long as well, a note replaces its middle.
    """
    text = text.strip("\n").rstrip(BLANKS)
    cut = _bound(text)
    if cut:
        yield from draw(clean(text[:cut]), look)
    if rest := text[cut:]:
        if cut:
            yield from (BLANK, note_line("too long for Markdown; the rest is shown as plain text", look))
        yield from text_rows(rest, look, folded=False, prose=True).lines


def _bound(text: str) -> int:
    """Return how many characters of `text` to parse; 0 if it has too many brackets.

    If the text is too long, the cut is at the end of a paragraph, or else at the end of a line.
    """
    end = min(len(text), CHARACTERS)
    if text.count("[", 0, end) + text.count("|", 0, end) > MARKS:
        return 0
    for _ in range(text.count("\n", 0, end) - LINES):
        end = text.rindex("\n", 0, end)
    if end == len(text):
        return end
    return max(text.rfind("\n\n", 0, end), 0) or max(text.rfind("\n", 0, end), 0)
