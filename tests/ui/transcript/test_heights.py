from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemtui.ui.transcript.layout import Heights

lists = st.lists(st.integers(0, 9), max_size=70)


def positions(heights: list[int]) -> list[tuple[int, int]]:
    """For every line the message on it and the line in that, the slow way."""
    return [(index, line) for index, height in enumerate(heights) for line in range(height)]


def check(heights: Heights, plain: list[int]) -> None:
    assert list(heights) == plain
    assert heights.total == sum(plain)
    tops = [0, *accumulate(plain)]
    assert [heights.top(index) for index in range(len(plain) + 1)] == tops
    assert [heights.find(line) for line in range(heights.total)] == positions(plain)


@given(lists, lists)
def test_built_at_once_or_in_two_steps(first: list[int], second: list[int]) -> None:
    heights = Heights(first)
    check(heights, first)
    heights.extend(second)
    check(heights, first + second)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=70), st.data())
def test_heights_that_change_keep_adding_up(plain: list[int], data: st.DataObject) -> None:
    heights = Heights(plain)
    for _ in range(5):
        index = data.draw(st.integers(0, len(plain) - 1))
        plain[index] = heights[index] = data.draw(st.integers(0, 20))
    check(heights, plain)


@given(lists, st.integers(0, 70), lists)
def test_cut_and_grown_again(plain: list[int], count: int, more: list[int]) -> None:
    heights = Heights(plain)
    heights.truncate(count)
    check(heights, plain[:count])
    heights.extend(more)
    check(heights, plain[:count] + more)


@pytest.mark.parametrize("line", [-1, 5])
def test_outside_is_an_error(line: int) -> None:
    with pytest.raises(IndexError):
        Heights([2, 3]).find(line)
