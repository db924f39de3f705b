"""The driver of each agent that gemtui can run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gemtui.agent.driver import Driver
from gemtui.agent.gemini import GeminiDriver
from gemtui.agents import Agent

_DRIVERS: Mapping[Agent, Callable[[], Driver]] = {Agent.GEMINI: GeminiDriver}


def driver_of(agent: Agent) -> Driver:
    """Return the driver of an agent; Gemini CLI's if gemtui can't run it."""
    return _DRIVERS.get(agent, GeminiDriver)()
