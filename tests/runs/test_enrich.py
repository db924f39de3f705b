"""A run's transcript with what its stored session adds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemtui.runs.enrich import enrich
from gemtui.transcript.model import (
    Author,
    Block,
    Message,
    Notice,
    NoticeLevel,
    Text,
    Thought,
    ToolCall,
    ToolStatus,
    Transcript,
    Usage,
)
from tests.deep import some_of

ID = "0a1b2c3d-1111-4222-8333-444455556666"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def prompt(text: str) -> Message:
    return Message(
        id="prompt", author=Author.USER, blocks=(Text(text=text),), time=NOW, prompt=True
    )


def answer(number: int, *blocks: Block) -> Message:
    return Message(id=f"answer-{number}", author=Author.MODEL, blocks=blocks, time=NOW)


def called(id: str, status: ToolStatus = ToolStatus.SUCCESS) -> ToolCall:
    return ToolCall(id=id, name="run_shell_command", args={}, status=status, duration=SECOND)


def asked(text: str, id: str = "p") -> dict[str, Any]:
    return {"id": id, "type": "user", "content": [{"text": text}]}


def said(id: str, text: str = "", *calls: str, thought: str = "") -> dict[str, Any]:
    record: dict[str, Any] = {"id": id, "type": "gemini", "content": text, "model": "pro"}
    record["tokens"] = {"input": 5, "output": 1, "cached": 2, "thoughts": 1, "tool": 0, "total": 7}
    record["thoughts"] = [{"subject": thought, "description": ""}] if thought else []
    output = "<untrusted_context>\nOutput: hi\nExit Code: 3\n</untrusted_context>"
    record["toolCalls"] = [
        {
            "id": call,
            "name": "run_shell_command",
            "args": {},
            "status": "success",
            "result": [{"functionResponse": {"id": call, "response": {"output": output}}}],
        }
        for call in calls
    ]
    return record


def store(home: Path, *records: object) -> Path:
    chats = home / "tmp/greeter/chats"
    chats.mkdir(parents=True)
    head = {"sessionId": ID, "projectHash": "h", "startTime": "2026-01-02T03:04:05.000Z"}
    path = chats / f"session-2026-01-02T03-04-{ID[:8]}.jsonl"
    path.write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in (head, *records)))
    return home


def enriched(home: Path, *live: Message) -> list[Message]:
    return list(enrich(Transcript.of(live), home, ID))


def blocks(messages: Sequence[Message]) -> list[Block]:
    return [block for message in messages for block in message.blocks]


def test_thoughts_counters_and_exit_codes_come_in(tmp_path: Path) -> None:
    home = store(tmp_path, asked("go"), said("a", "Look.", "t1", thought="Hm"), said("b", "Done."))
    full = enriched(
        home,
        prompt("go"),
        answer(1, Text(text="Look."), called("t1")),
        answer(2, Text(text="Done.")),
    )
    assert [message.id for message in full] == ["prompt", "answer-1", "answer-2"]
    thought, text, call = full[1].blocks
    assert isinstance(thought, Thought)
    assert thought.subject == "Hm"
    assert text == Text(text="Look.")
    assert isinstance(call, ToolCall)
    assert (call.exit_code, call.duration) == (3, SECOND)
    usage = Usage(input=5, output=1, cached=2, thoughts=1, tool=0, total=7)
    assert (full[1].usage, full[1].model) == (usage, "pro")


def test_the_text_of_retries_stands_once(tmp_path: Path) -> None:
    home = store(tmp_path, asked("go"), said("a", "Half of it."))
    full = enriched(home, prompt("go"), answer(1, Text(text="Half Half of Half of it.")))
    assert full[1].blocks == (Text(text="Half of it."),)


def test_what_only_the_stream_has_stays(tmp_path: Path) -> None:
    home = store(tmp_path, asked("go"), said("a", "Sleeping."))
    open_call = called("t9", ToolStatus.UNCONFIRMED)
    notice = Notice(level=NoticeLevel.WARNING, text="slow")
    full = enriched(
        home,
        prompt("go"),
        Message(id="notice-1", author=Author.SYSTEM, blocks=(notice,)),
        answer(2, Text(text="Sleeping."), open_call),
        answer(3, Text(text="cut in the mid")),
    )
    assert blocks(full) == [
        Text(text="go"),
        notice,
        Text(text="Sleeping."),
        open_call,
        Text(text="cut in the mid"),
    ]


def test_an_answer_whose_call_was_cut_off_takes_the_tokens_of_its_empty_record(
    tmp_path: Path,
) -> None:
    open_call = called("t9", ToolStatus.UNCONFIRMED)
    home = store(tmp_path, asked("go"), said("a", "Look.", "t1"), said("b", thought="Sleep"))
    full = enriched(
        home, prompt("go"), answer(1, Text(text="Look."), called("t1")), answer(2, open_call)
    )
    assert [message.id for message in full] == ["prompt", "answer-1", "answer-2"]
    thought, call = full[2].blocks
    assert isinstance(thought, Thought)
    assert call == open_call
    assert full[2].usage is not None
    assert full[2].model == "pro"


def test_an_empty_record_alone_belongs_to_the_call_that_was_cut_off(tmp_path: Path) -> None:
    open_call = called("t9", ToolStatus.UNCONFIRMED)
    full = enriched(store(tmp_path, asked("go"), said("a")), prompt("go"), answer(1, open_call))
    assert blocks(full) == [Text(text="go"), open_call]
    assert full[1].usage is not None


def test_only_this_run_of_a_resumed_session_counts(tmp_path: Path) -> None:
    home = store(
        tmp_path,
        asked("first", "p1"),
        said("a", "One.", "t1"),
        asked("second", "p2"),
        said("b", "Two."),
        asked("third", "p3"),
        said("c", "Three.", "t3"),
    )
    first = enriched(home, prompt("first"), answer(1, Text(text="One."), called("t1")))
    second = enriched(home, prompt("second"), answer(1, Text(text="Two.")))
    third = enriched(home, prompt("third"), answer(1, Text(text="Three."), called("t3")))
    for full, text in ((first, "One."), (second, "Two."), (third, "Three.")):
        assert len(full) == 2
        assert Text(text=text) in full[1].blocks
        assert full[1].usage is not None


def test_all_calls_in_one_record_stand_once(tmp_path: Path) -> None:
    home = store(tmp_path, asked("go"), said("a", "Done.", "t1", "t2"))
    full = enriched(home, prompt("go"), answer(1, called("t1")), answer(2, called("t2")), answer(3))
    ids = [block.id for block in blocks(full) if isinstance(block, ToolCall)]
    assert ids == ["t1", "t2"]


def test_without_a_session_the_stream_s_transcript_stays(tmp_path: Path) -> None:
    live = Transcript.of((prompt("go"), answer(1, Text(text="Hi."))))
    assert enrich(live, tmp_path, ID) is live
    assert enrich(live, tmp_path, None) is live
    assert enrich(live, store(tmp_path, asked("other"), said("a", "No.")), ID) is live


TURNS = st.lists(
    st.tuples(st.booleans(), st.integers(0, 2), st.booleans(), st.booleans()), max_size=5
)


@settings(max_examples=some_of(400))
@given(turns=TURNS, merged=st.booleans())
def test_no_text_and_no_call_of_the_stream_is_lost(
    tmp_path_factory: pytest.TempPathFactory,
    turns: list[tuple[bool, int, bool, bool]],
    merged: bool,
) -> None:
    """Whatever part of the run was stored, with calls or without, or all calls in one record."""
    live, records, ids, texts = [prompt("go")], [asked("go")], [], ["go"]
    for at, (speaks, count, stored, with_calls) in enumerate(turns):
        text = f"Text {at}." if speaks else ""
        texts += [text] if speaks else []
        mine = [f"t{at}.{number}" for number in range(count)]
        ids += mine
        live.append(answer(at, *([Text(text=text)] if text else []), *map(called, mine)))
        if stored:
            records.append(said(f"m{at}", text, *(mine if with_calls and not merged else ())))
    if merged:
        records.append(said("last", "", *ids))
    home = store(tmp_path_factory.mktemp("home"), *records)
    full = blocks(enriched(home, *live))
    assert sorted(block.id for block in full if isinstance(block, ToolCall)) == sorted(ids)
    assert [block.text for block in full if isinstance(block, Text)] == texts
