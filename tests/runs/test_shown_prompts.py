"""The prompts that a transcript shows, found in the stored session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from gemtui.errors import UndoError
from gemtui.runs.undo.shown_prompts import prompt_numbers
from gemtui.sessions.catalog.index import Index
from gemtui.transcript.model import Author, Message, Text, ToolCall, ToolStatus, Transcript
from gemtui.ui.undo.checkpoint_marks import prompt_at
from tests.rows import each_row, table
from tests.sessions import logs
from tests.sessions.stores import session, uuid

Turns = Sequence[tuple[str, str]]
"""Prompts, each with the id of the call that follows it, or ""."""


def turns_of(text: str) -> Turns:
    """The prompts of a row: `a: c1, b` is a prompt with a call, and one without."""
    return [
        (prompt, call) for prompt, _, call in (turn.partition(": ") for turn in text.split(", "))
    ]


def stored(home: Path, turns: Turns) -> None:
    records = [logs.header(uuid(1))]
    for number, (prompt, call) in enumerate(turns):
        calls = [logs.call(call)] if call else []
        records.append(logs.user(f"u{number}", prompt, number * 10 + 1))
        records.append(
            logs.gemini(f"g{number}", f"Answer {number}.", number * 10 + 2, toolCalls=calls)
        )
    session(home, uuid(1), records)


def shown(turns: Turns) -> Transcript:
    messages = []
    for number, (prompt, call) in enumerate(turns):
        messages.append(
            Message(id=f"p{number}", author=Author.USER, blocks=(Text(text=prompt),), prompt=True)
        )
        calls = (ToolCall(id=call, name="t", args={}, status=ToolStatus.SUCCESS),) if call else ()
        messages.append(Message(id=f"a{number}", author=Author.MODEL, blocks=calls))
    return Transcript.of(messages)


@each_row("promise, on_screen, in_session, numbers", table("runs/shown_prompts.json"))
def test_each_prompt_on_the_screen_is_found_in_the_session_or_not_at_all(
    home: Path, promise: str, on_screen: str, in_session: str, numbers: list[int | None]
) -> None:
    prompts = turns_of(on_screen)
    stored(home / ".gemini", turns_of(in_session))
    found = prompt_numbers(shown(prompts), Index(home / ".gemini", cache=None).find(uuid(1)))
    assert [found.get(2 * at) for at in range(len(prompts))] == numbers


def test_undo_in_the_run_pane_means_the_prompt_of_a_message_after_one_sent_while_it_worked(
    home: Path,
) -> None:
    stored(home / ".gemini", turns_of("a: c1, sent meanwhile, b: c2"))
    session = Index(home / ".gemini", cache=None).find(uuid(1))
    on_screen = shown(turns_of("a: c1, b: c2"))
    assert [prompt_at(on_screen, message)(session) for message in range(4)] == [1, 1, 3, 3]
    with pytest.raises(UndoError, match="can't find this prompt"):
        prompt_at(shown(turns_of("failed")), 0)(session)
