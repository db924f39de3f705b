"""A text drawn in its settled parts looks exactly as if it were drawn at once."""

from __future__ import annotations

from datetime import UTC, datetime

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from gemtui.text import Clean
from gemtui.ui.draw import markdown
from gemtui.ui.draw.markdown import chunks
from gemtui.ui.draw.theme import plain_look

LOOK = plain_look(40, now=datetime(2026, 1, 1, tzinfo=UTC))
PIECES = [
    "word",
    "**bold",
    "- item",
    "1. one",
    "```",
    "~~~",
    "````",
    "> quote",
    "    code",
    "  more",
]
PIECES += ["# Head", "| a | b |", "|---|---|", "<pre>", "</pre>", "<!--", "-->", "[x]: /url", "[x]"]
PIECES += ["---", "===", "* ", "```py", "`a`", "``` a ```", "- ```", "\t```", "> ```", "***"]
texts = st.lists(st.sampled_from([*PIECES, "", "", ""]), max_size=14).map("\n".join)


def at_once(text: str) -> list[str]:
    return ["".join(p.text for p in line.pieces) for line in markdown._drawn(Clean(text), LOOK)]


def in_parts(text: str) -> list[str]:
    lines = markdown.draw_markdown(Clean(text), LOOK)
    return ["".join(piece.text for piece in line.pieces) for line in lines]


@given(texts)
@example("- a\n\n  b\n\nc\n\n- d")
@example("```\na\n\nb\n```\n\nc")
@example("[x]\n\nd\n\n[x]: /u")
def test_parts_look_like_the_whole(text: str) -> None:
    text = text.strip("\n").rstrip()
    assert in_parts(text) == at_once(text)


@given(texts)
def test_parts_are_the_text_again(text: str) -> None:
    assert "\n\n".join(chunks(text)) == text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("one\n\ntwo\n\nthr", ["one", "two", "thr"]),
        ("- a\n\n- b\n\nend", ["- a\n\n- b", "end"]),
        ("```py\na\n\nb\n```\n\nend", ["```py\na\n\nb\n```", "end"]),
        ("one\n\n```py\na\n\nb", ["one", "```py\na\n\nb"]),
        ("one\n\n<pre>\n\ntwo", ["one", "<pre>\n\ntwo"]),
    ],
)
def test_what_has_settled(text: str, parts: list[str]) -> None:
    assert chunks(text) == parts
