"""Files of one JSON value: legacy sessions and checkpoints."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from gemtui.errors import SessionTooLarge
from gemtui.sessions.read import legacy_json
from gemtui.sessions.read.conversation import transcript_of, unified_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.transcript.model import Text, ToolCall, ToolStatus
from tests.sessions.logs import context, gemini, legacy, lines, opened, texts, user


@pytest.mark.parametrize("option", [orjson.OPT_INDENT_2, 0])
def test_a_legacy_object_pretty_or_on_one_line(tmp_path: Path, option: int) -> None:
    path = tmp_path / "session-x.json"
    log = opened(path, orjson.dumps(legacy(user("u", "ask"), gemini("g", "told")), option=option))
    assert texts(log) == ["ask", "told"]
    assert (log.problems, log.format) == ((), "json")


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


def test_a_repeated_id_is_one_message_where_the_cli_reads_the_object_as_a_line(tmp_path: Path) -> None:
    draft = gemini("g", "draft", thoughts=[{"subject": "Draft"}])
    final = gemini("g", "final", tokens={"input": 100, "output": 50, "total": 150})
    value = legacy(user("u", "ask"), draft, user("v", "more"), final)
    lines = orjson.dumps(value)
    for data in (lines, lines + b"\r\n"):
        path = tmp_path / f"session-{len(data)}.json"
        log = opened(path, data)
        assert texts(log) == ["ask", "final", "more"]
        assert [outline.usage.total for outline in log.outlines if outline.usage] == [150]
        assert not log.dropped
        assert transcript_of(log).read(1).blocks == (Text(text="final"),), "nothing of the draft"
    del value["projectHash"]
    log = opened(path, orjson.dumps(value))
    assert texts(log) == ["ask", "draft", "more", "final"], "the CLI does not take it for a line"


def test_a_pretty_printed_object_that_repeats_an_id_loses_no_message(tmp_path: Path) -> None:
    path = tmp_path / "session-x.json"
    messages = legacy(user("m", "first"), gemini("m", "answer"), user("m", "second"))
    log = opened(path, messages)
    assert texts(log) == ["first", "answer", "second"]
    assert [outline.model for outline in log.outlines] == [None, "gemini-x", None]


def test_a_legacy_object_first_seen_half_written_shows_its_whole_messages(tmp_path: Path) -> None:
    path = tmp_path / "session-x.json"
    data = orjson.dumps(
        legacy(user("u", "ask"), gemini("g", "told"), user("v", "cut off here")), option=orjson.OPT_INDENT_2
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


@pytest.mark.parametrize("option", [orjson.OPT_INDENT_2, 0])
@pytest.mark.parametrize("bare", [False, True])
def test_a_checkpoint_reads_like_a_session(tmp_path: Path, option: int, bare: bool) -> None:
    path = tmp_path / "checkpoint-tag.json"
    part = {"functionCall": {"id": "c", "name": "read_file", "args": {"file_path": "a"}}}
    answer = {"functionResponse": {"id": "c", "name": "read_file", "response": {"output": "b"}}}
    history = [
        {"role": "user", "parts": [*context()["content"], {"text": "ask"}]},
        {"role": "model", "parts": [{"text": "look"}, part]},
        {"role": "user", "parts": [answer]},
    ]
    log = opened(path, orjson.dumps(history if bare else {"history": history}, option=option))
    assert texts(log) == ["ask", "look"]
    tool = transcript_of(log).read(1).blocks[1]
    assert isinstance(tool, ToolCall)
    assert (tool.output, tool.status) == ("b", ToolStatus.SUCCESS)


@pytest.mark.parametrize("reply_id", [None, "r1"])
def test_calls_of_a_checkpoint_without_ids_find_their_replies(tmp_path: Path, reply_id: str | None) -> None:
    path = tmp_path / "checkpoint-tag.json"
    asked = [{"functionCall": {"name": "read_file", "args": {"file_path": p}}} for p in "ab"]
    given = [{"functionResponse": {"name": "read_file", "response": {"output": o}}} for o in "AB"]
    if reply_id:
        given[0]["functionResponse"]["id"] = reply_id
    history = [{"role": "model", "parts": asked}, {"role": "user", "parts": given}]
    log = opened(path, orjson.dumps({"history": history}))
    (message,) = transcript_of(log)
    assert [block.output for block in message.blocks if isinstance(block, ToolCall)] == ["A", "B"]
    blocks = [block for m in unified_of(log) for block in m.content if isinstance(block, dict)]
    assert [b["content"] for b in blocks if b["type"] == "tool_result"] == ["A", "B"]
