"""The reports of a run's supervisor: stderr, checkpoints, and whether the agent is kept."""

from __future__ import annotations

import asyncio
from datetime import datetime

from gemtui.agent.agent_run import AgentRun
from gemtui.agent.output import meaningful_lines, stderr_end
from gemtui.files import size_of
from gemtui.runs.outcome import retry_words


class SupervisorReports:
    """The newest facts that the supervisor of a run has written into the run's folder.

    * `stderr`: the last lines of the agent's output to stderr.
    * `retry`: the retry that the agent is making, in words; None after any newer output.
    * `pid`: the agent's process id; None if it isn't known yet.
    * `kept_until`: until when the agent waits for another prompt; None while it works.
    * `unprotected`: why there are no checkpoints of the run's further changes; "" if there are.
    * `settled_undos`: sentences about interrupted undos that the supervisor has completed.
    * `first_checkpoint`: the first checkpoint's progress while the run waits for it, or else "".
    """

    def __init__(self, run: AgentRun) -> None:
        self._run = run
        self.stderr, self._stderr_size = "", 0
        self.retry: str | None = None
        self.pid: int | None = None
        self.kept_until: datetime | None = None
        self.unprotected = ""
        self.settled_undos: tuple[str, ...] = ()
        self.first_checkpoint = ""

    async def read(self) -> bool:
        """Read what is new; return whether the agent waits or no longer waits for a prompt."""
        folder = self._run.folder
        size, self._stderr_size = self._stderr_size, size_of(folder.stderr)
        if self._stderr_size != size:
            stderr = await asyncio.to_thread(stderr_end, folder.stderr)
            self.stderr = meaningful_lines(stderr)
            self.retry = retry_words(stderr[size - self._stderr_size :])
        await self._read_checkpoints()
        if self.pid is None:
            owner = await asyncio.to_thread(folder.owner)
            self.pid = None if owner is None else owner.cli
        before = self.kept_until
        self.kept_until = await asyncio.to_thread(folder.kept_until)
        return self.kept_until != before

    async def read_last(self) -> None:
        """Read the rest, after the run has ended."""
        await self._read_checkpoints()
        stderr = await asyncio.to_thread(stderr_end, self._run.folder.stderr)
        self.stderr, self.retry = meaningful_lines(stderr), None

    async def _read_checkpoints(self) -> None:
        from gemtui.runs.undo.checkpointing import CheckpointPhase, checkpoint_state

        if not self.unprotected:
            state = await asyncio.to_thread(checkpoint_state, self._run.folder)
            self.unprotected = "" if state is None else state.problem
            self.settled_undos = () if state is None else state.settled
            waits = state is not None and state.phase is CheckpointPhase.FIRST
            self.first_checkpoint = state.progress if state and waits else ""
