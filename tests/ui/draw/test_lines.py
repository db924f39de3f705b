"""Lines as strips."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rich.style import Style

from gemtui.ui.draw.lines import Line, Piece, Strips, plain, strip_of, wrap
from tests.hostile import ACTS, ATTACK


class Looked(list[Line]):
    """Lines, and which of them were looked at."""

    def __init__(self, lines: Iterator[Line]) -> None:
        super().__init__(lines)
        self.seen: list[int] = []

    def __getitem__(self, index: int) -> Line:  # type: ignore[override]
        self.seen.append(index)
        return super().__getitem__(index)


@pytest.fixture
def lines() -> Looked:
    return Looked(Line((Piece(f"line {number}", Style()),)) for number in range(1000))


def test_a_line_becomes_a_strip_when_it_is_looked_at_and_only_once(lines: Looked) -> None:
    strips = Strips(lines, 80)
    assert len(strips) == 1000
    assert strips[7] is strips[7]
    assert [strip.text for strip in strips[10:14:2]] == ["line 10", "line 12"]
    assert strips[-1].text == "line 999"
    assert lines.seen == [7, 10, 12, -1]


def test_strips_are_those_of_the_lines_and_as_many(lines: Looked) -> None:
    assert list(Strips(lines, 6)) == [strip_of(line, 6) for line in lines]
    with pytest.raises(IndexError):
        Strips(lines, 6)[1000]


def test_what_is_wrapped_twice_is_wrapped_alike_and_nobody_shares_the_list() -> None:
    pieces = (Piece("one two ", Style(bold=True)), Piece("three", Style()))
    first = wrap(pieces, 8)
    assert [plain(line.pieces) for line in first] == ["one two", "three"]
    first.clear()
    assert [plain(line.pieces) for line in wrap(pieces, 8)] == ["one two", "three"]
    assert [plain(line.pieces) for line in wrap(pieces, 4)] == ["one", "two", "thre", "e"]


def test_a_piece_cleans_what_it_is_made_of() -> None:
    piece = Piece(ATTACK, Style())
    assert "evil␛]52" in piece.text
    assert not ACTS.search(piece.text)
