from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from gemtui.transcript import model
from gemtui.transcript.displays import display_of
from gemtui.transcript.model import AnsiSpan, ScreenDisplay, TextDisplay
from gemtui.transcript.result_rows import plain_text, result_rows
from tests.rows import each_row, table
from tests.transcript.raw_calls import json_values

TABLES = table("transcript/displays.json")

SHAPE_KEYS = ["fileDiff", "matches", "files", "isSubagentProgress", "todos", "recentActivity"]
SHAPE_KEYS += ["skipped", "text", "summary", "filePath", "result", "lineNumber"]


@given(json_values | st.dictionaries(st.sampled_from(SHAPE_KEYS), json_values | st.just(True)))
def test_no_value_makes_it_raise_and_all_can_be_said_in_text(value: Any) -> None:
    display = display_of(value)
    if display is not None:
        assert isinstance(plain_text(result_rows(display)), str)


@given(st.lists(st.lists(st.dictionaries(st.sampled_from(["text", "fg", "bold"]), json_values))))
def test_screens_of_any_shape(value: Any) -> None:
    display = display_of(value)
    if isinstance(display, ScreenDisplay) and display.lines:
        assert display.lines[-1]
        assert not any(line[-1].text.endswith(" ") for line in display.lines if line)


@each_row("value", [None, "", [], {}])
def test_nothing_to_show(value: Any) -> None:
    assert display_of(value) is None


@each_row("value, kind, fields", TABLES["each_shape"])
def test_each_shape(value: Any, kind: str, fields: dict[str, Any]) -> None:
    assert display_of(value) == convert(fields, getattr(model, kind))


def test_text_keeps_how_it_is_meant() -> None:
    assert display_of("*x*", markdown=True) == TextDisplay(text="*x*", markdown=True)


def test_screens_lose_their_padding() -> None:
    plain = {"bold": False, "inverse": False, "fg": "", "bg": ""}
    value = [
        [{"text": "green", "fg": "#008000", "bold": True}, {**plain, "text": " plain    "}],
        [{**plain, "text": "       "}, {**plain, "text": "  "}],
        [{**plain, "text": "end "}],
        [{**plain, "text": " ", "inverse": True}, {**plain, "text": "      "}],
        [],
    ]
    assert display_of(value) == ScreenDisplay(
        lines=(
            (AnsiSpan(text="green", fg="#008000", bold=True), AnsiSpan(text=" plain")),
            (),
            (AnsiSpan(text="end"),),
        )
    )


@each_row("text", TABLES["other_json_stays_text"])
def test_other_json_stays_text(text: str) -> None:
    assert display_of(text) == TextDisplay(text=text)
