"""Run Gemini CLI in a supervised process: prompts in, events out.

The CLI never writes to a pipe, because the end of its output would be lost
(assets/gemini-cli.md#stdout). Instead, a supervisor makes the CLI write to files in the run's
folder, and this module reads those files as they grow.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Protocol

from gemtui.agent import process_tree
from gemtui.agent.approval import ELSEWHERE, ApprovalRequest, Approve, GateFolder, answer_questions
from gemtui.agent.command import Command, Machine, command_of, require_text
from gemtui.agent.detect import (
    NEWEST,
    NOT_FOUND,
    Capabilities,
    Detected,
    detect_cli,
    find_cli,
    version_of,
)
from gemtui.agent.events import AgentEvent, ErrorSaid, Event
from gemtui.agent.options import AgentOptions
from gemtui.agent.output import READ_PAUSE, NdjsonReader, last_words, tail
from gemtui.agent.prompt_queue import PromptQueue
from gemtui.agent.ready import ReadyCli
from gemtui.agent.run_folder import (
    KILLED,
    SETTINGS_FILE,
    Abort,
    About,
    Exit,
    Limit,
    Request,
    RunFolder,
    open_private,
)
from gemtui.agent.settings import settings_problems, settings_unread, system_settings
from gemtui.agent.stream import Ending, Stream
from gemtui.agent.trust import folder_settings
from gemtui.agent.wire import parse_line
from gemtui.errors import CliNotFound, GemtuiError, OptionError, WorktreeError, message_of
from gemtui.files import open_regular
from gemtui.paths import cache_dir, current_folder, state_dir, typed_path
from gemtui.policy.model.rules import CHECKED_AGAINST
from gemtui.policy.model.tool_catalog import is_known
from gemtui.processes import FOLDER, IndependentProcess, python
from gemtui.system import refuse_on_windows

LOST = "the supervisor of this run was killed, so how the run ended is unknown"
ANSWERED_ELSEWHERE = "GEMTUI_ANSWERED_ELSEWHERE"
"""The code of the error event about an answer that came after another one."""
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


class GeminiRun:
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
        about = self.request.about
        stream = Stream(
            cwd=self.request.cwd,
            model=about.get("model"),
            capabilities=about.get("capabilities"),
            session_id=about.get("session_id"),
            resumed=about.get("resume"),
            turn_limit=self.request.turn_limit,
            asks=self.asks,
            hides=self._hides,
        )
        reader = NdjsonReader(parse=parse_line)
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


class UnguardedAdapter:
    """Runs Gemini CLI, with a separate process tree and folder for each run.

    `cli`: the program; None means the one found on this machine. `runs`: the folder that contains
    the runs' folders; None means gemtui's own. `guard`: protects files during runs; None leaves
    them unprotected, except in subclasses that have a guard of their own.
    """

    agent = "gemini"
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

        Waits for the answer for up to five seconds, or up to thirty while the CLI is using the CPU,
        as on a slow machine.
        """
        return await asyncio.to_thread(self._answers)

    def _answers(self) -> bool:
        try:
            return version_of(self.cli(), cache=cache_dir(), environ=self._environ).text is not None
        except CliNotFound:
            return False

    def cli(self) -> Path:
        """Return the program a run starts. Raises CliNotFound."""
        if self._cli is not None:
            return self._cli
        program = find_cli(self._environ)
        if program is None:
            raise CliNotFound(NOT_FOUND)
        return program.path

    def detect(self) -> Detected:
        """Return the CLI, its version and its flags. May take seconds. Never raises."""
        return detect_cli(self._environ, cli=self._cli)

    def machine(self, cwd: Path | None = None) -> Machine:
        """Return everything a command in `cwd` depends on, apart from the options.

        May take seconds, because it runs the CLI. Raises CliNotFound if there is no usable CLI.
        """
        detected = self.detect()
        return self._machine(detected.program(), detected.capabilities, detected.version, cwd)

    def planned_machine(self, cwd: Path | None = None) -> tuple[Machine, str]:
        """Return what a command in `cwd` depends on, and a note if no CLI is usable.

        Without a usable CLI, the newest known version is assumed; with one, the note is "". May
        take seconds, because it runs the CLI.
        """
        try:
            return self.machine(cwd), ""
        except CliNotFound as error:
            why = "no Gemini CLI is installed" if str(error) == NOT_FOUND else str(error)
            note = f"{why}: these options are for version {CHECKED_AGAINST}"
            return self._machine(Path("gemini"), NEWEST, CHECKED_AGAINST, cwd), note

    def _machine(
        self, cli: Path, capabilities: Capabilities, version: str | None, cwd: Path | None
    ) -> Machine:
        folder = cwd or current_folder()
        settings = folder_settings(folder, self._environ, for_run=True)
        return Machine(
            cli=cli,
            capabilities=capabilities,
            environ=self._environ,
            user_policies=settings.user_policies(folder),
            settings=settings,
            system_settings=system_settings(self._environ, version=version),
            settings_unread=settings_unread(self.runs / SETTINGS_FILE, version=version),
            problems=settings_problems(self._environ, folder),
        )

    def command(self, prompt: str, options: AgentOptions, *, id: str | None = None) -> Command:
        """Return the command that `start` would run. Raises CliNotFound, OptionError."""
        return self._command(prompt, options, self.machine(options.cwd), id or str(uuid.uuid4()))

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
        command = command_of(prompt, options, machine, folder=folder, session_id=session_id)
        require_text(prompt, command, options.cwd or current_folder())
        return command

    def start(
        self,
        prompt: str,
        options: AgentOptions,
        *,
        id: str | None = None,
        about: About | None = None,
        ready: ReadyCli | None = None,
    ) -> GeminiRun:
        """Start a run, which continues even if its events are not read.

        `id`: an unused id for the run; None creates one. `about`: additional facts to show about
        the run. `ready`: a CLI that waits for this prompt (`prepare`); it is used if the run is the
        same as without it. Call its `end` afterwards. May block for seconds. Raises CliNotFound or
        OptionError, and OSError if the run's folder can't be written.
        """
        refuse_on_windows("a run")
        if self._guard is None and (options.asks or options.budget is not None):
            name = "ask" if options.asks else "budget"
            raise OptionError(f"{name}: not supported by this adapter; use gemtui.GeminiAdapter")
        if options.worktree:
            raise OptionError("worktree: not supported by this adapter; use gemtui.GeminiAdapter")
        machine = self.machine(options.cwd)
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
                return GeminiRun(ready.folder, request, ready.supervisor, guard=self._guard)
        request, files = self._plan(
            prompt, options, machine, id=id or str(uuid.uuid4()), about=about
        )
        folder = self._make_folder(request, files)
        folder.write(folder.prompt.name, prompt)
        folder.write_request(request)
        self._prepare(folder, request)
        supervisor = supervise(folder, self._environ, self._guard)
        return GeminiRun(folder, request, supervisor, guard=self._guard)

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
            secrets=command.secrets,
            timeout=options.timeout,
            idle_timeout=options.idle_timeout,
            turn_limit=command.turn_limit,
            about=_with_more(_about(prompt, options, command, machine.capabilities), about),
        )
        return self._with_hidden(request), command.files

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

    def attach(self, folder: RunFolder) -> GeminiRun | None:
        """Return the run in `folder`, which any gemtui process may have started.

        Returns None if the folder can't be read.
        """
        request = folder.request()
        return None if request is None else GeminiRun(folder, request, guard=self._guard)

    async def begin(
        self,
        prompt: str,
        options: AgentOptions,
        *,
        id: str | None = None,
        ready: ReadyCli | None = None,
    ) -> GeminiRun:
        """Start a run on a background thread, like `start`, which raises the same errors.

        If the task is cancelled while the run is starting, this method ends the run and waits for
        its end. If the task is cancelled again or the event loop is closed, the run still ends, but
        nothing waits for it.
        """
        thread = ThreadPoolExecutor(1)
        starting = thread.submit(partial(self.start, prompt, options, id=id, ready=ready))
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
    run: GeminiRun, approve: Approve | None, late: Callable[[ApprovalRequest], object]
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


def _end(starting: Future[GeminiRun]) -> None:
    """End the run that `starting` has started, if any, and wait for its end."""
    with suppress(GemtuiError, OSError):
        run = starting.result()
        run.abort()
        run.reap()


async def _on_set(event: asyncio.Event | None, act: Callable[[], None]) -> None:
    if event is not None:
        await event.wait()
        act()


def unstarted(error: Exception, options: AgentOptions) -> list[AgentEvent]:
    """Return the events for a run that couldn't start: `init`, `error` and `done`."""
    stream = Stream(
        cwd=str(options.cwd or current_folder()), model=options.model, resumed=options.resume
    )
    return list(stream.finish(Ending(code=None, problem=str(error))))


def _about(
    prompt: str, options: AgentOptions, command: Command, capabilities: Capabilities
) -> About:
    """Return the facts to show in the list of runs and on screens that follow the run."""
    alone: About = (
        {} if options.approve is None else {"answerer": asdict(process_tree.this_process())}
    )
    return {
        **alone,
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
        "capabilities": capabilities.to_dict(),
    }


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
            start_new_session=True,
        )
    finally:
        os.close(output)
