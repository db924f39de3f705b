from __future__ import annotations

import re

import pytest

from gemtui.transcript.search import block_text, find, pattern
from gemtui.ui.transcript.layout import LayoutLine
from gemtui.ui.transcript.message import Drawn, draw_message
from gemtui.ui.transcript.search import MOST, HitMarker, TranscriptSearch, match_spans
from gemtui.ui.transcript.viewport import Viewport
from tests.ui.talks import Talk, answer, look, prompt, thought, tool
from tests.ui.transcript.samples import messages

TALK = Talk(
    prompt("p", "a parser, a Parser"),
    answer("a", thought("parser", "the parser"), "no such word", tool("t", "parser\nPARSER")),
    prompt("q", "last parser"),
)


def search(query: str, origin: tuple[int, int] = (0, 0)) -> TranscriptSearch:
    made = TranscriptSearch(query, origin)
    made.add(find(TALK.now(), query), done=True)
    return made


def drawing(talk: Talk, width: int = 60, *, folded: bool | None = None) -> Drawn:
    page = Viewport()
    page.resize(look(width), 50)
    page.show(talk.now(), fresh=True)
    page.folds.all = folded
    page.sheet.forget_all()
    return page.sheet.drawn(0)


def found(drawn: Drawn, query: str) -> list[str]:
    """What is marked in a drawing, the parts of a wrapped one with | between them."""
    wanted = pattern(query)
    return [
        "|".join(drawn.strips[spot.line].text[spot.start : spot.end] for spot in occurrence)
        for part in drawn.parts
        if part.block is not None
        for occurrence in match_spans(drawn, part, wanted)
    ]


def test_the_first_hit_at_the_cursor_or_below_is_current() -> None:
    assert str(search("parser").found) == "1 of 7"
    assert str(search("parser", (1, 1)).found) == "5 of 7"
    assert str(search("parser", (2, 1)).found) == "1 of 7"


def test_a_hit_before_the_cursor_is_chosen_only_when_all_are_known() -> None:
    made = TranscriptSearch("parser", (2, 0))
    hits = list(find(TALK.now(), "parser"))
    made.add(hits[:3], done=False)
    assert str(made.found) == "counting: 3 so far"
    made.add(hits[3:], done=True)
    assert str(made.found) == "7 of 7"


def test_steps_go_round_with_a_word() -> None:
    made = search("parser")
    here = (0, 0)
    numbers, words = [], []
    for step in (1, 1, 1, 1, 1, 1, 1, -1):
        hit = made.step(step, here)
        assert hit is not None
        here = hit.message, hit.block
        numbers.append(made.found.current)
        words.append(made.found.wrapped)
    assert numbers == [2, 3, 4, 5, 6, 7, 1, 7]
    assert words == ["", "", "", "", "", "", "start", "end"]


def test_a_step_starts_from_the_cursor_if_that_has_moved() -> None:
    made = search("parser")
    made.step(1, (2, 0))
    assert made.found.current == 7
    made.step(-1, (1, 2))
    assert made.found.current == 6


def test_nothing_found() -> None:
    made = search("nowhere")
    assert str(made.found) == "no match"
    assert made.step(1, (0, 0)) is None


def test_what_changed_is_forgotten_and_taken_again() -> None:
    made = search("parser")
    made.remove_from(1)
    assert (len(made.hits), made.done) == (2, False)
    made.add([hit for hit in find(TALK.now(), "parser") if hit.message >= 1], done=True)
    assert str(made.found) == "1 of 7"


def test_hits_are_bounded_and_say_so() -> None:
    made = TranscriptSearch("x", (0, 0))
    hit = next(find(TALK.now(), "parser"))
    made.add([hit] * (MOST + 5), done=True)
    assert str(made.found) == f"1 of {MOST}+"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("word", ["word", "Word"]),
        ("Word", ["Word"]),
        ("long  text", ["long text", "long|text"]),
        ("a.b", []),
        ("extraordinarily", ["extraordinarily"]),
        ("café", ["cafe\u0301"]),
        ("longtext", []),
        ("café2", []),
        ("", []),
    ],
)
def test_occurrences_in_a_drawing(query: str, expected: list[str]) -> None:
    talk = Talk(answer("a", "word long text Word extraordinarily long text cafe\u0301  \n2"))
    assert found(drawing(talk, 24), query) == expected


@pytest.mark.parametrize("width", [44, 160])
def test_what_a_search_finds_can_be_marked_once_the_block_is_open(width: int) -> None:
    left = set()
    for message in messages():
        drawn = draw_message(message, look(width), folded=lambda _: False)
        parts = {part.block: part for part in drawn.parts}
        for number, block in enumerate(message.blocks):
            for word in set(re.findall(r"[^\W_]+", block_text(block))):
                if not any(match_spans(drawn, parts[number], pattern(word))):
                    left.add(word)
    assert left <= LANGUAGES | NAMES_OF_SHOWN_ARGUMENTS


LANGUAGES = {"py", "python"}
"""Of code in Markdown: colours show them."""
NAMES_OF_SHOWN_ARGUMENTS = {"sql", "city"}
"""A card leaves them out where the whole argument is in its first line."""


def test_a_word_cut_in_two_is_found() -> None:
    talk = Talk(answer("a", "x" * 30 + "needle" + "y" * 30))
    assert found(drawing(talk, 36), "needle") == ["need|le"]


def test_the_current_hit_stands_out_and_a_folded_one_is_known_to_be_hidden() -> None:
    talk = Talk(answer("a", thought("one needle", "two\nneedle needle")))
    hits = list(find(talk.now(), "needle"))
    made = TranscriptSearch("needle", (0, 0))
    made.add(hits, done=True)
    closed, open_ = drawing(talk, folded=True), drawing(talk, folded=False)
    marker = HitMarker(made)
    assert marker.shown(0, closed)
    made.step(1, (0, 0))
    assert not marker.shown(0, closed)
    assert marker.shown(0, open_)
    now = marker.current(0, open_)
    assert now is not None
    place = LayoutLine(0, open_, now[0].line)
    styles = [mark.style for mark in marker.marks(place, look())]
    assert len(styles) == 2
    assert styles[0] != styles[1]
