"""Bars and shades."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gemtui.text import cells
from gemtui.ui.draw.theme import ASCII, UNICODE
from gemtui.ui.sessions.stats_screen import bar, shade

NUMBERS = st.floats(min_value=0, max_value=1e12)


@given(NUMBERS, NUMBERS, st.integers(1, 200), st.sampled_from([ASCII, UNICODE]))
def test_a_bar_fits_and_whatever_is_more_than_nothing_is_seen(
    value: float, most: float, width: int, glyphs: object
) -> None:
    drawn = bar(value, most, width, UNICODE if glyphs is UNICODE else ASCII)
    assert cells(drawn) <= width
    assert bool(drawn) == (value > 0 and most > 0)


def test_a_longer_bar_is_more() -> None:
    assert [bar(value, 8, 1, UNICODE) for value in (1, 4, 8)] == ["▏", "▌", "█"]
    assert bar(1, 2, 10, ASCII) == "#####"


def test_a_darker_shade_is_more() -> None:
    assert [shade(value, 4, UNICODE) for value in range(5)] == list(" ░▒▓█")
    assert [shade(value, 4, ASCII) for value in range(5)] == list(" .:*#")
