from __future__ import annotations

from html import unescape
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from gemtui.text import clean
from gemtui.transcript.call_text import output_text
from gemtui.transcript.export_html import to_html
from gemtui.transcript.export_text import to_text
from gemtui.transcript.model import AnsiSpan, Author, Message, ScreenDisplay, Transcript
from gemtui.transcript.result_rows import plain_text, result_rows
from gemtui.transcript.tool_output import BASIC, coloured
from gemtui.transcript.tools import tool_call
from gemtui.ui.transcript.card import draw_card
from tests.rows import each_row, table
from tests.sessions.summaries import summary
from tests.transcript.raw_calls import raw_call, reply
from tests.ui.talks import look

TABLES = table("transcript/colours.json")

RED = BASIC[1]


@each_row("text, spans", TABLES["colours_are_read"])
def test_colours_are_read(text: str, spans: list[dict[str, Any]]) -> None:
    screen = coloured(text)
    assert screen is not None
    assert [span for line in screen.lines for span in line] == convert(spans, list[AnsiSpan])


def test_a_colour_lasts_over_line_ends() -> None:
    screen = coloured("\x1b[31ma\r\nb\x1b[0m\n\nc\n")
    assert screen == ScreenDisplay(
        lines=(
            (AnsiSpan(text="a", fg=RED),),
            (AnsiSpan(text="b", fg=RED),),
            (),
            (AnsiSpan(text="c"),),
        )
    )


@given(st.text(alphabet="ab\n\x1b\x9b[];:0123456789mK\x07\r", max_size=60))
def test_any_text_keeps_what_is_no_colour(text: str) -> None:
    screen = coloured(text)
    if screen is not None:
        assert clean(plain_text(result_rows(screen))).strip("\n") == clean(text).strip("\n")


def test_text_without_colours_is_text() -> None:
    assert coloured("plain \x1b[2J") is None


def test_a_text_that_is_nothing_but_colours_is_text() -> None:
    assert coloured("\x1b[32ma\x1b[31mb" * 82_000) is None


SAID = "\x1b[32m4 passed\x1b[0m, \x1b[31m1 failed\x1b[0m \x1b]52;c;eA==\x07"


def test_a_card_and_a_page_show_the_colours_and_nothing_else_acts() -> None:
    call = tool_call(raw_call("run_shell_command", args={"command": "t"}, resultDisplay=SAID))
    lines, _ = draw_card(call, look(60), folded=True)
    styles = {piece.text.strip(): piece.style for line in lines for piece in line.pieces}
    assert styles["4 passed"].color is not None
    assert styles["4 passed"].color != styles["1 failed"].color
    message = Message(id="m", author=Author.MODEL, blocks=(call,))
    talk, about = Transcript.of([message]), summary("s1")
    page = "".join(to_html(talk, about))
    assert '<span class="c2">4 passed</span>, <span class="c1">1 failed</span>' in page
    for export in (page, "".join(to_text(talk, about))):
        assert "\x1b" not in export
        assert "␛]52;c;eA==␇" in unescape(export)


@each_row(
    "shown, response, text",
    [
        ("\x1b[32mok\x1b[0m", {"output": "row\n" * 50}, "row\n" * 50),
        ("\x1b[32mok\x1b[0m", {"output": "\x1b[32mok\x1b[0m"}, "ok"),
        ("\x1b[31mError: boom\x1b[0m", {"error": "Error: boom"}, "Error: boom"),
    ],
)
def test_colours_in_what_a_tool_shows_hide_nothing_that_it_gave(
    shown: str, response: dict[str, str], text: str
) -> None:
    raw = raw_call("mcp_server_tool", resultDisplay=shown, result=reply(**response))
    assert output_text(tool_call(raw)) == text


def test_what_a_tool_gave_has_its_colours() -> None:
    raw = raw_call("mcp_server_tool", resultDisplay=SAID, result=reply(output=SAID))
    assert isinstance(tool_call(raw).display, ScreenDisplay)


def test_a_long_coloured_output_shows_its_tail() -> None:
    said = "\n".join(f"\x1b[32mline {number}\x1b[0m" for number in range(5000))
    call = tool_call(raw_call("run_shell_command", args={"command": "t"}, resultDisplay=said))
    for folded in (True, False):
        lines, _ = draw_card(call, look(60), folded=folded)
        drawn = ["".join(piece.text for piece in line.pieces) for line in lines]
        assert any("line 4999" in line for line in drawn)
        assert any("not shown" in line or "+4,996 lines" in line for line in drawn)
