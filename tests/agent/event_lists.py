"""What tests ask of the events of a run."""

from __future__ import annotations

from collections.abc import AsyncIterator

from gemtui.agent.events import AgentEvent, Done, ResultStatus, ToolResult


async def collect(events: AsyncIterator[AgentEvent]) -> list[AgentEvent]:
    """Return all events of a run; a run that never ends fails its test by pytest's own limit."""
    return [event async for event in events]


def done(events: list[AgentEvent]) -> Done:
    """Return how the run ended."""
    payload = events[-1].payload
    assert isinstance(payload, Done)
    return payload


def results(events: list[AgentEvent]) -> list[tuple[str, ResultStatus]]:
    """Return the tools that were called, with how each call ended."""
    payloads = [event.payload for event in events]
    return [(p.tool_name, p.status) for p in payloads if isinstance(p, ToolResult)]
