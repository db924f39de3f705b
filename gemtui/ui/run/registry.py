"""The runs that this gemtui follows: those it started, and those it has opened."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from gemtui.agent.adapter import UnguardedAdapter
from gemtui.agent.agent_run import AgentRun
from gemtui.agent.folder_options import to_dict
from gemtui.agent.options import AgentOptions
from gemtui.agent.prompt_queue import queue_again, send_next, settle, went_on
from gemtui.agent.ready import ReadyCli
from gemtui.agent.run_folder import About, RunFolder
from gemtui.agent.trust import FolderTrust, trust_of
from gemtui.agents import Agent
from gemtui.errors import GemtuiError, OptionError, message_of
from gemtui.kept.run_copies import aftermath_of
from gemtui.runs.before_run import before_run_report
from gemtui.runs.causes import MARGIN, until_words
from gemtui.runs.ending import RunState
from gemtui.runs.enrich import enrich
from gemtui.runs.listing import Run, list_runs, prune_runs
from gemtui.transcript.model import Transcript
from gemtui.ui.run.live_run import LiveRun

KEEP = 600.0
"""How many seconds an agent that can wait for the next prompt does so."""
_STEP = 30.0
"""Seconds between checks of the time while a run waits for its quota."""
Spawn = Callable[[Callable[[], Coroutine[Any, Any, None]]], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Starting:
    """A run that is being started.

    `resumes`: the id of the session that the run continues, or None. `task`: the task that starts
    the run, after any questions to the user; cancelling the task also ends the run.
    """

    prompt: str
    resumes: str | None
    task: asyncio.Task[Any]


class RunRegistry:
    """Starts, finds and follows runs.

    `home`: Gemini CLI's folder. `see_files`: whether to list files that runs' commands changed.
    `spawn`: runs a coroutine function as a background task of the app. `changed`: called with None
    when a run has started, or with the run when one has ended. `asked`: called with a run that has
    asked a question or received an answer.
    """

    def __init__(
        self,
        adapter: UnguardedAdapter,
        home: Path,
        *,
        clock: Callable[[], datetime],
        see_files: bool,
        spawn: Spawn,
        changed: Callable[[LiveRun | None], None],
        asked: Callable[[LiveRun], None] = lambda _run: None,
    ) -> None:
        self.adapter, self._home = adapter, home
        self._see_files = see_files
        self.runs: list[LiveRun] = []
        self.starting: list[Starting] = []
        self._clock, self._spawn, self._changed, self._asked = clock, spawn, changed, asked
        self._ready: ReadyCli | None = None
        self._readying = asyncio.Lock()

    @property
    def alive(self) -> tuple[LiveRun, ...]:
        """The active runs."""
        return tuple(run for run in self.runs if run.alive)

    @contextmanager
    def beginning(self, prompt: str, resumes: str | None) -> Iterator[None]:
        """Count a run as being started, by the current task, from the user's request on."""
        task = asyncio.current_task()
        assert task is not None
        starting = Starting(prompt=prompt, resumes=resumes, task=task)
        self.starting.append(starting)
        try:
            yield
        finally:
            self.starting.remove(starting)

    # --- a CLI that waits for its prompt -------------------------------------------------------

    async def make_ready(self, wanted: tuple[str, AgentOptions] | None, seconds: float) -> None:
        """End the CLI that waits for a prompt, and start another one if one is wanted.

        `wanted`: the prompt's first character, and the options. `seconds`: how long the CLI may
        wait. Raises OptionError if it would have to be started without a question to the user.
        """
        async with self._readying:
            ready, self._ready = self._ready, None
            if ready is not None:
                await asyncio.to_thread(ready.end)
            if wanted is not None and not self.starting:
                options = await asyncio.to_thread(_unattended, wanted[1])
                self._ready = await asyncio.to_thread(
                    self.adapter.prepare, wanted[0], options, seconds=seconds
                )

    async def is_ready(self) -> bool:
        """Return whether a CLI waits that can be used for the next prompt; end one that can't."""
        async with self._readying:
            if self._ready is None or await asyncio.to_thread(self._ready.is_usable):
                return self._ready is not None
        await self.make_ready(None, 0)
        return False

    async def start(
        self,
        prompt: str,
        options: AgentOptions,
        *,
        before: Transcript | None = None,
        id: str | None = None,
    ) -> LiveRun:
        """Start a run and follow it; if this call is cancelled, end the run.

        `before`: the conversation that the run continues. `id`: the run's id; None creates one.
        Raises CliNotFound, OptionError and OSError.
        """
        began = self._clock()
        async with self._readying:
            ready, self._ready = self._ready, None
        try:
            keeps: About = {} if options.agent is Agent.GEMINI else {"keep": KEEP}
            run = await self.adapter.begin(
                prompt, options, id=id, about=keeps, ready=None if id else ready
            )
        finally:
            if ready is not None:
                await asyncio.to_thread(ready.end)
        if options.wait_for_quota:
            await asyncio.to_thread(run.queue.keep_options, to_dict(options))
        live = LiveRun(run, prompt, began=began, home=self._home, before=before)
        live.options = options
        return self._add(live)

    async def find(self) -> tuple[Run, ...]:
        """Return all recorded runs, newest first."""
        return await asyncio.to_thread(list_runs, self.adapter.runs)

    async def attach_running(self) -> tuple[LiveRun, ...]:
        """Follow active runs that aren't being followed yet, and return them.

        They were started by other gemtui processes, which may have quit since.
        """
        ids = {run.id for run in self.runs}
        running = [run for run in await self.find() if run.state is RunState.RUNNING]
        attached = [await self.attach(run) for run in reversed(running) if run.id not in ids]
        return tuple(filter(None, attached))

    async def attach(self, record: Run, before: Transcript | None = None) -> LiveRun | None:
        """Follow a recorded run, active or past; return None if its record is corrupt.

        `before`: the conversation that the run continues. If the run is already being followed, the
        existing object is returned.
        """
        for attached in self.runs:
            if attached.id == record.id:
                return attached
        opened = await asyncio.to_thread(self._opened, record.folder)
        if opened is None:
            return None
        run, prompt = opened
        past = record.state is not RunState.RUNNING
        began = record.started
        live = LiveRun(
            run, prompt, began=began, home=self._home, before=before, ours=False, past=past
        )
        return self._add(live)

    def _opened(self, folder: RunFolder) -> tuple[AgentRun, str] | None:
        opened = self.adapter.attach(folder)
        return None if opened is None else (opened, folder.prompt_text())

    def _add(self, run: LiveRun) -> LiveRun:
        self.runs.append(run)
        run.asked = self._asked
        self._spawn(partial(self._follow, run))
        self._changed(None)
        return run

    async def _follow(self, run: LiveRun) -> None:
        """Follow a run to its end, complete its transcript, and send the next prompt."""
        await run.follow(see_files=self._see_files)
        ended = run.exit.ended if run.past and run.exit is not None else None
        run.ended = ended or self._clock()
        run.told = await asyncio.to_thread(enrich, run.streamed, self._home, run.session)
        await run.files.recompute()
        run.notes = await asyncio.to_thread(_notes, run.run.folder)
        await self.send_what_waits(run)
        run.over = True
        if run.renewed is not None and run.next is None:
            await self._wait_for_quota(run, run.renewed)
        self._changed(run)
        if not run.past:
            await asyncio.to_thread(prune_runs, self.adapter.runs)

    async def attach_waiting(self) -> None:
        """Follow finished runs whose queue will be sent once their quota is renewed.

        These runs were started by earlier gemtui processes.
        """
        ids = {run.id for run in self.runs}
        for record in await self.find():
            if record.state is RunState.ENDED and record.undelivered and record.id not in ids:
                request = await asyncio.to_thread(record.folder.request)
                if request is not None and request.about.get("wait_for_quota"):
                    await self.attach(record)

    async def _wait_for_quota(self, run: LiveRun, until: datetime) -> None:
        """Queue a prompt that continues a run, and send it once the quota is renewed.

        The queue is stored in the run's folder, so that a later gemtui can send it. If the user
        removes the prompt from the queue, it isn't sent.
        """
        try:
            if not run.past:
                await asyncio.to_thread(queue_again, run.run.folder, run.prompt_again)
        except OSError as error:
            run.held = message_of(error)
            return
        await run.refresh_queue()
        if run.queue_state.prompts:
            run.held = f"the quota is used up until {until_words(until, self._clock())}"
            self._spawn(partial(self._send_at, run, until + MARGIN))

    async def _send_at(self, run: LiveRun, when: datetime) -> None:
        while (left := (when - self._clock()).total_seconds()) > 0:
            await asyncio.sleep(min(left, _STEP))  # sleep() doesn't count time spent suspended
        if run.next is not None:
            return
        try:
            await self._send_next(run, renewed=True)
        except (GemtuiError, OSError) as error:
            run.held = message_of(error)
        await run.refresh_queue()
        self._changed(run)

    async def send_what_waits(self, run: LiveRun) -> None:
        """If a finished run ended well, send the next prompt from its queue.

        Afterwards, `run.next` is the run that was started with this prompt, if any; another gemtui
        may have started it.
        """
        folder = run.run.folder
        try:
            if await asyncio.to_thread(run.run.queue.undelivered):
                await self._send_next(run)
        except (GemtuiError, OSError) as error:
            run.held = message_of(error)
        if run.next is None and not run.past and (gone := await asyncio.to_thread(went_on, folder)):
            records = [record for record in await self.find() if record.id == gone.id]
            run.next = await self.attach(records[0], run.settled_transcript()) if records else None
        await run.refresh_queue()

    async def _send_next(self, run: LiveRun, *, renewed: bool = False) -> None:
        sends = renewed or run.sends_next
        options = await asyncio.to_thread(run.next_options) if sends else None
        if options is None:
            await asyncio.to_thread(settle, run.run.folder)
            return

        async def begin(text: str, id: str) -> LiveRun:
            wanted = await asyncio.to_thread(_unattended, options)
            return await self.start(text, wanted, before=run.settled_transcript(), id=id)

        run.next = await send_next(run.run.folder, begin) or run.next


def _unattended(options: AgentOptions) -> AgentOptions:
    """Return the options for a run that starts without asking the user anything.

    Raises OptionError if the folder isn't trusted, or if settings that let the run act without
    asking have changed since the user last saw them.
    """
    assert options.cwd is not None
    if before_run_report(options).is_news:
        raise OptionError(
            "settings or .env files have changed since you last saw them", option="cwd"
        )
    if options.agent is not Agent.GEMINI:
        return options
    trust = trust_of(options.cwd)
    if options.trust or trust is FolderTrust.CLI:
        return options
    if not trust.is_trusted:
        raise OptionError("its folder is not trusted", option="trust")
    return replace(options, trust=True)


def _notes(folder: RunFolder) -> tuple[str, ...]:
    """Return notes on what happened to the session that a run resumed."""
    aftermath = aftermath_of(folder)
    return () if aftermath is None else aftermath.notes(folder)
