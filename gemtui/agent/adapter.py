"""The interface that every agent adapter implements.

Screens and commands use agents only through this interface.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from gemtui.agent.events import AgentEvent
from gemtui.agent.options import AgentOptions
from gemtui.agent.run_folder import Request, RunFolder


class AgentAdapter(Protocol):
    """An adapter that runs one kind of agent and yields the events of each run."""

    agent: str

    async def is_available(self) -> bool:
        """Return whether the agent can be run on this machine.

        Answers within seconds and never raises.
        """

    def run(self, prompt: str, options: AgentOptions | None = None) -> AsyncIterator[AgentEvent]:
        """Run the prompt and yield the run's events: `init` first, `done` last.

        `options`: None means the agent's defaults. Closing the iterator, or cancelling the task
        that iterates over it, ends the run.
        """


class Guard(Protocol):
    """Protects files that a run may damage, such as the agent's session store.

    Both methods may block. `supervisor`: the module to start as the run's supervisor process, which
    does the guard's work throughout the run, no matter which gemtui process is following the run.
    """

    supervisor: str

    def before(self, folder: RunFolder, request: Request, environ: Mapping[str, str]) -> None:
        """Prepare for a run in `folder`, before it starts.

        If this method raises OSError, the run is not started.
        """

    def after(self, folder: RunFolder) -> None:
        """Clean up after a run. May be called repeatedly.

        There is something left to clean up only if the run's supervisor was killed.
        """
