"""The driver of each agent that gemtui can run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gemtui.agent.driver import Driver
from gemtui.agent.gemini import GeminiDriver
from gemtui.agent.run_folder import Request
from gemtui.agents import Agent

_DRIVERS: Mapping[Agent, Callable[[], Driver]] = {Agent.GEMINI: GeminiDriver}


def agent_of(request: Request) -> Agent:
    """Return the agent of a run: Gemini CLI, unless its request names one that gemtui can run."""
    name = request.about.get("agent")
    return next((agent for agent in _DRIVERS if agent == name), Agent.GEMINI)


def driver_of(agent: Agent) -> Driver:
    """Return the driver of an agent. Raises KeyError if gemtui can't run it."""
    return _DRIVERS[agent]()
