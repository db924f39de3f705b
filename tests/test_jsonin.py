"""JSON with half surrogate pairs or broken UTF-8 is read, what else is wrong is refused."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from gemtui.jsonin import loads
from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.transcript.model import Text
from tests.rows import each_row


def test_half_a_surrogate_pair_becomes_the_replacement_character() -> None:
    assert loads(rb'{"a": ["cut \ud83d", "\uDE00"], "\ud83d": 1}') == {
        "a": ["cut \ufffd", "\ufffd"],
        "\ufffd": 1,
    }
    assert loads(rb'["\ud83d\ude00", "\ud83d"]') == ["😀", "\ufffd"]
    assert loads(rb'["\\ud83d"]') == ["\\ud83d"]


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'["a\xffb", "\xc3"]', ["a\ufffdb", "\ufffd"]),
        (b'{"k\xe2\x82": 1}', {"k\ufffd": 1}),
        (rb'["\ud83d", "' + b'\xf0\x9f\x98"]', ["\ufffd", "\ufffd"]),
        (rb'["\ud83d\ude00"' + b', "\xff"]', ["😀", "\ufffd"]),
    ],
)
def test_a_byte_that_is_no_utf8_becomes_the_replacement_character(
    data: bytes, value: object
) -> None:
    assert loads(data) == value


def test_integers_beyond_64_bits_become_floats() -> None:
    numbers = loads(b"[18446744073709551615, 18446744073709551616, -1]")
    assert numbers == [18446744073709551615, 18446744073709551616.0, -1]
    assert [type(each) for each in numbers] == [int, float, int]
    assert type(loads(rb'[18446744073709551616, "\ud83d"]')[0]) is float


@each_row("data", [b"{", b"", rb'{"a": "\ud83d"', b'["\\ud83d", \xff]', b"[1] [2]", b"\xff"])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        loads(data)


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(orjson.JSONDecodeError):
        loads(b"[" * 100_000 + rb'"\ud83d"' + b"]" * 100_000)


def test_a_session_whose_summary_was_cut_inside_an_emoji_is_read(tmp_path: Path) -> None:
    path = tmp_path / "session-2026-11-20T10-00-cafe0000.jsonl"
    path.write_bytes(
        rb'{"sessionId":"cafe0000","projectHash":"x","kind":"main","summary":"Party \ud83c"}'
        + b"\n"
        rb'{"id":"u","timestamp":"2026-11-20T10:00:00.000Z","type":"user",'
        rb'"content":[{"text":"Bring \ud83c"}]}' + b"\n"
    )
    with SessionLog(path) as log:
        log.refresh()
        assert log.problems == ()
        assert log.metadata["summary"] == "Party \ufffd"
        (message,) = transcript_of(log)
    assert message.blocks == (Text(text="Bring \ufffd"),)


def test_a_session_with_a_damaged_byte_loses_no_line(tmp_path: Path) -> None:
    path = tmp_path / "session-2026-11-20T10-00-cafe0000.jsonl"
    path.write_bytes(
        b'{"sessionId":"cafe0000","projectHash":"x","kind":"main"}\n'
        b'{"id":"u","timestamp":"2026-11-20T10:00:00.000Z","type":"user",'
        b'"content":[{"text":"Na\xefve"}]}\n'
    )
    with SessionLog(path) as log:
        log.refresh()
        assert log.problems == ()
        (message,) = transcript_of(log)
    assert message.blocks == (Text(text="Na\ufffdve"),)


@pytest.mark.parametrize("number", ["1e400", "-2E999", "7" * 400])
def test_numbers_that_are_infinite_in_javascript_are_read(number: str) -> None:
    value = loads(f'{{"a": [{number}, 2], "b": "see \\"{number}\\", {number}"}}'.encode())
    sign = -1 if number.startswith("-") else 1
    assert value == {"a": [sign * 1e308, 2], "b": f'see "{number}", {number}'}
