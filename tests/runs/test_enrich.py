"""A run's transcript with what its stored session adds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import to_builtins

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
)
from tests.deep import some_of
from tests.rows import each_row, table

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


BUILDERS: dict[str, Callable[..., Any]] = {
    "prompt": prompt,
    "answer": lambda words: answer(words[0], *map(_block, words[1:])),
    "called": lambda words: called(words[0], *map(ToolStatus, words[1:])),
    "notice": lambda text: Message(
        id="notice-1",
        author=Author.SYSTEM,
        blocks=(Notice(level=NoticeLevel.WARNING, text=text),),
    ),
    "asked": lambda words: asked(*words),
    "said": lambda words, **more: said(*words, **more),
}


def _block(told: str | Block) -> Block:
    return Text(text=told) if isinstance(told, str) else told


def built(row: dict[str, Any]) -> Any:
    """What a table tells as `{"answer": [1, "Look."]}`."""
    name = next(iter(row), "")
    return BUILDERS[name](row.pop(name), **row) if name in BUILDERS else row


def line(block: Block) -> str:
    match block:
        case Text(text=text):
            return text
        case Notice(text=text):
            return f"notice {text}"
        case Thought(subject=subject):
            return f"thought {subject}"
        case ToolCall(id=id, status=status, exit_code=code, duration=duration):
            ended = "" if code is None else f", exit code {code}"
            return f"{id} {status}{ended}" + ("" if duration is None else f", {duration.seconds} s")
    raise AssertionError(block)


@each_row("promise, records, live, expected", table("runs/enrich.json", built))
def test_a_stored_session_adds_to_a_run_as_promised(
    tmp_path: Path,
    promise: str,
    records: list[object],
    live: list[Message],
    expected: dict[str, Any],
) -> None:
    full = enriched(store(tmp_path / promise, *records), *live)
    shown = {
        "ids": [message.id for message in full],
        "blocks": [[line(block) for block in message.blocks] for message in full],
        "calls": [block.id for block in blocks(full) if isinstance(block, ToolCall)],
        "usage": [to_builtins(message.usage) for message in full],
        "model": [message.model for message in full],
    }
    assert {name: shown[name] for name in expected} == expected, promise


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
