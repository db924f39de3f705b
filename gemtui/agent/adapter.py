"""What every agent adapter offers: the screen and the commands know nothing else of an agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from gemtui.agent.events import AgentEvent
from gemtui.agent.options import AgentOptions
from gemtui.agent.run_folder import Request, RunFolder


class AgentAdapter(Protocol):
    """What an agent must offer to be run: whether it is here, and the events of a run."""

    agent: str

    async def is_available(self) -> bool:
        """Whether the agent can be run here; answers within seconds, never raises."""

    def run(self, prompt: str, options: AgentOptions | None = None) -> AsyncIterator[AgentEvent]:
        """Run the prompt and yield the events of the run: one `init` first, one `done` last.

        `options`: None = all as the agent has it. Closing the iterator, or cancelling the task that
        reads it, ends the run.
        """


class Guard(Protocol):
    """Looks after what runs touch, for one the agent's own store. Both methods may block.

    `supervisor`: the name of the module that is started to supervise a run. It does the guard's
    part as long as the run goes on, whoever follows it.
    """

    supervisor: str

    def before(self, folder: RunFolder, request: Request, environ: Mapping[str, str]) -> None:
        """Called before a run starts in `folder`; raising OSError keeps it from starting."""

    def after(self, folder: RunFolder) -> None:
        """Called once the run has ended, by whoever follows it; may be called again.

        There is nothing left to do unless the run's supervisor was killed.
        """
