"""Sessions that the real Claude Code and Qwen Code have written, as gemtui reads them.

What a conversation must be is told by the agents themselves: by the request with which each resumes
its session, by the tokens that the model's server told, and by the files on disk.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.stats.prices import load_prices
from gemtui.transcript.model import (
    DiffDisplay,
    Dropped,
    Image,
    Message,
    Notice,
    Text,
    Thought,
    ToolCall,
    ToolStatus,
)
from tests.agents.recordings import AGAIN, BARE, CLAUDE, CRLF, NEW, OLD, QWEN, TITLE, Recording

pytestmark = [
    pytest.mark.covers("gemtui/sessions", "gemtui/transcript", "tests/agents"),
    pytest.mark.timeout(600),  # the first test installs the programs and records all sessions
]

Said = tuple[str, ...]
"""What somebody said: a kind, and texts; of a call its name, arguments and result."""


def messages_of(path: Path, *, dropped: bool = False) -> list[Message]:
    with SessionLog.read(path) as log:
        transcript = transcript_of(log, dropped=dropped)
        return [transcript.read(index) for index in range(len(transcript.outlines))]


def said_in(messages: Iterable[Message]) -> list[Said]:
    return [said for message in messages for block in message.blocks for said in _said(block)]


def _said(block: object) -> Iterator[Said]:
    match block:
        case Text():
            yield "text", block.text.strip("\n")
        case Thought():
            yield "thought", "\n".join(filter(None, (block.subject, block.description)))
        case Image():
            yield "image", block.data
        case ToolCall():
            result = block.output if block.error is None else block.error
            yield "call", block.id, block.name, json.dumps(block.args, sort_keys=True), result or ""


def of_request(blocks: Iterable[Said]) -> list[Said]:
    """Put the result of each call to its call, and drop what only the program says."""
    items = list(blocks)
    results = {item[1]: item[2] for item in items if item[0] == "result"}
    return [
        (*item, results.get(item[1], "")) if item[0] == "call" else item
        for item in items
        if item[0] != "result"
    ]


# --- what Claude Code sends ----------------------------------------------------------------------

OF_THE_PROGRAM = re.compile(
    r"<(?!command-name)[a-z-]+>|\[(Request interrupted|Image: source)|No response requested\.$"
)
TYPED = re.compile(r"sent a new message while you were working:\n(.*?)\n", re.DOTALL)
COMMAND = re.compile(
    r"<command-name>(.*?)</command-name>.*<command-args>(.*?)</command-args>", re.S
)
NAMES = {"Agent": "Task"}


def sent_by_claude(messages: Iterable[Mapping[str, Any]]) -> Iterator[Said]:
    for message in messages:
        content = message["content"]
        if message["role"] != "system":
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            for block in blocks:
                yield from _sent(block)


def _sent(block: Mapping[str, Any]) -> Iterator[Said]:
    match block["type"]:
        case "text":
            yield from _typed(block["text"])
        case "thinking":
            yield "thought", block["thinking"]
        case "image":
            yield "image", block["source"]["data"]
        case "tool_use":
            name = NAMES.get(block["name"], block["name"])
            yield "call", block["id"], name, json.dumps(block["input"], sort_keys=True)
        case "tool_result":
            content = block["content"]
            if not isinstance(content, str):
                content = "\n".join(part["text"] for part in content)
            yield "result", block["tool_use_id"], content


def _typed(text: str) -> Iterator[Said]:
    command, typed = COMMAND.match(text), TYPED.search(text)
    if command is not None:
        yield "text", " ".join(filter(None, command.groups()))
    elif typed is not None:
        yield "text", typed[1]
    elif text and not OF_THE_PROGRAM.match(text):
        yield "text", text.strip("\n")


def until_again(said: list[Said]) -> list[Said]:
    return said[: said.index(("text", AGAIN)) + 1]


@pytest.mark.parametrize("name", sorted(set(CLAUDE) - {"compacted"}))
def test_a_conversation_is_what_claude_code_resumes(
    claude_recordings: Mapping[str, Recording], name: str
) -> None:
    recording = claude_recordings[name]
    shown = until_again(said_in(messages_of(recording.path)))
    assert shown == of_request(sent_by_claude(recording.resumed))


def test_after_a_compaction_all_is_still_there(
    claude_recordings: Mapping[str, Recording],
) -> None:
    recording = claude_recordings["compacted"]
    messages = messages_of(recording.path)
    sent = of_request(sent_by_claude(recording.resumed))
    said = until_again(said_in(messages))
    kept = sent.index(("text", "/compact shorter"))  # before it: what is sent again
    assert said[-len(sent[kept:]) :] == sent[kept:]
    assert said[: len(said) - len(sent[kept:])][-kept + 1 :] == sent[1:kept]
    assert said[0] == ("text", "Hello")
    blocks = [block for message in messages for block in message.blocks]
    notices = [block.text for block in blocks if isinstance(block, Notice)]
    assert notices[0] == "The conversation was compacted here (141 tokens before)."
    assert "They said hello." in notices[1]


@pytest.mark.parametrize("name", sorted(CLAUDE))
def test_the_tokens_are_those_that_the_server_told(
    claude_recordings: Mapping[str, Recording], name: str
) -> None:
    recording = claude_recordings[name]
    files = [recording.path, *recording.path.with_suffix("").rglob("*.jsonl")]
    spent = list(recording.tokens)
    if name == "compacted":
        del spent[3]  # the summary is in the file, its tokens are not
    messages = [message for path in files for message in messages_of(path, dropped=True)]
    assert sum(message.usage.total or 0 for message in messages if message.usage) == sum(spent)


def test_what_was_left_by_a_branch_is_rewound(claude_recordings: Mapping[str, Recording]) -> None:
    messages = messages_of(claude_recordings["branched"].path, dropped=True)
    left = [message for message in messages if message.dropped is Dropped.REWOUND]
    texts = [said[1] for said in said_in(left) if said[0] == "text"]
    assert texts == ["Two", "Second.", "Second ends.", "Three", "Other third."]


def endings(path: Path) -> list[tuple[str, str, int | None]]:
    calls = [block for message in messages_of(path) for block in message.blocks]
    return [
        (call.name, call.status.value, call.exit_code)
        for call in calls
        if isinstance(call, ToolCall)
    ]


def test_the_calls_ended_as_they_did(claude_recordings: Mapping[str, Recording]) -> None:
    done = [(name, "success", None) for name in ("Write", "Edit", "Read", "Read", "Edit", "Edit")]
    assert endings(claude_recordings["work"].path) == [
        ("Read", "success", None),
        ("Bash", "success", None),
        ("Write", "cancelled", None),
        ("Bash", "success", 3),
        ("Read", "error", None),
        *done,
        ("Write", "success", None),
        ("mcp__greeter__greet", "success", None),
        ("Write", "cancelled", None),
    ]
    assert endings(claude_recordings["killed"].path) == [("Write", "cancelled", None)]


def texts_of_files(path: Path) -> dict[str, str | None]:
    """Return what the last change of each file left, by the files' names."""
    calls = [block for message in messages_of(path) for block in message.blocks]
    changes = [
        call.display
        for call in calls
        if isinstance(call, ToolCall) and call.status is ToolStatus.SUCCESS
    ]
    return {change.name: change.new for change in changes if isinstance(change, DiffDisplay)}


def on_disk(recording: Recording, *names: str) -> dict[str, str | None]:
    """Return the texts of files; agents store them with the line ends of Unix."""
    return {name: (recording.project / name).read_text() for name in names}


def test_the_last_diffs_are_the_files_on_disk(
    claude_recordings: Mapping[str, Recording], qwen_recordings: Mapping[str, Recording]
) -> None:
    for recording in (claude_recordings["work"], qwen_recordings["work"]):
        files = texts_of_files(recording.path)
        assert files == on_disk(recording, NEW, OLD, CRLF, BARE)
        assert (recording.project / CRLF).read_bytes() == b"one\r\n2\r\n"


def test_a_session_has_its_title_and_cost(claude_recordings: Mapping[str, Recording]) -> None:
    path = claude_recordings["work"].path
    with SessionLog.read(path) as log:
        header = log.metadata
    (state,) = [line for line in path.read_text().splitlines() if "cost-state" in line][-1:]
    assert header["summary"] == TITLE
    assert header["cost"] == json.loads(state)["totalCostUSD"]
    assert estimate(path) == pytest.approx(header["cost"])


def estimate(*paths: Path) -> float:
    """Return what the answers in session files cost at list prices."""
    prices = load_prices()
    messages = [message for path in paths for message in messages_of(path)]
    costs = [
        prices.cost(message.model or "", message.usage, long=False)
        for message in messages
        if message.usage is not None
    ]
    return sum(cost or 0 for cost in costs)


def test_the_cost_of_a_session_contains_that_of_its_subagents(
    claude_recordings: Mapping[str, Recording],
) -> None:
    path = claude_recordings["subagents"].path
    subagents = list(path.with_suffix("").rglob("*.jsonl"))
    with SessionLog.read(path) as log:
        assert log.own_cost == pytest.approx(estimate(path, *subagents))
    assert estimate(path) < estimate(path, *subagents)


def test_a_subagent_has_a_session_of_its_own(claude_recordings: Mapping[str, Recording]) -> None:
    recording = claude_recordings["subagents"]
    files = {}
    for path in recording.path.with_suffix("").rglob("*.jsonl"):
        with SessionLog.read(path) as log:
            assert log.metadata["kind"] == "subagent"
            written = [name for outline in log.outlines for name in outline.writes]
            files[log.metadata["sessionId"]] = written
    calls = [block for message in messages_of(recording.path) for block in message.blocks]
    assert {call.agent_id for call in calls if isinstance(call, ToolCall)} == set(files)
    assert sorted(files.values()) == [[], [str(recording.project / NEW)]]


# --- any file of both ----------------------------------------------------------------------------


def recorded_files(*recordings: Mapping[str, Recording]) -> list[Path]:
    return [recording.path for names in recordings for recording in names.values()]


def test_a_file_may_be_cut_anywhere_and_grow_in_pieces(
    claude_recordings: Mapping[str, Recording],
    qwen_recordings: Mapping[str, Recording],
    tmp_path: Path,
) -> None:
    for path in recorded_files(claude_recordings, qwen_recordings):
        data = path.read_bytes()
        ends = [newline.end() for newline in re.finditer(b"\n", data)]
        ends = ends[data[: data.index(b'"type":"user"')].count(b"\n") :: 3]
        growing, cut = tmp_path / path.name, tmp_path / "cut.jsonl"
        growing.write_bytes(data[: ends[0]])
        with SessionLog.read(growing) as log:
            for end in ends[:-1]:
                cut.write_bytes(data[:end])
                growing.write_bytes(data[: (end + data.index(b"\n", end)) // 2])
                log.refresh()
                assert whole(log) == messages_of(cut, dropped=True)
            growing.write_bytes(data)
            log.refresh()
            assert whole(log) == messages_of(path, dropped=True)


def whole(log: SessionLog) -> list[Message]:
    transcript = transcript_of(log, dropped=True)
    return [transcript.read(index) for index in range(len(transcript.outlines))]


# --- what Qwen Code sends ------------------------------------------------------------------------


def sent_by_qwen(contents: Iterable[Mapping[str, Any]]) -> Iterator[Said]:
    for part in (part for content in contents for part in content["parts"]):
        match part:
            case {"thought": True, "text": text}:
                yield "thought", text.replace("*", "").strip("\n")
            case {"text": text}:
                if not text.startswith("<system-reminder>"):
                    yield "text", text
            case {"functionCall": call}:
                yield "call", call["id"], call["name"], json.dumps(call["args"], sort_keys=True)
            case {"functionResponse": reply}:
                yield "result", reply["id"], "".join(reply["response"].values())


def test_a_conversation_is_what_qwen_code_resumes(
    qwen_recordings: Mapping[str, Recording],
) -> None:
    recording = qwen_recordings["work"]
    shown = until_again(said_in(messages_of(recording.path)))
    assert shown == of_request(sent_by_qwen(recording.resumed))


def test_after_a_compression_by_qwen_code_all_is_still_there(
    qwen_recordings: Mapping[str, Recording],
) -> None:
    recording = qwen_recordings["compressed"]
    messages = messages_of(recording.path)
    said = until_again(said_in(messages))
    sent = of_request(sent_by_qwen(recording.resumed))
    after = sent[sent.index(("text", "Go on")) :]
    assert said[-len(after) :] == after
    assert said[0] == ("text", "Greet")
    blocks = [block for message in messages for block in message.blocks]
    assert [block.text for block in blocks if isinstance(block, Notice)] == [
        'Background agent "general-purpose: first" completed.',
        "The conversation was compressed here (9,000 tokens before).",
    ]


@pytest.mark.parametrize("name", sorted(QWEN))
def test_the_tokens_of_qwen_code_are_those_that_the_server_told(
    qwen_recordings: Mapping[str, Recording], name: str
) -> None:
    recording = qwen_recordings[name]
    session = recording.path.stem
    subagents = recording.path.parents[1].glob(f"subagents/{session}/*.jsonl")
    files = [recording.path, *subagents]
    usages = [message.usage for path in files for message in messages_of(path)]
    assert sum(usage.total or 0 for usage in usages if usage) == sum(recording.tokens)


def test_the_calls_of_qwen_code_ended_as_they_did(
    qwen_recordings: Mapping[str, Recording],
) -> None:
    done = ("write_file", "read_file", "read_file", "edit", "edit", "write_file")
    assert endings(qwen_recordings["work"].path) == [
        ("read_file", "success", None),
        ("run_shell_command", "success", 0),
        ("write_file", "cancelled", None),
        ("run_shell_command", "success", 3),
        ("read_file", "error", None),
        *((name, "success", None) for name in done),
        ("write_file", "cancelled", None),
        ("run_shell_command", "success", 0),
    ]


def test_a_subagent_of_qwen_code_has_a_session_of_its_own(
    qwen_recordings: Mapping[str, Recording],
) -> None:
    recording = qwen_recordings["compressed"]
    (path,) = recording.path.parents[1].glob("subagents/*/*.jsonl")
    with SessionLog.read(path) as log:
        written = [name for outline in log.outlines for name in outline.writes]
        subagent = log.metadata["sessionId"]
    calls = [block for message in messages_of(recording.path) for block in message.blocks]
    (asker,) = [call for call in calls if isinstance(call, ToolCall) and call.name == "agent"]
    assert (asker.agent_id, written) == (subagent, [str(recording.project / NEW)])
