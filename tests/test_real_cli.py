"""Sessions that the real Gemini CLI writes, while it writes them and after."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.read.conversation import records_of, transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.watch import StoreChange, watch
from gemtui.transcript.model import (
    Author,
    Block,
    DiffDisplay,
    Text,
    Thought,
    ToolCall,
    ToolStatus,
    Transcript,
)
from gemtui.transcript.usage import Usage
from tests.conftest import A_WHILE
from tests.model_server import Gate, ModelServer, answer, call, text, thought, usage
from tests.patience import PATIENCE
from tests.real_cli import MODEL, GeminiCli

pytestmark = pytest.mark.covers("gemtui/sessions", "gemtui/transcript", "gemtui/agent")

PROMPT = "Change the greeting from hello to bye, then run it"
READ = call("read_file", file_path="hello.py")
EDIT = call(
    "replace",
    file_path="hello.py",
    instruction="Say bye",
    old_string="print('hello')",
    new_string="print('bye')",
)
MISSED = call(
    "replace",
    file_path="hello.py",
    instruction="Say good night",
    old_string="print('good evening')",
    new_string="print('good night')",
)
SHELL = call("run_shell_command", command="echo it ran; exit 3", description="Run it")


def only(snapshot: Snapshot) -> Summary:
    (summary,) = (each for each in snapshot.sessions if not each.hidden)
    return summary


def load(index: Index) -> Snapshot:
    return index.load(publish=lambda snapshot: None, cancelled=lambda: False)


def blocks_of(transcript: Transcript) -> list[Block]:
    return [block for message in transcript for block in message.blocks]


# --- afterwards --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(gemini_program: Path, tmp_path_factory: pytest.TempPathFactory) -> GeminiCli:
    """A home in which the CLI wrote one session, some minutes ago; tests only read it."""
    gemini = GeminiCli.set_up(gemini_program, tmp_path_factory.mktemp("written"))
    (gemini.project / "hello.py").write_text("print('hello')\n")
    turns = [
        answer(thought("Looking", "I read the file."), READ, tokens=usage(1000, 20, 7, cached=600)),
        answer(EDIT, MISSED, tokens=usage(1100, 30)),
        answer(SHELL, tokens=usage(1200, 40)),
        answer(text("It says "), text("**bye** now."), tokens=usage(1300, 10, cached=900)),
    ]
    with ModelServer(turns) as model, gemini.start(model, PROMPT) as run:
        events = run.finish()
    assert events[-1]["status"] == "success"
    (path,) = gemini.store.glob("tmp/*/chats/*.jsonl")
    before = time.time() - A_WHILE
    os.utime(path, (before, before))
    return gemini


@pytest.mark.every_run
def test_a_session_just_written_is_read_right(written: GeminiCli) -> None:
    summary = only(load(Index(written.store, cache=None)))
    with SessionLog(summary.path) as log:
        log.refresh()
        assert (log.problems, log.torn) == ((), False)
        transcript = transcript_of(log)
        blocks = blocks_of(transcript)

    assert [message.author for message in transcript][:2] == [Author.USER, Author.MODEL]
    assert blocks[0] == Text(text=PROMPT)
    assert blocks[-1] == Text(text="It says **bye** now.")
    (idea,) = (block for block in blocks if isinstance(block, Thought))
    assert (idea.subject, idea.description) == ("Looking", "I read the file.")

    read, edit, missed, shell = (block for block in blocks if isinstance(block, ToolCall))
    assert (read.name, read.status) == ("read_file", ToolStatus.SUCCESS)
    assert "print('hello')" in (read.output or "")
    assert edit.status is ToolStatus.SUCCESS
    assert isinstance(edit.display, DiffDisplay)
    assert (edit.display.added, edit.display.removed, edit.display.is_new) == (1, 1, False)
    assert edit.display.path == str(written.project / "hello.py")
    assert "+print('bye')" in edit.display.diff
    assert missed.status is ToolStatus.ERROR
    assert missed.error
    assert (shell.status, shell.exit_code) == (ToolStatus.SUCCESS, 3)
    assert shell.args["command"] == "echo it ran; exit 3"
    assert transcript.usage == Usage(
        input=4600, output=100, cached=1500, thoughts=7, tool=0, total=4707
    )


def test_the_summary_of_a_session_just_written(written: GeminiCli) -> None:
    summary = only(load(Index(written.store, cache=None)))
    assert (summary.title, summary.title_source) == (PROMPT, "prompt")
    assert summary.project == str(written.project)
    assert summary.project_key == "greeter"
    assert (summary.prompts, summary.tool_calls, summary.tool_failures) == (1, 4, 1)
    assert summary.models == (MODEL,)
    assert summary.tokens.total == 4707
    assert summary.files_written == (str(written.project / "hello.py"),)
    assert not summary.flags


def test_the_commands_show_a_session_just_written(written: GeminiCli) -> None:
    def gemtui(*words: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "gemtui", *words],
            cwd=written.project,
            env={**os.environ, "GEMINI_CLI_HOME": str(written.home)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            encoding="utf-8",
        ).stdout

    (session,) = json.loads(gemtui("sessions", "--files", "--json"))["sessions"]
    assert (session["title"], session["tool_failures"]) == (PROMPT, 1)

    stored = json.loads(gemtui("show", "latest", "--format", "json"))
    assert stored["session"] == session
    assert (stored["dropped"], stored["problems"]) == ([], [])
    calls = [each for record in stored["messages"] for each in record.get("toolCalls", ())]
    assert [each["name"] for each in calls] == [
        "read_file",
        "replace",
        "replace",
        "run_shell_command",
    ]

    unified = json.loads(gemtui("show", session["id"], "--format", "unified"))
    assert [message["role"] for message in unified] == ["user", *["assistant"] * 4]
    assert unified[1]["content"][0] == {"type": "thinking", "thinking": "Looking: I read the file."}
    assert [block["type"] for block in unified[2]["content"]] == ["tool_use", "tool_result"] * 2
    assert unified[2]["content"][3]["is_error"] is True
    assert unified[-1]["content"] == [{"type": "text", "text": "It says **bye** now."}]
    assert {message["tool"] for message in unified} == {"gemini"}

    plain = gemtui("show", session["id"][:8])
    for fact in (PROMPT, "run_shell_command", "echo it ran; exit 3", "+print('bye')", "**bye**"):
        assert fact in plain


# --- meanwhile ---------------------------------------------------------------------------------


class Watching:
    """What a reader does who looks on: after each change the index and the open log read on."""

    def __init__(self, home: Path, changes: AsyncIterator[StoreChange]) -> None:
        self.index = Index(home, cache=None)
        self.log: SessionLog | None = None
        self.sizes: list[int] = []
        self._changes = changes

    async def until(self, holds: Callable[[Summary], bool]) -> Summary:
        """Follow the changes until the one session is as wanted."""
        while True:
            changed = await asyncio.wait_for(anext(self._changes), PATIENCE)
            snapshot = await asyncio.to_thread(self.index.update, changed.paths)
            for summary in snapshot.sessions:
                self._read_on(summary)
                if not summary.hidden and holds(summary):
                    return summary

    def _read_on(self, summary: Summary) -> None:
        if self.log is None:
            self.log = SessionLog(summary.path)
        if self.log.refresh():
            self.sizes.append(self.log.size)


async def test_a_session_is_seen_while_it_is_written(gemini: GeminiCli) -> None:
    (gemini.project / "hello.py").write_text("print('hello')\n")
    first, second = Gate(), Gate()
    turns = [answer(thought("Looking"), READ, after=first), answer(text("Done."), after=second)]
    watching = Watching(gemini.store, watch(gemini.store))
    with ModelServer(turns) as model, gemini.start(model, PROMPT) as run:
        asked = await watching.until(lambda session: session.prompts == 1)
        assert (asked.title, asked.tool_calls, asked.messages) == (PROMPT, 0, 1)
        assert "live" in asked.flags
        first.open()
        called = await watching.until(lambda session: session.tool_calls == 1)
        assert (called.id, called.messages) == (asked.id, 2)
        second.open()
        ended = await watching.until(lambda session: session.messages == 3)
        await asyncio.to_thread(run.finish)

    log = watching.log
    assert log is not None
    log.refresh()
    assert watching.sizes == sorted(set(watching.sizes))
    assert len(watching.sizes) >= 3
    with log, SessionLog(log.path) as fresh:
        fresh.refresh()
        assert list(transcript_of(log)) == list(transcript_of(fresh))
        assert list(records_of(log)) == list(records_of(fresh))
        assert log.outlines == fresh.outlines
        assert blocks_of(transcript_of(log))[-1] == Text(text="Done.")
    again = only(load(Index(gemini.store, cache=None)))
    assert (again.messages, again.tokens) == (ended.messages, ended.tokens)
