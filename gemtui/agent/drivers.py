"""The driver of each agent that gemtui can run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

from gemtui.agent.claude import ClaudeDriver
from gemtui.agent.driver import Driver
from gemtui.agent.gemini import GeminiDriver
from gemtui.agent.qwen import QwenDriver
from gemtui.agents import Agent

_DRIVERS: Mapping[Agent, Callable[[], Driver]] = {
    Agent.GEMINI: GeminiDriver,
    Agent.CLAUDE: ClaudeDriver,
    Agent.QWEN: QwenDriver,
}


def driver_of(agent: Agent) -> Driver:
    """Return the driver of an agent; Gemini CLI's if gemtui can't run it."""
    return _DRIVERS.get(agent, GeminiDriver)()


def agents_to_choose(environ: Mapping[str, str] = os.environ) -> tuple[Agent, ...]:
    """Return the agents for a run: Gemini CLI, and the others that are installed."""
    return tuple(
        agent
        for agent in _DRIVERS
        if agent is Agent.GEMINI or driver_of(agent).find(environ) is not None
    )


def agent_to_start_with(used: Iterable[Agent], environ: Mapping[str, str] = os.environ) -> Agent:
    """Return the first of these agents that is installed, or else any that is.

    If none is installed, return Gemini CLI. `used`: the agents of past runs, newest first.
    """
    for agent in (*used, *_DRIVERS):
        if driver_of(agent).find(environ) is not None:
            return agent
    return Agent.GEMINI
