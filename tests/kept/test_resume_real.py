"""Resuming with the real CLI: the session is still there after its next start."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gemtui.agent.adapter import GeminiRun, UnguardedAdapter
from gemtui.agent.events import AgentEvent, Done, DoneStatus
from gemtui.agent.options import AgentOptions
from gemtui.agent.run_folder import Request, RunFolder
from gemtui.kept.resume_guard import ResumeGuard
from gemtui.kept.run_copies import Aftermath, aftermath_of, backup_of
from gemtui.policy.model.rules import ApprovalMode
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.transcript.model import Text
from tests.model_server import Answer, Gate, ModelServer, answer, call, text
from tests.patience import PATIENCE, turns_until
from tests.real_cli import MODEL, VERSION, GeminiCli

pytestmark = [
    pytest.mark.usefixtures("remembered_help"),
    pytest.mark.covers("gemtui/agent", "gemtui/runs"),
]


class Chat:
    """Runs of the CLI, one after the other, each answered by one word."""

    def __init__(self, gemini: GeminiCli, *, guarded: bool = True) -> None:
        self.gemini = gemini
        self.runs = gemini.folder / "runs"
        self._guard = ResumeGuard() if guarded else None

    async def ask(self, prompt: str, said: str, *, resume: str | None = None) -> Done:
        with ModelServer([answer(text(said))]) as model:
            environ = self.gemini.environment(model.url)
            adapter = UnguardedAdapter(
                cli=self.gemini.program, runs=self.runs, environ=environ, guard=self._guard
            )
            events = await self._all(adapter, prompt, resume)
        done = events[-1].payload
        assert isinstance(done, Done)
        assert done.status is DoneStatus.SUCCESS
        return done

    async def _all(
        self, adapter: UnguardedAdapter, prompt: str, resume: str | None
    ) -> list[AgentEvent]:
        options = AgentOptions(
            cwd=self.gemini.project, model=MODEL, approval_mode=ApprovalMode.YOLO, resume=resume
        )
        async with asyncio.timeout(PATIENCE):
            return [event async for event in adapter.run(prompt, options)]

    def last(self) -> RunFolder:
        return RunFolder(max(self.runs.iterdir(), key=lambda path: path.stat().st_ctime_ns))

    def files(self, id: str) -> list[Path]:
        return sorted(self.gemini.store.glob(f"tmp/*/chats/session-*-{id[:8]}.jsonl"))

    def said(self, id: str) -> list[str]:
        found = Index(self.gemini.store, cache=None).find(id)
        with SessionLog(found.path) as log:
            log.refresh()
            blocks = [block for message in transcript_of(log) for block in message.blocks]
        return [block.text for block in blocks if isinstance(block, Text)]

    def make_older(self, id: str) -> Path:
        """As if the session had begun years ago: the CLI goes by the name."""
        (path,) = self.files(id)
        return path.rename(path.with_name(f"session-2020-01-01T00-00-{id[:8]}.jsonl"))


ALL = ["a word?", "Plum.", "which?", "Plum again."]


def _resuming(id: str) -> Request:
    return Request(id="r1", argv=("gemini",), cwd="/", environ={}, about={"resume": id})


async def first(chat: Chat) -> str:
    done = await chat.ask("a word?", "Plum.")
    assert done.resume_token is not None
    return done.resume_token


@pytest.mark.parametrize("clean_up", [True, False])
async def test_a_resume_in_a_later_minute_costs_nothing(gemini: GeminiCli, clean_up: bool) -> None:
    settings = json.loads((gemini.store / "settings.json").read_text())
    settings["general"]["sessionRetention"] = {"enabled": clean_up}
    (gemini.store / "settings.json").write_text(json.dumps(settings))
    chat = Chat(gemini)
    id = await first(chat)
    real = chat.make_older(id)
    await chat.ask("which?", "Plum again.", resume=id)
    aftermath = aftermath_of(chat.last())
    assert aftermath is not None
    (ghost,) = aftermath.ghosts
    assert ghost.name.endswith(f"-{id[:8]}.jsonl")
    assert chat.files(id) == [real]
    await chat.ask("another", "ok")
    assert chat.files(id) == [real]
    assert chat.said(id) == ALL


async def test_a_resume_in_the_same_minute_is_told_apart(gemini: GeminiCli) -> None:
    chat = Chat(gemini)
    id = await first(chat)
    (real,) = chat.files(id)
    before = real.read_bytes()
    await chat.ask("which?", "Plum again.", resume=id)
    aftermath = aftermath_of(chat.last())
    assert aftermath is not None
    assert aftermath == Aftermath() or len(aftermath.ghosts) == 1, "the minute may have passed"
    assert chat.files(id) == [real]
    assert real.read_bytes().startswith(before)
    await chat.ask("another", "ok")
    assert chat.said(id) == ALL


def _resumed(chat: Chat, id: str, model: ModelServer) -> GeminiRun:
    """A run that goes on with a session, started and left alone: nobody follows it."""
    adapter = UnguardedAdapter(
        cli=chat.gemini.program,
        runs=chat.runs,
        environ=chat.gemini.environment(model.url),
        guard=ResumeGuard(),
    )
    options = AgentOptions(
        cwd=chat.gemini.project, model=MODEL, approval_mode=ApprovalMode.YOLO, resume=id
    )
    return adapter.start("which?", options)


def in_a_tool(gate: Gate) -> list[Answer]:
    """A run that has made a tool call and waits at the gate for its last answer."""
    return [
        answer(call("run_shell_command", command="echo hi")),
        answer(text("Plum again."), after=gate),
    ]


async def test_a_chat_that_the_cli_removes_under_a_run_comes_back_without_what_the_run_wrote_before(
    gemini: GeminiCli,
) -> None:
    """The supervisor is stopped meanwhile: the worst moment for a start of the plain CLI."""
    chat, gate = Chat(gemini), Gate()
    id = await first(chat)
    real = chat.make_older(id)
    with ModelServer(in_a_tool(gate)) as model:
        run = _resumed(chat, id, model)
        await turns_until(lambda: (owner := run.folder.owner()) and owner.cli)
        owner = run.folder.owner()
        assert owner is not None
        os.kill(owner.pid, signal.SIGSTOP)
        await turns_until(gate.reached.is_set)
        assert len(chat.files(id)) == 2, "the CLI takes better care now: the keeper may go"
        assert id not in chat.gemini.plain_list()
        assert real not in chat.files(id)
        gate.open()
        await turns_until(lambda: b'"result"' in run.folder.stdout.read_bytes())
        os.kill(owner.pid, signal.SIGCONT)
        await run.wait()
        assert id in chat.gemini.plain_list()
    assert (chat.files(id), chat.said(id)) == ([real], [*ALL[:2], ALL[-1]])
    aftermath = aftermath_of(run.folder)
    assert aftermath is not None
    assert aftermath.restored == (real,)


@pytest.mark.parametrize("whom", ["gemtui", "supervisor"])
async def test_a_resumed_run_outlives_who_is_killed(gemini: GeminiCli, whom: str) -> None:
    chat, gate = Chat(gemini), Gate()
    id = await first(chat)
    real = chat.make_older(id)
    with ModelServer(in_a_tool(gate)) as model:
        environ = gemini.environment(model.url) | {
            "XDG_STATE_HOME": str(gemini.folder / "state"),
            "PATH": f"{gemini.program.parent}:{os.environ['PATH']}",
        }
        words = ["run", "which?", "--resume", id, "--approval-mode", "yolo", "-m", MODEL]
        gemtui = subprocess.Popen(
            [sys.executable, "-m", "gemtui", *words],
            cwd=gemini.project,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        await turns_until(gate.reached.is_set)
        runs = gemini.folder / "state/gemtui/runs"
        folder = RunFolder(next(path for path in runs.iterdir() if path.is_dir()))
        owner = folder.owner()
        assert owner is not None
        gemtui.kill()
        gemtui.wait()
        assert chat.files(id) == [real], "the ghost is gone while the run goes on"
        if whom == "supervisor":
            os.kill(owner.pid, signal.SIGKILL)
        else:
            assert id in chat.gemini.plain_list()
            gate.open()
        await turns_until(folder.exit)
        assert id in chat.gemini.plain_list()
    aftermath = aftermath_of(folder)
    assert aftermath is not None
    assert (len(aftermath.ghosts), aftermath.restored) == (1, ())
    assert chat.files(id) == [real]
    assert chat.said(id)[: len(ALL) - 1] == ALL[:-1], "both prompts are in the file"


@pytest.mark.skipif(VERSION.startswith("0.4"), reason="this version spares the session")
@pytest.mark.every_run
async def test_a_session_that_the_cli_removed_comes_back(gemini: GeminiCli) -> None:
    chat = Chat(gemini)
    id = await first(chat)
    real = chat.make_older(id)
    unguarded = Chat(gemini, guarded=False)
    kept_by = RunFolder.create(gemini.folder / "kept", "r1")
    ResumeGuard().before(kept_by, _resuming(id), {"GEMINI_CLI_HOME": str(gemini.home)})
    await unguarded.ask("which?", "Plum again.", resume=id)
    await unguarded.ask("another", "ok")
    assert chat.files(id) == [], "the CLI takes better care now: the guard may go"
    ResumeGuard().after(kept_by)
    kept = backup_of(kept_by)
    assert kept is not None
    aftermath = aftermath_of(kept_by)
    assert aftermath is not None
    assert aftermath.restored == (real,)
    assert chat.said(id) == ALL[:2]
    await chat.ask("which?", "Plum again.", resume=id)
    assert chat.said(id) == ALL
