"""The options of a run as the texts of a form, and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemtui.agent.options import AgentOptions, parse_seconds, seconds_text
from gemtui.errors import OptionError
from gemtui.ui.run.options_dialog import options_from_texts, texts_of
from tests.rows import each_row


def test_fields_that_nobody_touched_change_nothing(tmp_path: Path) -> None:
    odd = tmp_path / "a, b\x1b]0;x\x07"
    options = AgentOptions(
        cwd=tmp_path / " odd\n",
        include_directories=[odd],
        only_tools=["a,b", "c"],
        timeout=123.456789,
    )
    assert options_from_texts(texts_of(options), options) == options


def test_what_is_typed_is_taken(tmp_path: Path) -> None:
    base = AgentOptions(cwd=tmp_path, model="old", timeout=5, only_tools=["glob"])
    texts = texts_of(base) | {
        "model": " ",
        "cwd": str(tmp_path / "sub"),
        "include_directories": "../lib, /usr/share",
        "only_tools": "",
        "approved_tools": "glob,, read_file ,glob",
        "disallowed_tools": "web_fetch",
        "max_turns": "3",
        "timeout": "10m",
        "idle_timeout": "90",
    }
    assert options_from_texts(texts, base) == AgentOptions(
        cwd=tmp_path / "sub",
        include_directories=[tmp_path / "sub/../lib", "/usr/share"],
        approved_tools=["glob", "read_file"],
        disallowed_tools=["web_fetch"],
        max_turns=3,
        timeout=600,
        idle_timeout=90,
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [("max_turns", "many"), ("max_turns", "1.5"), ("timeout", "soon"), ("idle_timeout", "-1")],
)
def test_what_can_not_be_read_names_its_option(tmp_path: Path, name: str, text: str) -> None:
    base = AgentOptions(cwd=tmp_path)
    with pytest.raises(OptionError, match=text) as error:
        options_from_texts(texts_of(base) | {name: text}, base)
    assert error.value.option == name


@each_row(
    ("text", "value", "again"),
    [
        ("90", 90, "90s"),
        ("90s", 90, "90s"),
        ("10m", 600, "10m"),
        ("1.5h", 5400, "90m"),
        (" 2 h ", 7200, "2h"),
        (".5", 0.5, "0.5s"),
        ("0", 0, "0h"),
    ],
)
def test_time_limits(text: str, value: float, again: str) -> None:
    assert parse_seconds(text) == value
    assert seconds_text(value) == again
    assert parse_seconds(again) == value


@each_row("text", ["", "m", "1d", "1m30s", "nan", "inf", "1e3", "٣", "-5", "10 min"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(OptionError, match="is not a duration"):
        parse_seconds(text)
