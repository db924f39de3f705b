"""Runs of a real agent other than Gemini CLI, by gemtui's adapter."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from gemtui import AgentOptions, Approval, ApprovalRequest, GeminiAdapter
from gemtui.agent.agent_run import AgentRun
from gemtui.agent.approval import answer_questions
from gemtui.agent.events import AgentEvent, Done, ToolResult
from gemtui.agents import Agent
from tests.agents.programs import Claude, Qwen
from tests.patience import PATIENCE

Answer = Callable[[ApprovalRequest], Awaitable[Approval]]
LIMIT = 5 * PATIENCE
"""Seconds for a whole run, in which the program and its model take many turns."""


@dataclass
class Ran:
    """A run that has ended."""

    events: list[AgentEvent]
    asked: list[ApprovalRequest]
    run: AgentRun

    @property
    def done(self) -> Done:
        """How it ended."""
        payload = self.events[-1].payload
        assert isinstance(payload, Done)
        return payload

    @property
    def results(self) -> list[str]:
        """How its calls ended."""
        return [result.status for result in self.payloads(ToolResult)]

    @property
    def notes(self) -> str:
        """What was said before it began."""
        return str(self.run.request.about["notes"])

    def payloads(self, kind: type) -> list[Any]:
        """Return what its events of a kind say."""
        return [event.payload for event in self.events if isinstance(event.payload, kind)]


class Work:
    """A home, a project, and gemtui's adapter for them."""

    def __init__(self, agent: Claude | Qwen) -> None:
        self.home, self.project = agent.home, agent.project
        self.runs = agent.folder / "runs"
        self._agent = agent

    async def start(self, prompt: str, url: str, **options: Any) -> AgentRun:
        """Begin a run whose model is at this address."""
        environ = {**os.environ, **self._agent.environment(url)}
        adapter = GeminiAdapter(cli=self._agent.program, runs=self.runs, environ=environ)
        agent = Agent.CLAUDE if isinstance(self._agent, Claude) else Agent.QWEN
        return await adapter.begin(prompt, AgentOptions(agent=agent, cwd=self.project, **options))

    def until_end(
        self,
        prompt: str,
        url: str,
        answer: Answer,
        *,
        seen: Callable[..., object] = lambda event, run: None,
        **options: Any,
    ) -> Ran:
        """Run a prompt to its end; `seen` is called with each event and the run."""
        asked: list[ApprovalRequest] = []

        async def approve(request: ApprovalRequest) -> Approval:
            asked.append(request)
            return await answer(request)

        async def run() -> Ran:
            run = await self.start(prompt, url, **{"approve": answer, **options})
            answering = asyncio.ensure_future(answer_questions(run.gate, approve, lambda _: None))
            events = []
            try:
                async for event in run.owned_events():
                    events.append(event)
                    seen(event, run)
            finally:
                answering.cancel()
            return Ran(events, asked, run)

        return asyncio.run(asyncio.wait_for(run(), LIMIT))


async def allow(_: ApprovalRequest) -> Approval:
    """Allow each call."""
    return Approval.allow()


async def wait(_: ApprovalRequest) -> Approval:
    """Never answer."""
    await asyncio.Event().wait()
    return Approval.allow()


async def by_name(request: ApprovalRequest) -> Approval:
    """Deny what names `denied`, change `changed`, fail at `raises`, and allow the rest."""
    named = json.dumps(request.arguments)
    if "raises" in named:
        raise RuntimeError("a fault of the program that answers")
    if "changed" in named:
        return Approval.allow({**request.arguments, "content": "mine"})
    return Approval.deny("use tabs") if "denied" in named else Approval.allow()


def stop(event: AgentEvent, run: AgentRun) -> None:
    """Stop a run that asks, as `seen`."""
    if event.type == "permission_request":
        run.abort()
