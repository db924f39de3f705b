"""Files of one JSON value: legacy sessions and checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from gemtui.errors import SessionTooLarge
from gemtui.sessions.read import legacy_json
from gemtui.sessions.read.session_log import SessionLog
from tests.rows import each_row, table
from tests.sessions.facts import facts
from tests.sessions.logs import built, gemini, legacy, lines, opened, texts, user


def written(value: object, form: str) -> bytes:
    if form == "pretty":
        return orjson.dumps(value, option=orjson.OPT_INDENT_2)
    end = b"\r\n" if form == "line with an end" else b""
    return orjson.dumps(value) + end


@each_row("promise, row", table("session_files/objects.json", built).items())
def test_an_object_is_read_as_promised(tmp_path: Path, promise: str, row: dict[str, Any]) -> None:
    expected = dict(row)
    value, forms, name = (
        expected.pop("value"),
        expected.pop("forms"),
        expected.pop("name", "session-x.json"),
    )
    for form in forms:
        found = facts(opened(tmp_path / name, written(value, form)))
        assert {fact: found[fact] for fact in expected} == expected, (promise, form)


def test_a_legacy_object_on_one_line_that_grows_into_a_log(tmp_path: Path) -> None:
    path = tmp_path / "session-x.jsonl"
    log = opened(path, lines([legacy(user("u", "ask"))]))
    assert texts(log) == ["ask"]
    path.write_bytes(lines([legacy(user("u", "ask")), gemini("g", "told")]))
    log.refresh()
    assert texts(log) == ["ask", "told"]
    assert log.format == "jsonl"


def test_a_half_written_legacy_object_keeps_the_last_good_state(tmp_path: Path) -> None:
    path = tmp_path / "session-x.json"
    good = orjson.dumps(legacy(user("u", "ask"), gemini("g", "told")), option=orjson.OPT_INDENT_2)
    log = opened(path, good)
    path.write_bytes(good[: len(good) // 2])
    log.refresh()
    assert texts(log) == ["ask", "told"]
    assert log.torn
    more = legacy(user("u", "ask"), gemini("g", "told"), user("v", "again"))
    path.write_bytes(orjson.dumps(more, option=orjson.OPT_INDENT_2))
    kept = log.outlines[0]
    log.refresh()
    assert texts(log) == ["ask", "told", "again"]
    assert log.outlines[0] is kept
    assert not log.torn


def test_a_file_that_stays_half_written_never_shows_less_than_before(tmp_path: Path) -> None:
    path = tmp_path / "session-x.json"
    messages = [user(str(index), f"prompt {index}") for index in range(10)]
    good = orjson.dumps(legacy(*messages), option=orjson.OPT_INDENT_2)
    log = opened(path, good)
    for size in (800, 1300, 900):
        path.write_bytes(good[:size])
        log.refresh()
        assert len(texts(log)) == 10


def test_a_legacy_object_first_seen_half_written_shows_its_whole_messages(tmp_path: Path) -> None:
    path = tmp_path / "session-x.json"
    data = orjson.dumps(
        legacy(user("u", "ask"), gemini("g", "told"), user("v", "cut off here")),
        option=orjson.OPT_INDENT_2,
    )
    log = opened(path, data[: data.index(b"cut off")])
    assert texts(log) == ["ask", "told"]
    assert log.torn
    assert len(log.problems) == 1


def test_a_legacy_object_over_the_limit_is_refused_with_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "session-x.json"
    messages = [user(str(index), "x" * 5000) for index in range(300)]
    path.write_bytes(orjson.dumps(legacy(*messages), option=orjson.OPT_INDENT_2))
    monkeypatch.setattr(legacy_json, "LIMIT", 1_200_000)
    with pytest.raises(SessionTooLarge, match="1,200,000"):
        SessionLog(path).refresh()


def test_the_head_of_a_legacy_object_is_enough_for_a_first_look(tmp_path: Path) -> None:
    path = tmp_path / "session-x.json"
    messages = [user(str(index), f"prompt {index}") for index in range(1000)]
    path.write_bytes(orjson.dumps(legacy(*messages), option=orjson.OPT_INDENT_2))
    log = SessionLog(path)
    log.refresh(upto=4096)
    assert texts(log)[0] == "prompt 0"
    assert not log.complete
    log.refresh()
    assert len(log.outlines) == 1000
    assert log.complete
