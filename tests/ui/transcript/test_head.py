"""A turn: its head line, the tokens at its end, and what stands between its messages."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from gemtui.transcript.model import (
    Author,
    Block,
    Dropped,
    Message,
    Text,
    Thought,
    Transcript,
    outline,
)
from gemtui.transcript.usage import Usage
from gemtui.ui.draw.formats import format_time, short_count
from gemtui.ui.draw.theme import Role
from gemtui.ui.transcript.message import draw_message, estimate, turn_of
from tests.rows import each_row
from tests.ui.transcript.samples import AT, called, look, said

USAGE = Usage(input=1700, output=120, cached=900, thoughts=80, tool=0, total=1900)


def head(message: Message, width: int = 74) -> str:
    return draw_message(message, look(width)).strips[0].text


def end(message: Message, width: int = 74) -> str:
    return draw_message(message, look(width)).strips[-1].text


def test_today_needs_no_date() -> None:
    assert head(said(author=Author.USER, time=AT)) == "▌ You  12:04"
    assert head(said(author=Author.USER, time=AT - timedelta(days=1))) == "▌ You  yesterday 12:04"
    assert head(said(author=Author.SYSTEM)) == "▌ Gemini CLI"


def test_model_and_tokens_stand_at_the_end_and_drop_out_one_by_one() -> None:
    message = said(time=AT, model="gemini-2.5-pro", usage=USAGE)
    assert head(message) == "▌ Gemini  12:04"
    wide = end(message)
    assert wide.endswith("   2.5-pro  in 1.7k · out 120 · thoughts 80  1.9k tokens")
    assert len(wide) == 74
    assert end(message, 50).endswith("   2.5-pro  1.9k tokens")
    assert end(message, 15).endswith("   1.9k tokens")
    assert end(message, 10).endswith("   2.5-pro")
    assert end(message, 6) == ""


def test_a_turn_has_one_head_line_and_the_tokens_of_all_its_answers() -> None:
    call = called("read_file", args={"file_path": "a.py"})
    talk = Transcript.of(
        [
            replace(said(Text(text="hi"), author=Author.USER), prompt=True),
            said(Thought(subject="s", description=""), call, usage=USAGE, model="gemini-a"),
            said(call, usage=USAGE, model="gemini-b"),
            said(Text(text="done"), usage=USAGE, model="gemini-b"),
            replace(said(Text(text="thanks"), author=Author.USER), prompt=True),
        ]
    )
    drawings = [
        draw_message(message, look(60), turn=turn_of(talk.outlines, index))
        for index, message in enumerate(talk)
    ]
    assert [strip.text.strip() for drawing in drawings for strip in drawing.strips] == [
        "▌ You",
        "▌ hi",
        "",
        "▌ ▸ thought: s",
        "✓ read_file  a.py",
        "✓ read_file  a.py",
        "",
        "▌ done",
        "a, b  in 5.1k · out 360 · thoughts 240  5.7k tokens",
        "▌ You",
        "▌ thanks",
        "",
    ]


def test_a_message_of_a_turn_that_shows_nothing_has_a_head_line_for_the_cursor() -> None:
    talk = Transcript.of([said(Text(text="a")), said(Text(text=" ")), said()])
    for index, message in enumerate(talk):
        drawing = draw_message(message, look(60), turn=turn_of(talk.outlines, index))
        assert drawing.parts[0].start < drawing.parts[0].end


def test_an_answer_of_which_only_counters_were_stored_says_that_it_is_empty() -> None:
    def shown(record: dict[str, object], *blocks: Block) -> list[str]:
        message = replace(said(*blocks, usage=USAGE), original=record)
        return [strip.text.rstrip() for strip in draw_message(message, look(74)).strips[1:-1]]

    assert shown({}) == ["▌ (empty answer)"]
    assert shown({"toolCalls": [{}]}) == [], "its calls stand elsewhere"
    assert shown({}, Thought(subject="s", description="")) == ["▌ ▸ thought: s"]


def test_counters_that_do_not_add_up_are_marked_and_shown_as_they_are() -> None:
    wrong = Usage(input=10, output=5, thoughts=0, tool=0, total=99)
    assert "! tokens don't add up  99 tokens" in end(said(usage=wrong))


def test_unknown_is_not_zero() -> None:
    assert end(said(usage=Usage(output=7))).endswith(
        "in unknown · out 7 · thoughts unknown  tokens unknown"
    )
    assert end(said(usage=Usage())) == ""


@pytest.mark.parametrize(
    ("why", "word"),
    [
        (Dropped.REWOUND, "rewound"),
        (Dropped.FAILED_PROMPT, "failed prompt"),
        (Dropped.BURIED, "replaced"),
    ],
)
def test_what_is_no_longer_part_of_it_is_labelled_and_without_colours(
    why: Dropped, word: str
) -> None:
    drawing = draw_message(said(Text(text="**a** `b`"), dropped=why), look(74))
    assert word in drawing.strips[0].text
    muted = look(74)[Role.MUTED].color
    colors = {segment.style.color for strip in drawing.strips for segment in strip if segment.style}
    assert colors == {muted}


@each_row(
    ("number", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.0k"),
        (1949, "1.9k"),
        (18_240, "18.2k"),
        (99_960, "100k"),
        (999_499, "999k"),
        (999_600, "1.0M"),
        (1_234_567, "1.2M"),
        (250_000_000, "250M"),
    ],
)
def test_counters_are_short(number: int, text: str) -> None:
    assert short_count(number) == text


def test_estimates_grow_with_what_is_there() -> None:
    short_one = outline(said(Text(text="ok")))
    long_one = outline(said(Text(text="word " * 4000)))
    assert estimate(short_one, 80) == 2
    real = draw_message(said(Text(text="word " * 4000)), look(80)).height
    assert 0.7 * real < estimate(long_one, 80) < 1.3 * real


@pytest.mark.parametrize(
    ("ago", "shown"),
    [
        (timedelta(), "12:"),
        (timedelta(days=1), "yesterday 12:"),
        (timedelta(days=2), "2026-11-19 12:"),
    ],
)
def test_a_day_is_named_where_it_is_not_today(ago: timedelta, shown: str) -> None:
    assert shown in format_time(AT - ago, look(74))
