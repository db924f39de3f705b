"""A run of an agent: its events, its questions and its end.

An agent never writes to a pipe, because the end of its output could be lost
(assets/gemini-cli.md#stdout). Instead, a supervisor makes it write to files in the run's folder,
and this module reads those files as they grow.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from typing import Protocol

from gemtui.agent import process_tree
from gemtui.agent.approval import GateFolder
from gemtui.agent.drivers import driver_of
from gemtui.agent.events import AgentEvent
from gemtui.agent.output import READ_PAUSE, NdjsonReader, last_words, tail
from gemtui.agent.prompt_queue import PromptQueue
from gemtui.agent.run_folder import (
    KILLED,
    Abort,
    Exit,
    Limit,
    Request,
    RunFolder,
)
from gemtui.agent.stream import Ending
from gemtui.files import open_regular
from gemtui.policy.model.tool_catalog import is_known
from gemtui.processes import IndependentProcess

LOST = "the supervisor of this run was killed, so how the run ended is unknown"
_MOST_STDERR = 1_000_000
_OWNER_LOOK = 0.5
"""Seconds between two checks that the supervisor is alive, while there is no output."""


class Guard(Protocol):
    """Protects files a run may damage, such as the agent's session store.

    Both methods may block. `supervisor`: the module to start as the run's supervisor process, which
    does the guard's work throughout the run, no matter which gemtui process is following it.
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


class AgentRun:
    """A run and its folder, with methods to follow, await and end the run."""

    def __init__(
        self,
        folder: RunFolder,
        request: Request,
        supervisor: IndependentProcess | None = None,
        *,
        guard: Guard | None = None,
    ) -> None:
        self.folder = folder
        self.request = request
        self._supervisor = supervisor
        self._guard = guard
        self._lost: Exit | None = None
        self._found_lost = not self.supervised()

    def abort(self) -> None:
        """End the run's process tree with SIGTERM, then SIGKILL.

        A second call sends SIGKILL at once. The request is a file in the run's folder. If the file
        can't be written, for example because the disk is full, the supervisor gets a signal
        instead.
        """
        if self.exit() is None:
            again = self.folder.abort_request() is not None
            try:
                self.folder.abort(Abort.KILL if again else Abort.TERM)
            except OSError:
                self._signal_owner()

    def _signal_owner(self) -> None:
        owner = self.folder.owner()
        if owner is not None and process_tree.owner_lives(owner):
            with suppress(ProcessLookupError):
                os.kill(owner.pid, signal.SIGTERM)

    def exit(self) -> Exit | None:
        """Return how the run's process ended; None while it is running."""
        if self._supervisor is not None:
            self._supervisor.poll()
        return self.folder.exit() or self._lost

    def supervised(self) -> bool:
        """Return whether the supervisor is alive, is starting, or has finished its work.

        Its work is finished when it has recorded how the run ended.
        """
        if self.folder.exit() is not None:
            return True
        if self._supervisor is None:
            lives = process_tree.is_supervised(self.folder)
        else:  # the guardian, which is the supervisor's parent
            lives = self._supervisor.poll() is None or process_tree.owner_lives(self.folder.owner())
        return lives or self.folder.exit() is not None

    async def events(self) -> AsyncGenerator[AgentEvent, None]:
        """Yield all events of the run from the first one; `done` comes after all output."""
        stream = driver_of(self.request.agent).stream(self.request, self._hides)
        reader = NdjsonReader(parse=stream.parse)
        checked = time.monotonic()
        asked = 0
        output = tail(self.folder.stdout, ended=self._ended, beside=[self.gate.path])
        async for chunk in output:
            for line in reader.feed(chunk):
                for event in stream.feed(line):
                    yield event
            while self.asks and self.gate.has_question(asked + 1):
                asked += 1
                for event in stream.question_events(
                    await asyncio.to_thread(self.gate.question, asked)
                ):
                    yield event
            if not chunk and time.monotonic() - checked > _OWNER_LOOK:
                await asyncio.to_thread(self._check_owner)
                checked = time.monotonic()
        for line in reader.close():
            for event in stream.feed(line):
                yield event
        for event in stream.finish(await asyncio.to_thread(self._ending)):
            yield event

    def _hides(self, tool: str) -> bool:
        """Return whether a tool exists in the CLI but is hidden from this run.

        This is called for tools that the CLI reports as not found. Rules or the approval mode may
        hide a tool. If the run did not record which tools it hides, every tool the CLI has counts
        as hidden.
        """
        try:
            return self.request.hides(tool) is not None
        except KeyError:
            return is_known(tool)

    @property
    def asks(self) -> bool:
        """Whether the run asks the user; if so, `gate` has the questions."""
        return bool(self.request.about.get("ask"))

    @property
    def gate(self) -> GateFolder:
        """The run's questions and their answers."""
        return GateFolder.of(self.folder)

    @property
    def queue(self) -> PromptQueue:
        """The messages to the agent and the prompt queue."""
        return PromptQueue.of(self.folder)

    def stderr(self) -> str:
        """Return the contents of stderr, which may report, for example, a broken policy.

        Only the first megabyte is read. Returns "" if the file can't be read.
        """
        try:
            with open_regular(self.folder.stderr) as file:
                return file.read(_MOST_STDERR).decode("utf-8", "replace")
        except OSError:
            return ""

    async def owned_events(
        self, abort: asyncio.Event | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """Yield the same events as `events`, and end the run when iteration stops.

        Setting `abort` ends the run as well. The iterator finishes once all of the run's processes
        are gone.
        """
        watch = asyncio.ensure_future(_on_set(abort, self.abort))
        try:
            async for event in self.events():
                yield event
        finally:
            watch.cancel()
            self.abort()
            await asyncio.shield(self.wait())

    def _ended(self) -> bool:
        return self.exit() is not None

    def _check_owner(self) -> None:
        """End a run whose supervisor was killed while the run was being followed.

        Normally, the guardian (the supervisor's parent process) has already ended the run, unless
        it was killed as well. If the supervisor was gone before this object was created, the run's
        processes are left alone.
        """
        if not self.supervised():
            if not self._found_lost:
                process_tree.end_tagged(self.request.id)
            problem = LOST if self._found_lost else KILLED
            self._lost = Exit(code=None, started=None, ended=None, problem=problem)

    def reap(self) -> None:
        """Wait for the supervisor to exit; it does so after writing the exit record.

        Blocking: call it from a background thread.
        """
        if self._supervisor is not None:
            self._supervisor.wait()
        if self._guard is not None:
            self._guard.after(self.folder)

    def _ending(self) -> Ending:
        self.reap()
        ended = self.exit()
        assert ended is not None
        return Ending(
            code=ended.code,
            aborted=ended.aborted,
            limit=ended.limit,
            limit_seconds=self._limit_seconds(ended.limit),
            limit_words=ended.limit_words,
            stderr=last_words(self.folder.stderr),
            problem=ended.problem,
        )

    def _limit_seconds(self, limit: Limit | None) -> float:
        request = self.request
        return (request.idle_timeout if limit is Limit.IDLE else request.timeout) or 0

    async def wait(self) -> Exit:
        """Wait until the run has ended, and return how it ended."""
        while (ended := self.exit()) is None:
            await asyncio.sleep(READ_PAUSE)
            await asyncio.to_thread(self._check_owner)
        await asyncio.to_thread(self.reap)
        return ended


async def _on_set(event: asyncio.Event | None, act: Callable[[], None]) -> None:
    if event is not None:
        await event.wait()
        act()
