"""A CLI that waits for its prompt, on the real CLI: what the model gets, and what is left."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gemtui.agent import process_tree
from gemtui.agent.adapter import GeminiRun
from gemtui.agent.approval import Approval, ApprovalRequest, answer_questions
from gemtui.agent.options import AgentOptions
from gemtui.agent.ready import ReadyCli
from gemtui.paths import runs_dir
from gemtui.runs.listing import list_runs
from tests.gated import asked, asking
from tests.model_server import ModelServer, answer, call, text
from tests.patience import until
from tests.real_cli import MODEL, GeminiCli
from tests.terminal import Terminal

pytestmark = pytest.mark.covers("gemtui/runs", "gemtui/agent", "gemtui/kept")
HOUR = 3600.0
ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def loaded(cli: GeminiCli, ready: ReadyCli | None) -> ReadyCli:
    """Wait until the CLI has made its session's file, which it does before it reads its prompt."""
    assert ready is not None
    id = ready.waiting.request.about["session_id"]
    assert id is not None
    until(lambda: list(cli.store.glob(f"tmp/*/chats/*{id[:8]}*")))
    return ready


def end_of(run: GeminiRun) -> str:
    async def follow() -> str:
        return [event.type async for event in run.events()][-1]

    return asyncio.run(follow())


def requested(model: ModelServer) -> str:
    """What the model was asked last, without the ids that differ between two runs."""
    body: Mapping[str, Any] = model.asked[-1].body
    return ID.sub("", repr(body))


@pytest.mark.parametrize(
    "prompt",
    ["/greet Ada", "\n ünï @notes.txt\n" + "x" * 1_000_000],
    ids=["a custom command", "a long prompt with a file"],
)
def test_the_model_gets_the_same_from_a_cli_that_waited(gemini: GeminiCli, prompt: str) -> None:
    (gemini.project / "notes.txt").write_text("Remember the milk.\n")
    (gemini.store / "commands").mkdir()
    (gemini.store / "commands/greet.toml").write_text('prompt = "Say hello to {{args}}."')
    options = AgentOptions(cwd=gemini.project, model=MODEL)
    with ModelServer([answer(text("Hi.")), answer(text("Hi."))]) as model:
        adapter = asking(gemini, model)
        ready = loaded(gemini, adapter.prepare(prompt[0], options, seconds=HOUR))
        run = adapter.start(prompt, options, ready=ready)
        assert run.folder == ready.folder
        assert end_of(run) == "done"
        first = requested(model)
        assert end_of(adapter.start(prompt, options)) == "done"
        assert requested(model) == first


def test_a_cli_that_waited_asks_and_resumes(gated: GeminiCli) -> None:
    options = asked(gated)
    turns = [
        answer(call("run_shell_command", command="touch made")),
        answer(text("Made.")),
        answer(text("Again.")),
    ]

    async def allow(_: ApprovalRequest) -> Approval:
        return Approval.allow()

    async def allowed(run: GeminiRun) -> str:
        late: list[ApprovalRequest] = []
        answering = asyncio.ensure_future(answer_questions(run.gate, allow, late.append))
        events = [event.type async for event in run.events()]
        answering.cancel()
        return events[-1]

    with ModelServer(turns) as model:
        adapter = asking(gated, model)
        ready = loaded(gated, adapter.prepare("m", options, seconds=HOUR))
        run = adapter.start("make it", options, ready=ready)
        assert run.folder == ready.folder
        assert asyncio.run(allowed(run)) == "done"
        assert (gated.project / "made").exists()
        (session,) = gated.store.glob("tmp/*/chats/*.jsonl")
        earlier = re.sub(r"T\d\d-\d\d", "T00-00", session.name).replace("2026", "2025")
        session = session.rename(session.with_name(earlier))
        id = run.request.about["session_id"]
        again = replace(options, resume=id)
        resuming = adapter.prepare("a", again, seconds=HOUR)
        assert resuming is not None
        until(lambda: len(list(gated.store.glob("tmp/*/chats/*.jsonl"))) == 2)
        until(lambda: list(gated.store.glob("tmp/*/chats/*.jsonl")) == [session])
        run = adapter.start("and again", again, ready=resuming)
        assert run.folder == resuming.folder
        assert end_of(run) == "done"
        assert "make it" in requested(model)
    assert list(gated.store.glob("tmp/*/chats/*.jsonl")) == [session]
    assert "and again" in session.read_text()


def test_nothing_is_left_of_a_waiting_cli_when_gemtui_is_killed(
    on_loopback: GeminiCli, relaunching: None
) -> None:
    with ModelServer([]) as model:
        environ = {**os.environ, "GOOGLE_GEMINI_BASE_URL": model.url}
        words = [sys.executable, "-m", "gemtui"]
        with Terminal(words, environ=environ, folder=on_loopback.project) as terminal:
            terminal.shows("No sessions here yet")
            terminal.press("2")
            terminal.shows("enter starts a run", "gemini 0.61.0")
            terminal.press("hello")
            chats = f"tmp/{on_loopback.name}/chats/*"
            terminal.until(lambda: any(on_loopback.store.glob(chats)), "a session's file")
            (folder,) = runs_dir().iterdir()
            assert len(process_tree.tagged(folder.name)) == 2
            assert not list_runs(runs_dir())
            terminal.process.send_signal(signal.SIGKILL)
            until(lambda: not folder.exists())
        assert not process_tree.tagged(folder.name)
        assert not list(on_loopback.store.glob(chats))
        assert not list(Path(os.environ["TMPDIR"]).glob("gemtui-*"))
        assert not model.requests
