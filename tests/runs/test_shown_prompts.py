"""The prompts that a transcript shows, found in the stored session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from gemtui.runs.undo.shown_prompts import prompt_numbers
from gemtui.sessions.catalog.index import Index
from gemtui.transcript.model import Author, Message, Text, ToolCall, ToolStatus, Transcript
from tests.sessions import logs
from tests.sessions.stores import session, uuid

Turns = Sequence[tuple[str, str]]
"""Prompts, each with the id of the call that follows it, or ""."""


def stored(home: Path, turns: Turns) -> None:
    records = [logs.header(uuid(1))]
    for number, (prompt, call) in enumerate(turns):
        calls = [logs.call(call)] if call else []
        records.append(logs.user(f"u{number}", prompt, number * 10 + 1))
        records.append(logs.gemini(f"g{number}", f"Answer {number}.", number * 10 + 2, toolCalls=calls))
    session(home, uuid(1), records)


def shown(turns: Turns) -> Transcript:
    messages = []
    for number, (prompt, call) in enumerate(turns):
        messages.append(Message(id=f"p{number}", author=Author.USER, blocks=(Text(text=prompt),), prompt=True))
        calls = (ToolCall(id=call, name="t", args={}, status=ToolStatus.SUCCESS),) if call else ()
        messages.append(Message(id=f"a{number}", author=Author.MODEL, blocks=calls))
    return Transcript.of(messages)


@pytest.mark.parametrize(
    ("on_screen", "in_session", "numbers"),
    [
        ([("a", ""), ("b", "")], [("a", ""), ("b", "")], [1, 2]),
        ([("b", ""), ("c", "")], [("a", ""), ("b", ""), ("c", "")], [2, 3]),
        ([("a", ""), ("b", "")], [("a", ""), ("sent meanwhile", ""), ("b", "")], [1, 3]),
        ([("a", ""), ("failed", ""), ("a", "")], [("a", ""), ("a", "")], [1, None, 2]),
        ([("a", "c1"), ("a", "")], [("a", "c1")], [1, None]),
        ([("a", "c1")], [("a", "c1"), ("a", "c2")], [1]),
        ([("a", "c2"), ("b", "")], [("a", "c1"), ("x", ""), ("a", "c2"), ("b", "")], [3, 4]),
        ([("a", ""), ("/fix it", ""), ("b", "")], [("a", ""), ("The whole command", ""), ("b", "")], [1, 2, 3]),
        ([("/fix", "c1"), ("b", "")], [("The whole command", "c1"), ("b", "")], [1, 2]),
        ([("a", ""), ("failed", ""), ("b", "")], [("a", ""), ("another", ""), ("b", "")], [1, None, 3]),
        ([("gone", "")], [("a", "")], [None]),
    ],
    ids=[
        "whole", "later part", "sent meanwhile", "one failed", "second failed", "older run", "twice", "command",
        "command with calls", "another program's", "none",
    ],
)  # fmt: skip
def test_each_prompt_on_the_screen_is_found_in_the_session_or_not_at_all(
    home: Path, on_screen: Turns, in_session: Turns, numbers: list[int | None]
) -> None:
    stored(home / ".gemini", in_session)
    found = prompt_numbers(shown(on_screen), Index(home / ".gemini", cache=None).find(uuid(1)))
    assert [found.get(2 * at) for at in range(len(on_screen))] == numbers
