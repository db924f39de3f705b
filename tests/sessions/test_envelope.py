"""Lines of other agents: branches, answers of several lines, and what is skipped."""

from __future__ import annotations

import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from gemtui.sessions.read.dialect import Record
from gemtui.sessions.read.envelope import EnvelopeReplay
from gemtui.sessions.read.replay import Replay
from gemtui.sessions.read.session_log import SessionLog
from gemtui.transcript.usage import Usage

Line = dict[str, Any]


class Plain:
    """A dialect whose lines have their record inside."""

    @staticmethod
    def translate(line: Mapping[str, Any]) -> Record | None:
        record = line.get("record")
        return {"id": line["uuid"], **record} if isinstance(record, dict) else None

    @staticmethod
    def wants(line: bytes) -> bool:
        return b'"skip"' not in line


def prompt(id: str, after: str) -> Line:
    record = {"type": "user", "content": [{"text": id}], "prompt": True}
    return {"uuid": id, "parentUuid": after, "sessionId": "s", "cwd": "/app", "record": record}


def answer(id: str, after: str, *calls: str, of: str = "", tokens: int = 10) -> Line:
    parts = [{"functionCall": {"id": call, "name": "Write", "args": {}}} for call in calls]
    record = {"type": "gemini", "content": [{"text": id}, *parts], "answer": of or id}
    return {"uuid": id, "parentUuid": after, "record": record | {"tokens": {"total": tokens}}}


def result(id: str, after: str, call: str) -> Line:
    reply = {"id": call, "name": "", "response": {"output": "ok"}, "status": "success"}
    record = {"type": "user", "content": [{"functionResponse": reply}]}
    return {"uuid": id, "parentUuid": after, "record": record}


def replayed(*lines: Line | bytes) -> Replay:
    replay = Replay()
    envelope = EnvelopeReplay(Plain, replay)
    for number, line in enumerate(lines):
        if isinstance(line, bytes):
            assert envelope.skips(line)
        else:
            assert envelope.feed(line, number, 1) is None
    return replay


def said(replay: Replay) -> tuple[list[str], list[str]]:
    return [entry.id for entry in replay.entries], [entry.id for entry, _ in replay.dropped]


def skipped(id: str, after: str) -> bytes:
    return f'{{"parentUuid":"{after}","type":"skip","uuid":"{id}"}}'.encode()


TWO_TURNS = (prompt("p", ""), answer("a", "p"), prompt("q", "a"), answer("b", "q"))


@pytest.mark.parametrize(
    ("lines", "kept", "dropped"),
    [
        pytest.param((prompt("r", "b"),), "paqbr", "", id="goes on at the end"),
        pytest.param((prompt("r", "a"),), "par", "qb", id="goes on at an earlier answer"),
        pytest.param((skipped("x", "b"), prompt("r", "x")), "paqbr", "", id="skipped last"),
        pytest.param((skipped("x", "a"), prompt("r", "x")), "par", "qb", id="skipped earlier"),
        pytest.param(
            (skipped("x", "b"), skipped("y", "x"), prompt("r", "y")), "paqbr", "", id="two skipped"
        ),
        pytest.param((prompt("r", "unknown"),), "paqbr", "", id="follows what is not there"),
    ],
)
def test_only_a_prompt_that_follows_an_earlier_message_begins_a_branch(
    lines: tuple[Line | bytes, ...], kept: str, dropped: str
) -> None:
    assert said(replayed(*TWO_TURNS, *lines)) == (list(kept), list(dropped))


def test_the_lines_of_an_answer_are_one_message_wherever_their_results_hang() -> None:
    replay = replayed(
        prompt("p", ""),
        answer("a", "p", "1", of="A"),
        result("r", "a", "1"),
        answer("b", "a", "2", of="A"),
        result("s", "b", "2"),
        prompt("q", "r"),
    )

    assert said(replay) == (list("parsq"), [])
    assert not replay.waits
    whole = replay.entries[1]
    outline = replay.outline(whole)
    assert (outline.calls, outline.usage) == (2, Usage(total=10))
    assert [slot.offset for slot in whole.more] == [3]


def test_a_prompt_after_a_later_line_of_an_answer_is_no_branch() -> None:
    lines = (answer("a", "p", of="A"), answer("b", "a", of="A"))
    assert said(replayed(prompt("p", ""), *lines, prompt("q", "b"))) == (list("paq"), [])
    first = said(replayed(prompt("p", ""), *lines, prompt("q", "b"), prompt("r", "b")))
    assert first == (list("par"), ["q"])


def test_a_call_without_a_result_waits() -> None:
    assert replayed(prompt("p", ""), answer("a", "p", "1")).waits


def test_skipped_lines_in_a_row_hold_no_memory() -> None:
    replay = Replay()
    envelope = EnvelopeReplay(Plain, replay)
    envelope.feed(prompt("p", ""), 0, 1)
    before = "p"
    for number in range(100):
        envelope.skips(skipped(f"x{number}", before))
        before = f"x{number}"

    assert len(envelope._skipped) == 1


def claude_session(*lines: object) -> bytes:
    said = {"role": "user", "content": "Hello"}
    first = {"type": "user", "uuid": "u", "sessionId": "s", "cwd": "/app", "message": said}
    return b"".join(orjson.dumps(line) + b"\n" for line in (first, *lines))


def test_a_line_of_a_type_that_is_unknown_is_left_out_and_named(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(claude_session({"type": "of-tomorrow", "sessionId": "s"}))
    with SessionLog.read(path) as log:
        assert len(log.outlines) == 1
        (problem,) = log.problems
    assert (problem.line, problem.what) == (
        2,
        "left out because its type is unknown: of-tomorrow",
    )


def test_skipped_lines_are_not_kept_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    skipped = {"type": "api-request-shape", "shape": "x" * 10_000}
    path.write_bytes(claude_session(*[skipped] * 500))
    tracemalloc.start()
    with SessionLog.read(path, keep=10_000_000) as log:
        held, _ = tracemalloc.get_traced_memory()
        assert len(log.outlines) == 1
    tracemalloc.stop()
    assert held < 200_000


def test_lines_of_a_subagent_in_the_file_of_its_caller_are_left_out() -> None:
    aside = {**prompt("x", ""), "isSidechain": True, "agentId": "1"}

    assert said(replayed(prompt("p", ""), aside)) == (["p"], [])
    assert replayed(aside).metadata["sessionId"] == "1"
