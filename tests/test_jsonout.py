from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from gemtui.jsonout import encode, encode_array, fields, indented
from gemtui.sessions.store.store import SessionKind
from gemtui.text import clean

TEXT = st.text(
    st.characters(exclude_categories=()) | st.sampled_from("\x00\x1b\x7f\x80\x9b\u2028\u2029\u202e")
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)
HARMFUL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


@given(VALUES)
def test_a_parser_gives_the_same_value_back(value: Any) -> None:
    assert json.loads(encode(value)) == value


@given(VALUES)
def test_nothing_that_a_terminal_could_obey_is_left(value: Any) -> None:
    assert not HARMFUL.search(encode(value).decode())


@given(st.lists(VALUES))
def test_an_array_in_pieces_is_the_array(values: list[Any]) -> None:
    assert json.loads(b"".join(encode_array(values, head=b'{"a":', tail=b"}"))) == {"a": values}


def test_other_text_is_not_escaped() -> None:
    text = "Été 日本語 \xa0 \U0001f600 </script> /"
    assert encode(text).decode() == f'"{text}"'


def test_control_c1_and_bidi_characters_are_escaped() -> None:
    assert encode("\x1b]52;\x7f\x9d\u202e\u2066\u061c\u2028\u2029") == (
        rb'"\u001b]52;\u007f\u009d\u202e\u2066\u061c\u2028\u2029"'
    )


def test_deep_values_pass() -> None:
    value: Any = "end"
    for _ in range(1020):
        value = [value]
    assert encode(value) == b"[" * 1020 + b'"end"' + b"]" * 1020


def test_what_is_indented_loses_nothing_at_the_door_for_foreign_text() -> None:
    value = {"a": ["\x1b[31m", "\x7f\x85\x9b", "\u061c\u200f\u202e\u2066", "\u2028\u2029", "ü漢"]}
    text = indented(value)
    assert clean(text) == text
    assert json.loads(text) == value
    assert "\\u202e" in text
    assert "\\u2028\\u2029" in text
    assert "ü漢" in text


def test_lone_surrogates_are_seen_when_indented() -> None:
    assert "\\ud800" in indented("a\ud800b")


class Sample(Struct):
    path: Path
    when: datetime
    kind: SessionKind = SessionKind.MAIN
    pair: tuple[Any, ...] = ()


def test_a_record_becomes_plain_values_under_the_names_that_are_asked_for() -> None:
    inner = Sample(Path("/in"), datetime(2026, 1, 2, 3, tzinfo=UTC))
    sample = Sample(Path("/out"), inner.when, pair=(inner, 1))
    plain = {"path": "/in", "when": "2026-01-02T03:00:00.000Z", "kind": "main", "pair": []}
    assert fields(sample, "pair", file="path") == {"pair": [plain, 1], "file": "/out"}
