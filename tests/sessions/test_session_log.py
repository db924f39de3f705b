"""Session logs, read and replayed."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from gemtui.errors import NotASession
from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.transcript.model import Author, Notice, ToolStatus
from gemtui.transcript.unified import parse_message
from tests.rows import each_row, table
from tests.sessions import stores
from tests.sessions.facts import facts
from tests.sessions.logs import (
    at,
    built,
    call,
    gemini,
    header,
    lines,
    opened,
    reply,
    texts,
    user,
    write,
)

FEEDBACK = (
    "System: Potential loop detected. Details: Repeating content. Please take a step back and "
    "confirm you're making forward progress. If not, take a step back, analyze your actions."
)


def replayed(tmp_path: Path, *records: object) -> SessionLog:
    log = SessionLog(write(tmp_path / "session-2026-11-20T23-04-11111111.jsonl", records))
    log.refresh()
    return log


@each_row("promise, row", table("session_files/replay.json", built).items())
def test_a_log_is_replayed_as_promised(tmp_path: Path, promise: str, row: dict[str, Any]) -> None:
    log = replayed(tmp_path, header(), *row.pop("records"))
    found = facts(log)
    assert {name: found[name] for name in row} == row, promise
    assert all(problem.path == log.path for problem in log.problems)


@each_row("name, content, says", table("session_files/no_sessions.json"))
def test_a_file_that_is_no_session_says_so(
    tmp_path: Path, name: str, content: Any, says: str
) -> None:
    path = tmp_path / name
    path.write_bytes(lines(content) if isinstance(content, list) else content.encode("latin-1"))
    with pytest.raises(NotASession, match=re.escape(says)):
        SessionLog(path).refresh()


def test_a_cut_last_line_waits_for_its_rest(tmp_path: Path) -> None:
    whole_file = lines([header(), user("u", "one"), user("v", "two")])
    path = tmp_path / "session-x.jsonl"
    log = opened(path, whole_file[:-10])
    assert texts(log) == ["one"]
    assert log.torn
    assert [(p.line, p.what) for p in log.problems] == [(3, "the last line is incomplete")]
    path.write_bytes(whole_file)
    assert log.refresh()
    assert texts(log) == ["one", "two"]
    assert not log.torn
    assert log.problems == ()


def test_a_whole_last_line_without_a_line_feed_counts(tmp_path: Path) -> None:
    path = tmp_path / "session-x.jsonl"
    log = opened(path, lines([header(), user("u", "one")])[:-1])
    assert texts(log) == ["one"]
    assert not log.torn


def test_a_damaged_log_is_still_a_session(tmp_path: Path) -> None:
    for records in (
        [{"sessionId": "s"}],
        [user("u", "no header")],
        [{"sessionId": "s", "projectHash": "h"}],
    ):
        SessionLog(write(tmp_path / "session-x.jsonl", records)).refresh()


def test_a_pipe_in_the_store_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "session-x.jsonl"
    os.mkfifo(path)
    with pytest.raises(NotASession, match="not a regular file"):
        SessionLog(path).refresh()


def test_calls_that_end_late_are_placed_and_read_at_a_steady_cost(tmp_path: Path) -> None:
    calls = [call(f"c{index}", 100 + index * 2) for index in range(3000)]
    turns = [user(f"u{index}", "next", 101 + index * 2) for index in range(3000)]
    log = replayed(tmp_path, header(), gemini("g", "all", 2, toolCalls=calls), *turns)
    messages = list(transcript_of(log))
    assert [type(m.blocks[-1]).__name__ for m in messages[:4]] == ["ToolCall", "Text"] * 2
    assert len(messages) == 6000


def test_a_reply_that_comes_later_changes_the_outline_of_its_call(tmp_path: Path) -> None:
    part = {"functionCall": {"id": "c", "name": "read_file", "args": {}}}
    asked = {"id": "g", "timestamp": at(2), "type": "gemini", "content": [part]}
    log = replayed(tmp_path, header(), user("u", "go"), asked)
    before = transcript_of(log)
    assert before.read(1).blocks[0].status is ToolStatus.UNCONFIRMED  # type: ignore[union-attr]
    with log.path.open("ab") as file:
        file.write(lines([reply("r", "c")]))
    log.refresh()
    after = transcript_of(log)
    assert after.outlines[0] is before.outlines[0]
    assert after.outlines[1] is not before.outlines[1]
    assert after.read(1).blocks[0].status is ToolStatus.SUCCESS  # type: ignore[union-attr]


def test_only_new_bytes_are_read_and_old_outlines_stay(tmp_path: Path) -> None:
    log = replayed(tmp_path, header(), user("u", "one"))
    before = transcript_of(log)
    with log.path.open("ab") as file:
        file.write(lines([gemini("g", "two")]))
    assert log.refresh()
    after = transcript_of(log)
    assert after.outlines[0] is before.outlines[0]
    assert len(after) == 2
    assert not log.refresh()


def test_a_replaced_file_is_read_from_the_start(tmp_path: Path) -> None:
    log = replayed(tmp_path, header(), user("u", "one"), user("v", "two"))
    longer = "other, and longer than all that was there before" * 9
    write(tmp_path / "new", [header(), user("u", longer)]).replace(log.path)
    assert log.refresh()
    assert texts(log) == [longer]


def test_a_file_rewritten_in_place_is_read_from_the_start(tmp_path: Path) -> None:
    log = replayed(tmp_path, header(), user("u", "one"))
    log.path.write_bytes(lines([header(), user("x", "another"), user("y", "and more of it")]))
    assert log.refresh()
    assert texts(log) == ["another", "and more of it"]


def test_a_body_that_is_gone_says_so(tmp_path: Path) -> None:
    log = replayed(tmp_path, header(), user("u", "one"))
    transcript = transcript_of(log)
    log.close()
    (block,) = transcript.read(0).blocks
    assert isinstance(block, Notice)
    assert "can't be read" in block.text


def test_what_the_cli_tells_a_model_that_repeats_itself_is_no_prompt(tmp_path: Path) -> None:
    feedback = user("s", FEEDBACK) | {"displayContent": [{"text": "one"}]}
    records = [user("u", "one"), gemini("g", ""), feedback, gemini("h", "Oh."), user("v", "two")]
    log = SessionLog(stores.saying(tmp_path, stores.uuid(1), *records))
    log.refresh()
    outlines = transcript_of(log).outlines
    assert [each.id for each in outlines if each.prompt] == ["u", "v"]
    assert [line.author for line in outlines].index(Author.SYSTEM) == 2
    assert stores.only(stores.read(tmp_path)).prompts == 2
    assert parse_message(feedback).role == "system"
    assert parse_message(user("p", FEEDBACK[:60])).role == "user"
