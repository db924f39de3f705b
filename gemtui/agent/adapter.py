"""The interface of an agent adapter, the only part that screens and commands use."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from gemtui.agent.events import AgentEvent
from gemtui.agent.options import AgentOptions
from gemtui.agent.run_folder import Request, RunFolder


class AgentAdapter(Protocol):
    """An agent that can be run.

    The adapter reports whether the agent is available, and yields the events of a run.
    """

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

    Both methods may block. `supervisor` is the name of the module to start as the run's supervisor.
    The supervisor does the guard's work for as long as the run lasts, no matter which process
    follows the run.
    """

    supervisor: str

    def before(self, folder: RunFolder, request: Request, environ: Mapping[str, str]) -> None:
        """Prepare for a run in `folder`, before it starts.

        If this method raises OSError, the run is not started.
        """

    def after(self, folder: RunFolder) -> None:
        """Clean up after a run; its follower may call this repeatedly.

        There is something left to clean up only if the run's supervisor was killed.
        """
