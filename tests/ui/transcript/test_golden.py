"""What each kind of message looks like, as text: `GEMTUI_WRITE_GOLDEN=1` writes the files anew."""

from __future__ import annotations

import os
from pathlib import Path

from gemtui.ui.draw.theme import ASCII, UNICODE, Glyphs
from gemtui.ui.transcript.message import draw_message
from tests.rows import each_row
from tests.ui.transcript.samples import look, messages

PLACE = Path(__file__).parents[2] / "data" / "drawings"
NAMES = ("prompt", "answer", "cards", "info", "warning", "error", "rewound", "failed", "buried")
FORMS = {
    "wide": (96, UNICODE, None),
    "narrow": (44, UNICODE, None),
    "ascii": (60, ASCII, None),
    "unfolded": (80, UNICODE, False),
    "folded": (80, UNICODE, True),
}


@each_row("form", FORMS)
@each_row("number", range(len(NAMES)))
def test_a_message_looks_as_agreed(number: int, form: str) -> None:
    width, glyphs, folded = FORMS[form]
    text = _drawing(number, width, glyphs, folded)
    file = PLACE / f"{NAMES[number]}.{form}.txt"
    if os.environ.get("GEMTUI_WRITE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_every_message_has_its_name() -> None:
    assert len(messages()) == len(NAMES)


def test_no_ascii_drawing_holds_other_signs_of_ours() -> None:
    for file in PLACE.glob("*.ascii.txt"):
        text = file.read_text(encoding="utf-8")
        assert text.replace("漢字テスト", "").isascii()


def _drawing(number: int, width: int, glyphs: Glyphs, folded: bool | None) -> str:
    drawing = draw_message(messages()[number], look(width, glyphs), folded=lambda _: folded)
    return "\n".join(strip.text for strip in drawing.strips) + "\n"
