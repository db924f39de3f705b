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
from gemtui.transcript.model import (
    Image,
    Message,
    Text,
    Thought,
    ToolCall,
)
from tests.agents.recordings import AGAIN, CLAUDE, Recording

pytestmark = pytest.mark.covers("gemtui/sessions", "gemtui/transcript", "tests/agents")

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

OF_THE_PROGRAM = re.compile(r"<(?!command-name)[a-z-]+>|\[(Request interrupted|Image: source)")
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
