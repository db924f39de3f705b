"""Bars and shades for numbers, one cell a sign."""

from __future__ import annotations

from gemtui.text import Clean
from gemtui.ui.draw.theme import Glyphs

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_SHADES = " ░▒▓█"
_PLAIN_SHADES = " .:*#"


def bar(value: float, most: float, width: int, glyphs: Glyphs) -> Clean:
    """Return a bar of at most `width` cells, as long as `value` is beside `most`.

    Whatever is more than nothing can be seen.
    """
    if value <= 0 or most <= 0:
        return Clean("")
    share = min(1.0, value / most) * width
    if glyphs.name == "ascii":
        return Clean("#" * max(1, round(share)))
    whole, eighths = divmod(max(1, round(share * 8)), 8)
    return Clean("█" * whole + _EIGHTHS[eighths].strip())


def shade(value: float, most: float, glyphs: Glyphs) -> Clean:
    """Return one cell, the darker the nearer `value` is to `most`; a blank for nothing."""
    if value <= 0 or most <= 0:
        return Clean(" ")
    shades = _PLAIN_SHADES if glyphs.name == "ascii" else _SHADES
    return Clean(shades[max(1, min(4, round(value / most * 4)))])
