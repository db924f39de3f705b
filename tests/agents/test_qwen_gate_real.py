"""Runs of the real Qwen Code, which asks gemtui before its calls."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gemtui import AgentOptions, Approval, ApprovalRequest, GeminiAdapter
from gemtui.agent.agent_run import AgentRun
from gemtui.agent.approval import answer_questions
from gemtui.agent.events import AgentEvent, Done, DoneStatus, ToolResult
from gemtui.agent.qwen import OWN_RULES
from gemtui.agents import Agent
from gemtui.calls.effects import ANNOUNCED
from tests.agents.programs import QWEN_SETTINGS, Qwen
from tests.model_server import ModelServer, Part, answer, call, shell, text
from tests.patience import PATIENCE

pytestmark = [
    pytest.mark.covers("gemtui/agent", "gemtui/calls", "gemtui/runs", "tests/agents"),
    pytest.mark.timeout(600),  # the first test installs the program
]

Answer = Callable[[ApprovalRequest], Awaitable[Approval]]
ALLOWED = {"permissions": {"allow": ["write_file", "edit", "run_shell_command"]}}


class Work:
    """A home, a project, and gemtui's adapter for them."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.qwen = Qwen(program, folder / "qwen").set_up()
        self.project = self.qwen.project
        self.asked: list[ApprovalRequest] = []
        self.requests: list[str] = []
        self.notes = ""

    def allow_all(self) -> None:
        """Let the settings of the user and of the project allow the calls."""
        settings = {**QWEN_SETTINGS, **ALLOWED}
        (self.qwen.home / ".qwen/settings.json").write_text(json.dumps(settings))
        (self.project / ".qwen").mkdir()
        (self.project / ".qwen/settings.json").write_text(json.dumps(ALLOWED))

    def write(self, name: str, content: str) -> Part:
        return call("write_file", file_path=str(self.project / name), content=content)

    def ask(
        self, *turns: Any, answer: Answer, prompt: str = "Do it", **more: Any
    ) -> list[AgentEvent]:
        """Run a prompt to its end and return the events."""
        with ModelServer(turns) as model:
            try:
                ran = self._run(model.url, prompt, answer, **more)
                return asyncio.run(asyncio.wait_for(ran, PATIENCE))
            finally:
                self.requests = [json.dumps(request.body) for request in model.requests]

    async def _run(self, url: str, prompt: str, answer: Answer, **more: Any) -> list[AgentEvent]:
        environ = {**os.environ, **self.qwen.environment(url)}
        runs = self.qwen.folder / "runs"
        adapter = GeminiAdapter(cli=self.qwen.program, runs=runs, environ=environ)
        seen = more.pop("seen", None)
        more = {"model": "gemini-2.5-flash", "cwd": self.project, "approve": answer, **more}
        run: AgentRun = await adapter.begin(prompt, AgentOptions(agent=Agent.QWEN, **more))
        self.notes = str(run.request.about["notes"])

        async def approve(request: ApprovalRequest) -> Approval:
            self.asked.append(request)
            return await answer(request)

        answering = asyncio.ensure_future(answer_questions(run.gate, approve, lambda _: None))
        events = []
        try:
            async for event in run.owned_events():
                events.append(event)
                if seen is not None:
                    seen(event, run)
        finally:
            answering.cancel()
        return events


def done(events: list[AgentEvent]) -> Done:
    payload = events[-1].payload
    assert isinstance(payload, Done)
    return payload


def results(events: list[AgentEvent]) -> list[str]:
    return [event.payload.status for event in events if isinstance(event.payload, ToolResult)]


async def by_name(request: ApprovalRequest) -> Approval:
    """Deny what names `denied`, change what names `changed`, and allow the rest."""
    named = json.dumps(request.arguments)
    if "changed" in named:
        return Approval.allow({**request.arguments, "content": "mine"})
    if "raises" in named:
        raise RuntimeError("a fault of the program that answers")
    return Approval.deny("use tabs") if "denied" in named else Approval.allow()


@pytest.fixture
def work(qwen_program: Path, tmp_path: Path) -> Work:
    return Work(qwen_program, tmp_path)


@pytest.mark.parametrize("rules", ["no rules", "rules that allow all"])
def test_a_call_is_made_only_if_it_was_allowed(rules: str, work: Work) -> None:
    if rules != "no rules":
        work.allow_all()
    (work.project / "old.txt").write_text("one\ntwo\n")
    old = str(work.project / "old.txt")
    events = work.ask(
        answer(text("No."), work.write("denied.txt", "x")),
        answer(text("Fault."), work.write("raises.txt", "x")),
        answer(text("Mine."), work.write("changed.txt", "x")),
        answer(text("Run."), shell("touch denied")),
        answer(text("Yes."), work.write("allowed.txt", "ours\n")),
        answer(text("Read."), call("read_file", file_path=old)),
        answer(text("Edit."), call("edit", file_path=old, old_string="two", new_string="2")),
        answer(text("Run."), shell("touch made")),
        answer(text("Done.")),
        answer=by_name,
    )
    assert results(events) == ["denied"] * 4 + ["success"] * 4
    names = {path.name for path in work.project.iterdir() if path.is_file()}
    assert names == {"old.txt", "allowed.txt", "made"}
    assert (work.project / "old.txt").read_text() == "one\n2\n"
    assert (work.project / "allowed.txt").read_text() == "ours\n"
    assert any("use tabs" in request for request in work.requests)
    effects = {request.tool_name: request.effect for request in work.asked}
    assert effects["edit"] is not None
    assert effects["edit"].after == "one\n2\n"
    assert ANNOUNCED in effects["edit"].remarks
    assert done(events).status is DoneStatus.SUCCESS
    assert OWN_RULES in work.notes


def test_a_run_that_does_not_ask_makes_no_call_that_needs_an_answer(work: Work) -> None:
    work.allow_all()
    events = work.ask(
        answer(text("Write."), work.write("a.txt", "x")),
        answer(text("Done.")),
        answer=by_name,
        approve=None,
    )
    assert results(events) == ["denied"]
    assert not (work.project / "a.txt").exists()


def test_a_stopped_run_gives_up_its_question(work: Work) -> None:
    async def wait(_: ApprovalRequest) -> Approval:
        await asyncio.Event().wait()
        return Approval.allow()

    def seen(event: AgentEvent, run: AgentRun) -> None:
        if event.type == "permission_request":
            run.abort()

    turns = (answer(text("Write."), work.write("a.txt", "x")), answer(text("Done.")))
    events = work.ask(*turns, answer=wait, seen=seen)
    assert done(events).status is DoneStatus.INTERRUPTED
    assert not (work.project / "a.txt").exists()


def test_a_session_is_continued_with_the_next_prompt(work: Work) -> None:
    first = done(work.ask(answer(text("A.")), answer=by_name, prompt="One"))
    assert first.resume_token is not None
    again = work.ask(answer(text("B.")), answer=by_name, prompt="Two", resume=first.resume_token)
    assert (done(again).status, done(again).result) == (DoneStatus.SUCCESS, "B.")
    assert done(again).resume_token == first.resume_token
    assert all(said in work.requests[0] for said in ("One", "A.", "Two"))
