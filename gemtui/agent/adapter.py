"""Run an agent in a supervised process: prompts in, events out."""

from __future__ import annotations

import asyncio
import os
import subprocess
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TypedDict, Unpack

from gemtui.agent import process_tree
from gemtui.agent.agent_run import AgentRun, Guard
from gemtui.agent.approval import ELSEWHERE, ApprovalRequest, Approve, answer_questions
from gemtui.agent.command import Command, Machine, require_text
from gemtui.agent.detect import (
    Capabilities,
    Detected,
)
from gemtui.agent.drivers import driver_of
from gemtui.agent.events import AgentEvent, ErrorSaid, Event
from gemtui.agent.options import AgentOptions
from gemtui.agent.ready import ReadyCli
from gemtui.agent.run_folder import (
    About,
    Exit,
    Request,
    RunFolder,
    open_private,
)
from gemtui.agent.stream import Ending
from gemtui.agents import WORDS, Agent
from gemtui.errors import CliNotFound, GemtuiError, OptionError, WorktreeError, message_of
from gemtui.paths import current_folder, state_dir, typed_path
from gemtui.policy.model.tool_catalog import is_known
from gemtui.processes import FOLDER, IndependentProcess, python
from gemtui.system import DETACHED

ANSWERED_ELSEWHERE = "GEMTUI_ANSWERED_ELSEWHERE"
"""The code of the error event about an answer that came after another one."""


GeminiRun = AgentRun


class HowToStart(TypedDict, total=False):
    """How a run is started, besides its prompt and its options."""

    id: str | None
    """An unused id for the run; None creates one."""
    about: About | None
    """Additional facts to show about the run."""
    ready: ReadyCli | None
    """A CLI that waits for this prompt (`prepare`), used if the run is the same as without it.

    Call its `end` afterwards.
    """


class UnguardedAdapter:
    """Runs the agent that a run's options name, with a process tree and a folder for each run.

    What it says without options is about Gemini CLI, unless another agent is named. `cli`: the
    program; None means the one found on this machine. `runs`: the folder that contains
    the runs' folders; None means gemtui's own. `guard`: protects files during runs; None leaves
    them unprotected, except in subclasses that have a guard of their own.
    """

    agent = Agent.GEMINI
    _guard: Guard | None = None

    def __init__(
        self,
        *,
        cli: str | os.PathLike[str] | None = None,
        runs: str | os.PathLike[str] | None = None,
        environ: Mapping[str, str] = os.environ,
        guard: Guard | None = None,
    ) -> None:
        self.runs = (state_dir() / "runs" if runs is None else typed_path(runs)).absolute()
        self._cli = None if cli is None else typed_path(cli).absolute()
        self._environ = environ
        self._guard = guard or self._guard

    async def is_available(self) -> bool:
        """Return whether a CLI is installed and answers `--version`. Never raises.

        May wait for seconds.
        """
        return await asyncio.to_thread(self._answers)

    def _answers(self) -> bool:
        try:
            return driver_of(self.agent).version(self.cli(), self._environ) is not None
        except CliNotFound:
            return False

    def cli(self, agent: Agent | None = None) -> Path:
        """Return the program a run of an agent starts. Raises CliNotFound."""
        if self._cli is not None:
            return self._cli
        driver = driver_of(agent or self.agent)
        program = driver.find(self._environ)
        if program is None:
            raise CliNotFound(driver.not_found)
        return program.path

    def detect(self, agent: Agent = Agent.GEMINI) -> Detected:
        """Return an agent's CLI, its version and its flags. May take seconds. Never raises."""
        return driver_of(agent).detect(self._environ, self._cli)

    def machine(self, cwd: Path | None = None, agent: Agent = Agent.GEMINI) -> Machine:
        """Return everything a command in `cwd` depends on, apart from the options.

        May take seconds, because it runs the CLI. Raises CliNotFound if there is no usable CLI.
        """
        found = self.detect(agent)
        return self._machine(agent, found.program(), found.capabilities, found.version, cwd)

    def planned_machine(
        self, cwd: Path | None = None, agent: Agent = Agent.GEMINI
    ) -> tuple[Machine, str]:
        """Return what a command in `cwd` depends on, and a note if no CLI is usable.

        Without a usable CLI, the newest known version is assumed; with one, the note is "". May
        take seconds, because it runs the CLI.
        """
        driver, words = driver_of(agent), WORDS[agent]
        try:
            return self.machine(cwd, agent), ""
        except CliNotFound as error:
            missing = str(error) == driver.not_found
            why = f"no {words.program} is installed" if missing else str(error)
            note = f"{why}: these options are for version {driver.newest_version}"
            cli = Path(words.command)
            return self._machine(agent, cli, driver.newest, driver.newest_version, cwd), note

    def _machine(
        self,
        agent: Agent,
        cli: Path,
        capabilities: Capabilities,
        version: str | None,
        cwd: Path | None,
    ) -> Machine:
        return driver_of(agent).machine(
            cli,
            capabilities,
            version,
            environ=self._environ,
            cwd=cwd or current_folder(),
            runs=self.runs,
        )

    def command(self, prompt: str, options: AgentOptions, *, id: str | None = None) -> Command:
        """Return the command that `start` would run. Raises CliNotFound, OptionError."""
        machine = self.machine(options.cwd, options.agent)
        return self._command(prompt, options, machine, id or str(uuid.uuid4()))

    def _command(
        self,
        prompt: str,
        options: AgentOptions,
        machine: Machine,
        id: str,
        session_id: str | None = None,
    ) -> Command:
        session_id = session_id or str(uuid.uuid4())
        folder = self.runs / id
        command = driver_of(options.agent).command(
            prompt, options, machine, folder=folder, session_id=session_id
        )
        require_text(prompt, command, options.cwd or current_folder())
        return command

    def start(self, prompt: str, options: AgentOptions, **how: Unpack[HowToStart]) -> AgentRun:
        """Start a run, which continues even if its events are not read.

        May block for seconds. Raises CliNotFound or OptionError, and OSError if the run's folder
        can't be written.
        """
        about, ready = how.get("about"), how.get("ready")
        if self._guard is None and (options.asks or options.budget is not None):
            name = "ask" if options.asks else "budget"
            raise OptionError(f"{name}: not supported by this adapter; use gemtui.GeminiAdapter")
        if options.worktree:
            raise OptionError("worktree: not supported by this adapter; use gemtui.GeminiAdapter")
        machine = self.machine(options.cwd, options.agent)
        if ready is not None:
            planned = ready.waiting.request
            request, files = self._plan(
                prompt,
                options,
                machine,
                id=planned.id,
                session_id=planned.about.get("session_id"),
                about=about,
            )
            if ready.send(prompt, request, files):
                return AgentRun(ready.folder, request, ready.supervisor, guard=self._guard)
        id = how.get("id") or str(uuid.uuid4())
        request, files = self._plan(prompt, options, machine, id=id, about=about)
        folder = self._make_folder(request, files)
        folder.write(folder.prompt.name, prompt)
        folder.write_request(request)
        self._prepare(folder, request)
        supervisor = supervise(folder, self._environ, self._guard)
        return AgentRun(folder, request, supervisor, guard=self._guard)

    def prepare(self, first: str, options: AgentOptions, *, seconds: float) -> ReadyCli | None:
        """Start a CLI that waits for a prompt, to be passed to `start` with the same options.

        This class never does, because only a guard can remove what is left of a CLI that got no
        prompt; see `gemtui.GeminiAdapter`. `first`: the first character of the prompt. `seconds`:
        after how long the CLI is ended if no prompt has been sent.
        """
        del first, options, seconds
        return None

    def _make_folder(self, request: Request, files: Mapping[str, str]) -> RunFolder:
        folder = RunFolder.create(self.runs, request.id)
        for name, text in files.items():
            folder.write(name, text)
        return folder

    def _plan(
        self,
        prompt: str,
        options: AgentOptions,
        machine: Machine,
        *,
        id: str,
        session_id: str | None = None,
        about: About | None = None,
    ) -> tuple[Request, Mapping[str, str]]:
        """Return the request of a run, and the texts of the files in its folder."""
        command = self._command(prompt, options, machine, id, session_id)
        request = Request(
            id=id,
            argv=command.argv,
            cwd=str((options.cwd or Path()).absolute()),
            environ=command.environ,
            stdin=command.stdin,
            pipe=command.pipe,
            secrets=command.secrets,
            timeout=options.timeout,
            idle_timeout=options.idle_timeout,
            turn_limit=command.turn_limit,
            about=_with_more(self._about(prompt, options, command, machine), about),
        )
        return self._with_hidden(request), command.files

    def _about(
        self, prompt: str, options: AgentOptions, command: Command, machine: Machine
    ) -> About:
        """Return the facts to show in the list of runs and on screens that follow the run."""
        alone: About = (
            {} if options.approve is None else {"answerer": asdict(process_tree.this_process())}
        )
        return {
            **alone,
            "agent": options.agent,
            "prompt": prompt[:2000],
            "model": options.model,
            "policies": [str(path) for path in options.policies],
            "approval_mode": options.approval_mode,
            "session_id": command.session_id,
            "resume": options.resume,
            "notes": list(command.notes),
            "ask": command.ask,
            "away": options.away,
            "wait_for_quota": options.wait_for_quota,
            "budget": options.budget,
            "capabilities": machine.capabilities.to_dict(),
        }

    def _with_hidden(self, request: Request) -> Request:
        """Return the request with a record of the tools the run hides.

        This class doesn't read policies and returns the request unchanged; adapters that read them
        override this method.
        """
        return request

    def _prepare(self, folder: RunFolder, request: Request) -> None:
        """Let the guard prepare the run; if that fails, record that nothing was started."""
        if self._guard is None:
            return
        try:
            self._guard.before(folder, request, self._environ)
        except OSError as error:
            folder.finish(Exit(code=None, started=None, ended=None, problem=message_of(error)))
            raise

    def attach(self, folder: RunFolder) -> AgentRun | None:
        """Return the run in `folder`, which any gemtui process may have started.

        Returns None if the folder can't be read.
        """
        request = folder.request()
        return None if request is None else AgentRun(folder, request, guard=self._guard)

    async def begin(
        self, prompt: str, options: AgentOptions, **how: Unpack[HowToStart]
    ) -> AgentRun:
        """Start a run on a background thread, like `start`, which raises the same errors.

        If the task is cancelled while the run is starting, this method ends the run and waits for
        its end. If the task is cancelled again or the event loop is closed, the run still ends, but
        nothing waits for it.
        """
        thread = ThreadPoolExecutor(1)
        starting = thread.submit(partial(self.start, prompt, options, **how))
        try:
            return await asyncio.shield(asyncio.wrap_future(starting))
        except asyncio.CancelledError:
            ending = thread.submit(_end, starting)
            await asyncio.shield(asyncio.wrap_future(ending))
            raise
        finally:
            thread.shutdown(wait=False)

    async def run(
        self, prompt: str, options: AgentOptions | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """Run a prompt and yield its events: `init` first, `done` last.

        Setting `options.abort`, cancelling the task or closing the iterator ends the run's whole
        process tree, and the iterator closes only after that. Raises OptionError before anything is
        started. If the CLI is missing or can't be started, the events report that, and so they do
        if an answer of `options.approve` was ignored because another one came first.
        """
        options = options or AgentOptions()
        options.check()
        try:
            run = await self.begin(prompt, options)
        except (CliNotFound, WorktreeError, OSError) as error:
            for event in unstarted(error, options):
                yield event
            return
        late: list[ApprovalRequest] = []
        answering = _answering(run, options.approve, late.append)
        try:
            async with aclosing(run.owned_events(options.abort)) as events:
                async for event in events:
                    while late:
                        yield _too_late(late.pop(0), event)
                    yield event
        finally:
            answering.cancel()


def _answering(
    run: AgentRun, approve: Approve | None, late: Callable[[ApprovalRequest], object]
) -> asyncio.Future[None]:
    """Start passing the run's questions to `approve` in the background.

    If `approve` is None, the returned future never completes. `late`: as in `answer_questions`.
    """
    if approve is None:
        return asyncio.Future()
    return asyncio.ensure_future(answer_questions(run.gate, approve, late))


def _too_late(request: ApprovalRequest, before: AgentEvent) -> AgentEvent:
    """Return an event about an answer that was ignored because it came too late.

    `before`: the event that follows it.
    """
    payload = ErrorSaid(
        message=f"{request.tool_name}: {ELSEWHERE}", recoverable=True, code=ANSWERED_ELSEWHERE
    )
    return Event(payload=payload, timestamp=before.timestamp, session_id=before.session_id)


def _end(starting: Future[AgentRun]) -> None:
    """End the run that `starting` has started, if any, and wait for its end."""
    with suppress(GemtuiError, OSError):
        run = starting.result()
        run.abort()
        run.reap()


def unstarted(error: Exception, options: AgentOptions) -> list[AgentEvent]:
    """Return the events for a run that couldn't start: `init`, `error` and `done`."""
    request = Request(
        id="",
        argv=(),
        cwd=str(options.cwd or current_folder()),
        environ=options.environment,
        about={"model": options.model, "resume": options.resume},
    )
    stream = driver_of(options.agent).stream(request, is_known)
    return list(stream.finish(Ending(code=None, problem=str(error))))


def _with_more(about: About, more: About | None) -> About:
    """Merge two sets of facts about a run.

    Facts in `more` replace those in `about`, except that the notes of both are kept.
    """
    if more is None:
        return about
    return {**about, **more, "notes": [*more.get("notes", ()), *about.get("notes", ())]}


def supervise(
    folder: RunFolder, environ: Mapping[str, str], guard: Guard | None
) -> IndependentProcess:
    """Start the run's supervisor in its own session, so that it outlives this process."""
    program = "gemtui.agent.supervise" if guard is None else guard.supervisor
    output = open_private(folder.path / "supervisor.txt")
    try:
        return IndependentProcess(
            python("-m", program, str(folder.path)),
            cwd=FOLDER,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=dict(environ),
            **DETACHED,
        )
    finally:
        os.close(output)
