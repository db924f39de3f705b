"""Sessions of several agents on the screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemtui.agents import Agent, Can, why_not
from tests.sessions.agents import claude_session, qwen_session
from tests.sessions.stores import uuid
from tests.ui.people import NARROW, person


async def test_rows_have_letters_and_keys_say_what_does_not_work(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(store.parent))
    monkeypatch.setenv("GEMINI_CLI_HOME", str(store.parent))
    claude_session(store.parent, uuid(1), prompt="Asked of Claude")
    qwen_session(store.parent, uuid(2), "Asked of Qwen")
    async with person(store, NARROW) as me:
        await me.sees("G Write a haiku file")
        await me.does("g", "/home/dev/notes")
        await me.does("g", "▾ Gemini CLI")
        await me.does("g / 'agent:qwen", "Q Asked of Qwen")
        await me.does("ctrl+u 'agent:claude", "C Asked of Claude")
        await me.lacks("Asked of Qwen")
        await me.press("escape", "Y")
        assert me.app.clipboard.endswith(f"claude --resume {uuid(1)}")
        await me.does("enter", "▌ Asked of Claude")
        await me.press("d")
        await me.is_told(why_not(Agent.CLAUDE, Can.DELETE))
        await me.does("i", "chat only; no written files are known")
