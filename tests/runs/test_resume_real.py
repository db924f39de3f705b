"""Resuming with the real CLI: the session is still there after its next start (contract 1.6)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from gemtui.agent.events import AgentEvent, Done, DoneStatus
from gemtui.agent.folder import Request, RunFolder
from gemtui.agent.gemini import GeminiAdapter
from gemtui.agent.options import AgentOptions
from gemtui.policy.rules import ApprovalMode
from gemtui.runs.resume import Aftermath, ResumeGuard, aftermath_of, kept_of, restore
from gemtui.sessions.index import Index
from gemtui.sessions.load import transcript_of
from gemtui.sessions.records import SessionLog
from gemtui.transcript.model import Text
from tests.model_server import ModelServer, answer, text
from tests.real_cli import MODEL, PATIENCE, VERSION, GeminiCli


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(pytestconfig.cache.mkdir("gemtui-cache")))


class Chat:
    """Runs of the CLI, one after the other, each answered by one word."""

    def __init__(self, gemini: GeminiCli, *, guarded: bool = True) -> None:
        self.gemini = gemini
        self.runs = gemini.folder / "runs"
        self._guard = ResumeGuard() if guarded else None

    async def ask(self, prompt: str, said: str, *, resume: str | None = None) -> Done:
        with ModelServer([answer(text(said))]) as model:
            environ = self.gemini.environment(model.url)
            adapter = GeminiAdapter(
                cli=self.gemini.program, runs=self.runs, environ=environ, guard=self._guard
            )
            events = await self._all(adapter, prompt, resume)
        done = events[-1].payload
        assert isinstance(done, Done)
        assert done.status is DoneStatus.SUCCESS
        return done

    async def _all(
        self, adapter: GeminiAdapter, prompt: str, resume: str | None
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


@pytest.mark.skipif(VERSION.startswith("0.4"), reason="this version spares the session")
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
    kept = kept_of(kept_by)
    assert kept is not None
    assert aftermath_of(kept_by) == Aftermath(lost=(real,))
    assert restore(kept) == (real,)
    assert chat.said(id) == ALL[:2]
    await chat.ask("which?", "Plum again.", resume=id)
    assert chat.said(id) == ALL
