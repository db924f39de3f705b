"""What holds for the drawing of any message."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from gemtui.text import clean
from gemtui.transcript.model import Message, Text, ToolCall, ToolStatus
from gemtui.ui.draw.theme import ASCII, UNICODE, Glyphs
from gemtui.ui.transcript.message import Drawn, draw_message
from tests.deep import some_of
from tests.hostile import ATTACK, CONTROLS
from tests.ui.transcript import anything
from tests.ui.transcript.samples import CARDS, called, drawn, look, messages, said

widths = st.integers(20, 200)
forms = st.sampled_from((UNICODE, ASCII))
folds = st.sampled_from((True, False, None))


@settings(max_examples=some_of(300), deadline=None)
@given(anything.messages, widths, forms, folds)
def test_any_message_is_drawn_within_its_width(
    message: Message, width: int, glyphs: Glyphs, folded: bool | None
) -> None:
    drawing = draw_message(message, look(width, glyphs), folded=lambda _: folded)
    assert max(strip.cell_length for strip in drawing.strips) <= width
    assert_sound(drawing, len(message.blocks))


@settings(max_examples=some_of(100), deadline=None)
@given(anything.text, widths)
def test_a_text_keeps_its_words(text: str, width: int) -> None:
    """Nothing of what a person typed is lost or doubled by wrapping and cleaning."""
    message = said(Text(text=text), author=messages()[0].author)
    drawing = draw_message(message, look(width))
    start = drawing.parts[0].end
    shown = "".join(strip.text[min(2, len(strip.text)) :] for strip in drawing.strips[start:-1])
    if "```" not in text and "~~~" not in text:
        assert squeezed(shown) == squeezed(clean(text))


def squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


@settings(max_examples=some_of(100), deadline=None)
@given(anything.calls, widths)
def test_folding_never_makes_a_card_longer(call: ToolCall, width: int) -> None:
    folded = drawn(call, width=width, folded=True)
    unfolded = drawn(call, width=width, folded=False)
    if folded.parts[1].foldable and call.display is None:
        assert folded.height <= unfolded.height


def test_nothing_of_an_attack_reaches_the_terminal() -> None:
    for call in CARDS:
        hostile = called(
            call.name + ATTACK,
            status=call.status,
            args={ATTACK: ATTACK, "file_path": ATTACK, "command": ATTACK},
            output=ATTACK,
            error=ATTACK,
        )
        for drawing in (drawn(hostile, folded=False), drawn(hostile), drawn(Text(text=ATTACK))):
            seen = "\n".join(strip.text for strip in drawing.strips)
            assert not CONTROLS.search(seen.encode())
            assert all(
                not segment.style.link for s in drawing.strips for segment in s if segment.style
            )


def test_markup_is_text() -> None:
    shown = drawn(Text(text="[/x] [@click=app.quit]boom[/] [red]r[/red]"))
    assert shown.strips[1].text == "▌ [/x] [@click=app.quit]boom[/] [red]r[/red]"
    assert not any(segment.style and segment.style.meta for segment in shown.strips[1])


def test_entities_of_controls_are_cleaned() -> None:
    shown = drawn(Text(text="a&#x202e;b&#155;c&#27;d [x](http://e/%1b%c2%9b31m)"))
    assert not CONTROLS.search(shown.strips[1].text.encode())


def assert_sound(drawing: Drawn, blocks: int) -> None:
    """Parts, margins and fences fit the lines; no line ends in a blank."""
    height = len(drawing.strips)
    assert len(drawing.margins) == len(drawing.joints) == drawing.height == height
    assert not any(strip.text.endswith(" ") for strip in drawing.strips)
    assert not any("\n" in strip.text or "\t" in strip.text for strip in drawing.strips)
    assert drawing.parts[0].block is None
    numbers = [part.block for part in drawing.parts if part.block is not None]
    assert numbers == sorted(set(numbers))
    assert all(number < blocks for number in numbers)
    ends = [0]
    for part in drawing.parts:
        assert ends[-1] <= part.start < part.end < height
        ends.append(part.end)
    for fence in drawing.fences:
        part = next(part for part in drawing.parts if part.block == fence.block)
        assert part.start <= fence.start < fence.end <= part.end


def test_a_title_that_is_cut_is_as_wide_as_it_may_be_whichever_unicode_a_width_is_from() -> None:
    for width in (40, 41):
        shown = drawn(
            called("odd", status=ToolStatus.QUEUED, args={"": "a" + "\U00018d80" * 60}), width=width
        )
        title = shown.strips[1]
        assert title.text.endswith("queued"), title
        assert title.cell_length == width
