"""Session logs, read and replayed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from gemtui.errors import NotASession
from gemtui.sessions.read.conversation import dropped_counts, dropped_of, records_of, transcript_of, unified_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.transcript.model import Dropped, Notice, NoticeLevel, Text, ToolCall, ToolStatus
from tests.rows import each_row
from tests.sessions.logs import at, call, context, gemini, header, lines, reply, restore, texts, user, write


def replayed(tmp_path: Path, *records: object) -> SessionLog:
    log = SessionLog(write(tmp_path / "session-2026-11-20T23-04-11111111.jsonl", records))
    log.refresh()
    return log


def test_a_message_written_again_replaces_the_first_and_keeps_its_place(tmp_path: Path) -> None:
    log = replayed(
        tmp_path,
        header(),
        user("u", "ask"),
        gemini("g", "one"),
        user("v", "more"),
        gemini("g", "one, with a call", toolCalls=[call("c")]),
    )
    assert texts(log) == ["ask", "one, with a call", "more"]
    usage = transcript_of(log).usage
    assert usage is not None
    assert usage.total == 13


def test_a_rewind_drops_the_message_and_all_after_it(tmp_path: Path) -> None:
    log = replayed(
        tmp_path,
        header(),
        user("u", "first"),
        gemini("g", "answer"),
        user("v", "second"),
        gemini("h", "gone"),
        {"$rewindTo": "v"},
        user("w", "other"),
    )
    assert texts(log) == ["first", "answer", "other"]
    assert [(o.id, o.dropped) for o in log.dropped] == [("v", Dropped.REWOUND), ("h", Dropped.REWOUND)]
    assert texts(log, dropped=True) == ["first", "answer", "second", "gone", "other"]


def test_a_rewind_to_an_unknown_message_drops_all(tmp_path: Path) -> None:
    log = replayed(tmp_path, header(), user("u", "first"), {"$rewindTo": "nobody"})
    assert texts(log) == []
    assert [o.dropped for o in log.dropped] == [Dropped.REWOUND]


def test_a_restored_message_keeps_what_the_restoration_lost(tmp_path: Path) -> None:
    thought = {"subject": "Plan", "description": "think", "timestamp": at(2)}
    rich = gemini("g", "answer", thoughts=[thought], toolCalls=[call("c")])
    part = {"functionCall": {"id": "c", "name": "read_file", "args": {}}}
    poor = {
        "id": "g",
        "timestamp": at(2),
        "type": "gemini",
        "content": [{"text": "answer"}, part, {"text": "hidden", "thought": True}],
    }
    log = replayed(
        tmp_path, header(), user("u", "ask"), rich, restore(context(), user("u", "ask"), poor, reply("r", "c"))
    )
    (_, record, _) = [r for r in records_of(log) if r["id"] != context()["id"]]
    assert record["tokens"] == rich["tokens"]
    assert record["toolCalls"] == rich["toolCalls"]
    assert record["model"] == "gemini-x"
    message = transcript_of(log).read(1)
    assert [type(block).__name__ for block in message.blocks] == ["Thought", "Text", "ToolCall"]
    assert texts(log) == ["ask", "answer"]
    assert log.outlines[1].calls == 1


def test_a_history_restored_under_new_ids_is_not_lost_and_not_doubled(tmp_path: Path) -> None:
    part = {"functionCall": {"id": "c", "name": "read_file", "args": {"file_path": "a.py"}}}
    again: list[dict[str, Any]] = [
        user("u2", "ask", 8),
        {"id": "g2", "timestamp": at(8), "type": "gemini", "content": [part], "tokens": None},
        reply("r2", "c", 8),
        {"id": "h2", "timestamp": at(8), "type": "gemini", "content": [{"text": "done"}]},
    ]
    log = replayed(
        tmp_path,
        header(),
        user("u", "ask"),
        gemini("g", "", toolCalls=[call("c")]),
        reply("r", "c"),
        gemini("h", "done", 5),
        user("v", "and then"),
        gemini("k", "working on it", 6),
        *again,
        restore(*again),
    )
    assert texts(log) == ["ask", "done"]
    assert [o.id for o in log.outlines] == ["u2", "g2", "h2"]
    assert [o.usage.total for o in log.outlines if o.usage] == [13, 13]
    assert [(o.id, o.dropped) for o in log.dropped] == [("v", Dropped.BURIED), ("k", Dropped.BURIED)]
    assert texts(log, dropped=True) == ["ask", "done", "and then", "working on it"]
    tool = transcript_of(log).read(1).blocks[0]
    assert isinstance(tool, ToolCall)
    assert tool.status is ToolStatus.SUCCESS
    assert tool.output == "body"


def test_a_call_is_shown_once_though_its_answer_came_back_with_more(tmp_path: Path) -> None:
    log = replayed(
        tmp_path,
        header(),
        user("u", "ask"),
        gemini("g", "", toolCalls=[call("c")]),
        gemini("h", "half a word", toolCalls=[call("d")]),
        restore(user("u", "ask"), gemini("g2", "", toolCalls=[call("c"), call("d")])),
    )
    both = transcript_of(log, dropped=True)
    assert [(o.id, o.calls) for o in both.outlines] == [("u", 0), ("h", 0), ("g2", 2)]
    calls = [block.id for message in both for block in message.blocks if isinstance(block, ToolCall)]
    assert calls == ["c", "d"]
    assert dropped_counts(log) == {Dropped.BURIED: 1}
    assert [record["id"] for _, record in dropped_of(log)] == ["g", "h"]


def test_a_prompt_that_failed_is_remembered_as_such(tmp_path: Path) -> None:
    log = replayed(
        tmp_path, header(), restore(context()), user("u", "this fails"), gemini("g", "  "), restore(context())
    )
    assert texts(log) == []
    assert [o.dropped for o in log.dropped] == [Dropped.FAILED_PROMPT] * 2
    assert [(why, record["id"]) for why, record in dropped_of(log)] == [
        (Dropped.FAILED_PROMPT, "u"),
        (Dropped.FAILED_PROMPT, "g"),
    ]


def test_the_same_prompt_asked_again_and_failing_is_not_taken_for_the_first(tmp_path: Path) -> None:
    kept = (user("u", "go"), gemini("g", "went"))
    log = replayed(tmp_path, header(), *kept, user("v", "go", 5), restore(*kept))
    assert texts(log) == ["go", "went"]
    assert [o.id for o in log.dropped] == ["v"]


def test_a_message_that_comes_back_is_no_longer_dropped(tmp_path: Path) -> None:
    kept = (user("u", "go"), gemini("g", "went"))
    log = replayed(tmp_path, header(), *kept, restore(context()), restore(context(), *kept))
    assert texts(log) == ["go", "went"]
    assert log.dropped == []


def test_a_second_header_merges_and_the_first_start_stays_known(tmp_path: Path) -> None:
    log = replayed(tmp_path, header(), user("u", "go"), header(startTime=at(60), summary="Title"))
    assert texts(log) == ["go"]
    assert log.metadata["startTime"] == at(60)
    assert log.metadata["summary"] == "Title"
    assert log.replay.started is not None
    assert log.replay.started.isoformat() == "2026-11-20T23:04:00+00:00"


def test_context_and_tool_replies_are_no_messages(tmp_path: Path) -> None:
    log = replayed(
        tmp_path, header(), context(), user("u", "go"), gemini("g", "", toolCalls=[call("c")]), reply("r", "c")
    )
    assert [o.id for o in log.outlines] == ["u", "g"]
    assert [o.prompt for o in log.outlines] == [True, False]
    assert len(list(records_of(log))) == 4
    assert [m.role for m in unified_of(log)] == ["user", "assistant"]


def test_a_prompt_behind_session_context_in_one_record_counts(tmp_path: Path) -> None:
    both = context() | {"id": "u"}
    both["content"] = [*both["content"], {"text": "show colours"}]
    log = replayed(tmp_path, header(), both)
    assert texts(log) == ["show colours"]
    assert log.outlines[0].prompt


def test_a_reply_without_a_call_shows_as_a_call(tmp_path: Path) -> None:
    log = replayed(tmp_path, header(), user("u", "run"), gemini("g", ""), reply("r", "lost", error="canceled"))
    transcript = transcript_of(log)
    (block,) = transcript.read(2).blocks
    assert isinstance(block, ToolCall)
    assert block.name == "read_file"
    assert block.status.failed
    assert transcript.outlines[2].failures == 1


def test_calls_stand_where_they_happened(tmp_path: Path) -> None:
    log = replayed(
        tmp_path,
        header(),
        user("u", "one", 1),
        gemini("g", "first", 2, toolCalls=[call("a", 3), call("b", 12)]),
        user("v", "two", 10),
        gemini("h", "second", 11),
        gemini("i", "end", 13),
    )
    said = [
        [block.text if isinstance(block, Text) else block.id for block in message.blocks]  # type: ignore[union-attr]
        for message in transcript_of(log)
    ]
    assert said == [["one"], ["first", "a"], ["two"], ["second"], ["b"], ["end"]]


@pytest.mark.parametrize(
    "part",
    [
        {"inlineData": {"mimeType": "image/png", "data": "aGVsbG8="}},
        {"fileData": {"mimeType": "image/png", "fileUri": "https://example.org/cat.png"}},
        {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
        {"codeExecutionResult": {"output": "1"}},
    ],
)
def test_an_answer_without_words_is_an_answer(part: dict[str, Any], tmp_path: Path) -> None:
    drawn = gemini("g", "") | {"content": [part]}
    log = replayed(tmp_path, header(), user("u", "Draw a cat"), drawn)
    (block,) = list(transcript_of(log))[-1].blocks
    assert not isinstance(block, Notice)
    log = replayed(tmp_path, header(), user("u", "Draw a cat"), drawn, restore())
    assert [line.dropped for line in log.dropped] == [Dropped.BURIED] * 2


def test_a_cut_last_line_waits_for_its_rest(tmp_path: Path) -> None:
    whole_file = lines([header(), user("u", "one"), user("v", "two")])
    path = tmp_path / "session-x.jsonl"
    path.write_bytes(whole_file[:-10])
    log = SessionLog(path)
    log.refresh()
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
    path.write_bytes(lines([header(), user("u", "one")])[:-1])
    log = SessionLog(path)
    log.refresh()
    assert texts(log) == ["one"]
    assert not log.torn


def test_a_broken_line_is_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "session-x.jsonl"
    data = [lines([header(), user("u", "one")]), b'{"id": broken\n', b"17\n", lines([user("v", "2")])]
    path.write_bytes(b"".join(data))
    log = SessionLog(path)
    log.refresh()
    assert texts(log) == ["one", "2"]
    assert [problem.line for problem in log.problems] == [3, 4]
    assert all(problem.path == path for problem in log.problems)


def test_line_separators_of_unicode_do_not_end_a_line(tmp_path: Path) -> None:
    text = "a\u2028b\u2029c\u0085d"
    path = tmp_path / "session-x.jsonl"
    raw = orjson.dumps(user("u", text))
    assert "\u2028".encode() in raw
    path.write_bytes(lines([header()]) + raw + b"\n")
    log = SessionLog(path)
    log.refresh()
    assert texts(log) == [text]


@pytest.mark.parametrize("content", [b"", b"hello\nworld\n", b'{"a": 1}\n', b"\x00\xff" * 50])
def test_a_file_that_is_no_session_says_so(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "session-x.jsonl"
    path.write_bytes(content)
    with pytest.raises(NotASession, match=r"session-x\.jsonl"):
        SessionLog(path).refresh()


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"{", "ends before its first message"),
        (b'{\n  "sess', "ends before its first message"),
        (b'{\n  "title": "\xc3\xa4\xc3', "ends before its first message"),
        (b"{no JSON", "no sessionId at its beginning"),
        (b'{"a": 1}', "no sessionId at its beginning"),
    ],
)
def test_a_half_written_object_is_told_from_what_is_no_session(tmp_path: Path, content: bytes, what: str) -> None:
    path = tmp_path / "session-x.json"
    path.write_bytes(content)
    with pytest.raises(NotASession, match=what):
        SessionLog(path).refresh()


CLAUDE = {"parentUuid": None, "sessionId": "s", "uuid": "1", "type": "user"}


@each_row(
    ("records", "program"),
    [
        ([CLAUDE | {"message": {"role": "user", "content": "hi"}}], "Claude Code"),
        ([{"type": "summary", "summary": "Hi", "leafUuid": "1"}], "Claude Code"),
        ([CLAUDE | {"message": {"role": "user", "parts": [{"text": "hi"}]}}], "Qwen Code"),
        ([{"timestamp": "x", "type": "session_meta", "payload": {"id": "s"}}], "Codex"),
        ([{"id": "s", "timestamp": "x"}, {"type": "message", "role": "user", "content": []}], "another program"),
        ([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}], "another program"),
        ([{"sessionId": "s", "messages": [{"role": "user", "content": "hi"}]}], "another program"),
        ([{"version": 1, "entries": []}], "another program"),
    ],
)
def test_another_program_s_file_is_named_as_that(tmp_path: Path, records: list[dict[str, Any]], program: str) -> None:
    path = write(tmp_path / "session-x.jsonl", records)
    with pytest.raises(NotASession, match=f"has the format of {program}, not of Gemini CLI"):
        SessionLog(path).refresh()


def test_a_damaged_log_is_still_a_session(tmp_path: Path) -> None:
    for records in ([{"sessionId": "s"}], [user("u", "no header")], [{"sessionId": "s", "projectHash": "h"}]):
        SessionLog(write(tmp_path / "session-x.jsonl", records)).refresh()


def test_a_prompt_without_content_says_so(tmp_path: Path) -> None:
    log = SessionLog(write(tmp_path / "session-x.jsonl", [header(), user("u", ""), user("v", "a")]))
    log.refresh()
    assert [message.blocks for message in transcript_of(log)] == [
        (Notice(level=NoticeLevel.INFO, text="This prompt has no content."),),
        (Text(text="a"),),
    ]


def test_a_pipe_in_the_store_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "session-x.jsonl"
    os.mkfifo(path)
    with pytest.raises(NotASession, match="not a regular file"):
        SessionLog(path).refresh()


def test_calls_without_an_id_are_shown_wherever_they_belong(tmp_path: Path) -> None:
    late = [call("", 12, result=None), call("", 12), call("b", 3), call("c", 12)]
    late[2]["id"] = 7
    log = replayed(
        tmp_path,
        header(),
        user("u", "one", 1),
        gemini("g", "first", 2, toolCalls=late),
        user("v", "two", 10),
        gemini("h", "end", 13),
    )
    transcript = transcript_of(log)
    shown = [[b for b in m.blocks if isinstance(b, ToolCall)] for m in transcript]
    assert [len(calls) for calls in shown] == [0, 1, 0, 3, 0]
    assert [outline.calls for outline in transcript.outlines] == [0, 1, 0, 3, 0]
    assert len({message.id for message in transcript}) == 5


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


def test_calls_without_a_time_keep_their_place(tmp_path: Path) -> None:
    untimed = call("second", status="executing", timestamp=None)
    both = gemini("g", "", 2, toolCalls=[call("first", 3), untimed, call("third", 4)])
    log = replayed(tmp_path, header(), user("u", "go"), both)
    ids = [block.id for block in transcript_of(log).read(1).blocks if isinstance(block, ToolCall)]
    assert ids == ["first", "second", "third"]


def test_a_prompt_that_looks_like_the_cli_s_own_words_stays_a_prompt(tmp_path: Path) -> None:
    text = "--- Content from referenced files ---"
    assert texts(replayed(tmp_path, header(), user("u", text))) == [text]


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


@pytest.mark.parametrize("more", [{}, {"id": None}, {"id": 7}, {"id": ["x"]}])
def test_a_message_without_a_text_for_its_id_is_shown(more: dict[str, Any], tmp_path: Path) -> None:
    nameless = {"timestamp": at(2), "type": "user", "content": "without a name"} | more
    log = replayed(tmp_path, header(), user("u", "first"), nameless, nameless, gemini("g", "last"))
    assert texts(log) == ["first", "without a name", "without a name", "last"]
    assert log.problems == ()
    assert len({outline.id for outline in log.outlines}) == 4
    assert list(records_of(log))[1] == nameless


@pytest.mark.parametrize("line", [{}, {"id": 5}, {"type": "user"}, {"$set": 7}, {"$rewindTo": 5}, {"sessionId": 1}])
def test_an_object_that_is_no_record_is_named(line: dict[str, Any], tmp_path: Path) -> None:
    log = replayed(tmp_path, header(), user("u", "first"), line, user("v", "last"))
    assert texts(log) == ["first", "last"]
    assert [(each.line, each.what) for each in log.problems] == [(3, "left out because its type is unknown")]


def test_what_is_no_message_in_a_list_of_messages_is_named(tmp_path: Path) -> None:
    restored = {"$set": {"messages": [user("u", "kept"), None, "text", 5]}}
    log = replayed(tmp_path, header(), restored)
    assert texts(log) == ["kept"]
    assert [(each.line, each.what) for each in log.problems] == [
        (2, "left out 3 of its messages, which are not JSON objects")
    ]
