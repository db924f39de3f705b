"""Supervise one run: start the CLI, enforce its limits and record its exit.

Started as `python -m gemtui.agent.supervise FOLDER`. Because the supervisor has its own session, it
outlives gemtui, which only reads the run's folder and can be closed and opened again during the
run. The run ends when SIGTERM, SIGINT or SIGHUP is sent to the supervisor, or when the abort file
appears.

On Windows, a job object holds the run's processes (`gemtui.agent.job`). Elsewhere, the supervisor's
parent is the guardian, which ends the run if the supervisor is killed. A process can't react to its
own SIGKILL, and a command can leave its parent, its session and its environment (`env -i setsid
nohup ...`). Therefore, where the operating system supports it, the guardian is a child subreaper:
every descendant that loses its parent becomes the guardian's child (`process_tree.adopt_strays`),
and the guardian reaps it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import IO, Protocol, cast

import psutil

from gemtui import system
from gemtui.agent import process_tree
from gemtui.agent.output import TurnWatch
from gemtui.agent.run_folder import (
    KILLED,
    RUN_TAG,
    Abort,
    Exit,
    Limit,
    Owner,
    Request,
    RunFolder,
    Waiting,
    open_private,
)
from gemtui.agents import WORDS
from gemtui.errors import GemtuiError, message_of, reason_of
from gemtui.files import is_folder, size_of

if sys.platform == "win32":
    from gemtui.agent.job import Job

_SIGNALS = system.ENDING
CHECK_PAUSE = 0.02
"""Seconds between two checks of the child, the abort file and the limits."""
_LONGEST = 0.25
_LOOK_FOR_CHILDREN = 0.25
_AFTER_KILL = 5.0
_AFTER_INTERRUPT = 2.0
"""How many seconds an agent gets to end by itself once it has been told to give up."""
_LOOK_FOR_PROMPT = 0.03
_TEMPORARY = ("TMPDIR", "TEMP", "TMP") if sys.platform == "win32" else ("TMPDIR",)
"""The variables that name a program's folder for temporary files."""


def pause(waited: float) -> float:
    """Return how many seconds to sleep between two checks for the user's answer.

    `waited`: seconds since the question. The longer the wait, the longer the pause, up to a limit,
    so that waiting overnight costs next to nothing.
    """
    return min(_LONGEST, max(CHECK_PAUSE, waited / 50))


class RunKeeper(Protocol):
    """Watches over a run's files from before its start until after its end.

    The supervisor calls these methods.
    """

    def check(self) -> float:
        """Check the files once; return the number of seconds until the next check."""

    def close(self) -> object:
        """Check the files one last time, after all of the run's processes have ended."""


class RunGate(Protocol):
    """Asks the user before a run's tool calls."""

    def open(self, temporary: Path) -> Mapping[str, str]:
        """Prepare to ask questions, before the CLI starts.

        Returns variables for the CLI's environment. `temporary`: the run's folder for temporary
        files. Raises OSError or GemtuiError.
        """

    @property
    def waiting(self) -> bool:
        """Whether the user is being asked; this time doesn't count towards time limits."""

    @property
    def stopped(self) -> bool:
        """Whether the user answered a question by stopping the run."""

    def problem(self) -> str | None:
        """Return why the run must be killed at once; None if it need not be."""

    def close(self) -> None:
        """Deny all unanswered questions."""


class Link(RunGate, Protocol):
    """A gate that speaks with the agent through the agent's stdin.

    Only the supervisor holds this pipe. If it is killed, the pipe is closed, and the agent denies
    what it has asked about and ends.
    """

    def connect(self, stdin: IO[bytes]) -> None:
        """Begin to speak with the agent, in threads of its own; `close` closes `stdin`.

        Writing raises BrokenPipeError once the agent has ended. `stdin`: without a buffer.
        """

    @property
    def kept_until(self) -> float | None:
        """Until when an agent without anything to do is kept, in seconds since 1970.

        None if it works. This time doesn't count towards time limits. At its end, the gate closes
        stdin, and the agent ends.
        """

    def interrupt(self) -> bool:
        """Tell the agent to give up and end; return whether it could be told."""


class SpendingLimit(Protocol):
    """Limits what a run may cost."""

    def exceeded(self) -> str | None:
        """Return why the model must not be called again, as text for the user.

        Returns None if the model may be called again, or while tools that it has called are
        running.
        """

    def close(self) -> None:
        """Stop watching the costs."""


KeeperOf = Callable[[RunFolder, Request], RunKeeper | None]
"""Returns the keeper that watches over a run's files; None if the run needs none."""


GateOf = Callable[[RunFolder, Request], RunGate | None]
"""Returns the gate that asks the user about a run's calls; None if nothing asks."""


BudgetOf = Callable[[RunFolder, Request], SpendingLimit | None]
"""Returns the object that limits a run's cost; None if there is no limit."""


AfterRun = Callable[[RunFolder], object]
"""Called with a run's folder after its exit has been recorded."""


def _nobody(_folder: RunFolder, _request: Request) -> None:
    """Return None, as the default if the run has no keeper, gate or budget."""


def _nothing(_folder: RunFolder) -> None:
    """Do nothing, as the default for `after`."""


class PromptPipe:
    """The stdin of a CLI that waits for its prompt (assets/gemini-cli.md#prompt).

    Closing it would send what has been written so far as a prompt. So the guardian holds it, too:
    if the supervisor is killed, the CLI is ended before its stdin is closed. `first`: the first
    character of the prompt.
    """

    def __init__(self, first: str) -> None:
        self.reading, self._writing = os.pipe()
        self._sent = os.write(self._writing, first.encode())
        self._guardian = os.getpid()
        signal.signal(system.TELL, self._close)

    def _close(self, _number: int, _frame: FrameType | None) -> None:
        signal.signal(system.TELL, signal.SIG_IGN)
        os.close(self._writing)

    def send(self, prompt: Path) -> None:
        """Write the rest of the prompt in this file, and close the pipe; the guardian does, too.

        A thread writes, because the CLI may not read yet.
        """
        rest = prompt.read_bytes()[self._sent :]

        def write() -> None:
            with suppress(BrokenPipeError), os.fdopen(self._writing, "wb") as stdin:
                stdin.write(rest)

        if os.getppid() == self._guardian:
            os.kill(self._guardian, system.TELL)
        threading.Thread(target=write, daemon=True).start()


class Supervisor:
    """Carries out a run's request: starts, watches and ends the CLI's process.

    `waiting`: if not None, the CLI waits for its prompt, and the request follows with the prompt.

    Before, during and after the run, it calls those of these that the run has: the keeper, which
    watches over files; the gate, which asks the user about tool calls; and the spending limit.
    """

    def __init__(
        self,
        folder: RunFolder,
        request: Request,
        keeper_of: KeeperOf = _nobody,
        gate_of: GateOf = _nobody,
        after: AfterRun = _nothing,
        budget_of: BudgetOf = _nobody,
        waiting: Waiting | None = None,
    ) -> None:
        self.folder = folder
        self.request = request
        self._waiting = waiting
        self._pipe: PromptPipe | None = None
        self._keeper_of, self._after = keeper_of, after
        self._gate = gate_of(folder, request)
        self._link = cast(Link, self._gate) if request.pipe else None
        self._kept_until: float | None = None
        self._was_kept = False
        """Whether the agent had nothing to do when its end was requested."""
        self._budget = budget_of(folder, request)
        self._problem: str | None = None
        self._stood = 0.0
        self._keeper: RunKeeper | None = None
        self._trouble: str | None = None
        self._asked: Abort | None = None
        self._limit: Limit | None = None
        self._limit_words = ""
        self._killed = False
        self._ended_others = 0
        self._guardian = os.getpid()
        self._seen: set[psutil.Process] = set()
        self._looked = 0.0
        self._grew = (0, time.monotonic())
        self._turns = TurnWatch(folder.stdout, request.turn_limit)
        if sys.platform == "win32":
            self._job = Job()

    def run(self) -> None:
        """Start, watch and end the run; write the exit record whatever happens."""
        began = datetime.now(UTC)
        if self._waiting is not None:
            self._pipe = PromptPipe(self._waiting.first)
        try:
            task = guarded(self._run)
        except OSError as error:
            self._problem = _start_words(error, self.request)
            self._finish(None, began)
        else:
            if not task:
                self._take_over(began)

    def _run(self) -> None:
        """Do the work of `run`; called in a child process of the guardian (`guarded`)."""
        for number in _SIGNALS:
            signal.signal(number, self._on_signal)
        if sys.platform != "win32":
            signal.signal(system.TELL, signal.SIG_DFL)  # only the guardian gets it
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        self.folder.write_owner(Owner(pid=os.getpid(), began=psutil.Process().create_time()))
        self.folder.reserve_space()
        started = datetime.now(UTC)
        code = None
        self._keeper = self._keeper_of(self.folder, self.request)
        self._keep()
        try:
            child = self._start()
        except OSError as error:
            self._problem = _start_words(error, self.request)
        except GemtuiError as error:
            self._problem = str(error)
        else:
            with suppress(OSError):  # the CLI may have filled the disk already
                self.folder.write_owner(
                    Owner(pid=os.getpid(), began=psutil.Process().create_time(), cli=child.pid)
                )
            if self._waiting is None:
                code = self._watch(child)
            elif self._has_prompt(child, self._waiting):
                started = datetime.now(UTC)
                code = self._watch(child)
            else:
                self._end(child)
        self._finish(code, started)

    def _has_prompt(self, child: subprocess.Popen[bytes], waiting: Waiting) -> bool:
        """Wait for the prompt, and send it to the CLI; return False if there will be none.

        Afterwards, the request is that of a run, whose time begins now.
        """
        checked = 0.0
        while (request := self.folder.request()) is None:
            time.sleep(_LOOK_FOR_PROMPT)
            if time.monotonic() - checked < _LOOK_FOR_CHILDREN:
                continue
            checked = time.monotonic()
            self._look(child.pid)
            self._look_at_gate()
            self._keep()
            is_gone = self._how() is not None or not process_tree.still_running([waiting.sender])
            is_over = child.poll() is not None or time.time() >= waiting.until
            is_over = is_over or size_of(self.folder.stdout) > 0  # it doesn't wait
            if is_gone or is_over or self._problem is not None:
                if self.folder.withdraw():
                    return False
                if is_gone and self.folder.request() is None:
                    return False
        self.request = request
        self._keep()
        assert self._pipe is not None
        self._pipe.send(self.folder.prompt)
        self._grew = (self._grew[0], time.monotonic())
        return True

    def _take_over(self, started: datetime) -> None:
        """End the run after its supervisor was killed.

        The guardian, which is the supervisor's parent process, calls this. `started`: when the run
        was started.
        """
        self.folder.withdraw()
        if self.folder.exit() is None:
            self._ended_others = process_tree.end_processes(self._left)
            self._keeper = self._keeper_of(self.folder, self.request)
            self._problem = KILLED
            self._finish(None, started)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._asked = Abort.KILL if self._asked else Abort.TERM

    def _start(self) -> subprocess.Popen[bytes]:
        request = self.request
        temporary = self.folder.make_temporary(request.environ.get("TMPDIR"))
        gate = {} if self._gate is None else self._gate.open(temporary)
        folders = dict.fromkeys(_TEMPORARY, str(temporary))
        environ = {**os.environ, **request.environ, **gate, **folders, RUN_TAG: request.id}
        start: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen
        if sys.platform == "win32":
            start = self._job.start
        out, err = open_private(self.folder.stdout), open_private(self.folder.stderr)
        try:
            with self._stdin() as prompt:
                child = start(
                    request.argv,
                    bufsize=0,
                    cwd=request.cwd,
                    env=environ,
                    stdin=prompt,
                    stdout=out,
                    stderr=err,
                    **system.DETACHED,
                )
        finally:
            os.close(out)
            os.close(err)
        if self._link is not None:
            assert child.stdin is not None
            self._link.connect(child.stdin)
        return child

    def _stdin(self) -> AbstractContextManager[IO[bytes] | int]:
        if self._link is not None:
            return nullcontext(subprocess.PIPE)
        if self._pipe is not None:
            return os.fdopen(self._pipe.reading, "rb")
        path = self.folder.prompt if self.request.stdin else Path(os.devnull)
        return path.open("rb")

    def _watch(self, child: subprocess.Popen[bytes]) -> int:
        """Wait until the CLI and its process group have ended; end them if necessary.

        That is necessary if a limit is exceeded or the run's end is requested. Returns the CLI's
        exit code. `child`: the CLI's process.
        """
        began = time.monotonic()
        while child.poll() is None:
            self._look(child.pid)
            if self._wants_end(time.monotonic() - began - self._stood):
                self._end(child)
                break
            with suppress(subprocess.TimeoutExpired):
                child.wait(self._keep())
            self._stand_still(child)
        if not self._killed:
            self._wait_for_group(child.pid)
            self._ended_others += process_tree.end_processes(
                self._left, grace=self.request.grace, at_once=lambda: self._how() is Abort.KILL
            )
        if self._how() is None:
            self._look_at_budget()
        self._look_at_gate()
        return child.wait()

    def _stand_still(self, child: subprocess.Popen[bytes]) -> None:
        """Wait while the user is being asked or the agent is kept, with all limits suspended."""
        began = now = time.monotonic()
        while child.poll() is None and self._waits_for_user():
            self._look(child.pid)
            self._look_at_gate()
            if self._problem is not None or self._how() is not None:
                self._was_kept = self._kept_until is not None
                break
            self._keep()
            time.sleep(pause(now - began))
            now = time.monotonic()
            self._grew = (self._grew[0], now)
        self._stood += now - began

    def _waits_for_user(self) -> bool:
        if self._link is not None and self._link.kept_until != self._kept_until:
            self._kept_until = self._link.kept_until
            with suppress(OSError):  # the disk may be full
                self.folder.keep_until(self._kept_until)
        asks = self._gate is not None and self._gate.waiting
        return asks or self._kept_until is not None

    def _keep(self) -> float:
        """Let the keeper check the run's files; return the seconds until its next check.

        If the keeper raises an exception, the error is logged, and the run continues.
        """
        if self._keeper is not None:
            try:
                return min(CHECK_PAUSE, self._keeper.check())
            except Exception as error:
                self._write_down(error)
        return CHECK_PAUSE

    def _keep_last(self) -> None:
        if self._keeper is not None:
            try:
                self._keeper.close()
            except Exception as error:
                self._write_down(error)

    def _look_at_gate(self) -> None:
        if self._gate is not None and self._problem is None:
            self._problem = self._gate.problem()

    def _close_gate(self) -> None:
        if self._gate is not None:
            try:
                self._gate.close()
            except OSError as error:
                self._write_down(error)

    def _write_down(self, error: Exception) -> None:
        """Log an error, but only once if the same error occurs repeatedly."""
        if str(error) != self._trouble:
            self._trouble = str(error)
            traceback.print_exception(error)

    def _look(self, pid: int) -> None:
        """Remember the child's descendants, at most four times a second.

        They are remembered so that they can be ended later: once the child has ended, its
        descendants can no longer be found.
        """
        now = time.monotonic()
        if now - self._looked >= _LOOK_FOR_CHILDREN:
            self._looked = now
            self._seen = process_tree.alive(self._seen) | process_tree.descendants(pid)

    def _wants_end(self, elapsed: float) -> bool:
        self._look_at_gate()
        if self._problem is not None or self._how() is not None:
            return True
        timeout, idle = self.request.timeout, self.request.idle_timeout
        if timeout is not None and elapsed >= timeout:
            self._limit = Limit.TIMEOUT
        elif idle is not None and self._silence() >= idle:
            self._limit = Limit.IDLE
        elif self._turns.last_is_over():
            self._limit = Limit.TURNS
        else:
            self._look_at_budget()
        return self._limit is not None

    def _look_at_budget(self) -> None:
        """Check the budget, and end the run if it is used up or the cost is unknown."""
        if self._budget is None or self._limit is not None:
            return
        try:
            exceeded = self._budget.exceeded()
        except Exception as error:  # whatever the error is, the cost is unknown
            self._write_down(error)
            exceeded = f"The cost of this run can't be determined: {message_of(error)}"
        if exceeded is not None:
            self._limit, self._limit_words = Limit.BUDGET, exceeded

    def _how(self) -> Abort | None:
        """Return how to end the run; None if its end has not been requested.

        A request is a signal, the abort file or the user's answer to a question. Of several
        requests, the strongest counts.
        """
        asked = self.folder.abort_request()
        if self._gate is not None and self._gate.stopped:
            self._asked = self._asked or Abort.TERM
        if asked is Abort.KILL:
            self._asked = Abort.KILL
        return self._asked or asked

    def _silence(self) -> float:
        """Return the number of seconds since either output file last grew."""
        size = sum(path.stat().st_size for path in (self.folder.stdout, self.folder.stderr))
        now = time.monotonic()
        if size != self._grew[0]:
            self._grew = (size, now)
        return now - self._grew[1]

    # --- ending --------------------------------------------------------------------------------

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        """Send SIGTERM to all of the run's processes, then SIGKILL after the grace period.

        Finally, processes that were started during the grace period are killed.
        """
        targets = self._targets(child)
        if self._how() is not Abort.KILL and self._problem is None:
            if self._link is not None and self._link.interrupt():
                self._wait_for(targets, child, _AFTER_INTERRUPT, stop_on_kill=True)
            process_tree.send(targets, signal.SIGTERM)
            self._wait_for(targets, child, self.request.grace, stop_on_kill=True)
        left = process_tree.alive(targets | self._targets(child))
        if left or child.poll() is None:
            self._killed = True
            process_tree.send(left, system.KILL)
            if sys.platform == "win32":
                self._job.end()
        self._ended_others = self._sweep(child, targets)

    def _targets(self, child: subprocess.Popen[bytes]) -> set[psutil.Process]:
        below = process_tree.descendants(child.pid) if child.poll() is None else set()
        return below | self._left()

    def _left(self) -> set[psutil.Process]:
        """Return the run's living processes except the CLI, as far as they can be found."""
        if sys.platform == "win32":
            return process_tree.alive(self._job.members())
        inherited = process_tree.inherited_processes(self._guardian)
        tagged = process_tree.tagged(self.request.id)
        return process_tree.alive(self._seen | inherited | tagged)

    def _sweep(self, child: subprocess.Popen[bytes], known: set[psutil.Process]) -> int:
        """Kill the run's remaining processes until none is left or some seconds passed.

        `child`: the CLI's process. `known`: the processes that were already sent a signal. Returns
        how many other processes were killed.
        """
        others: set[psutil.Process] = set()
        deadline = time.monotonic() + _AFTER_KILL
        while time.monotonic() < deadline:
            child.poll()
            left = process_tree.alive(self._targets(child))
            if not left:
                break
            others |= left - known
            process_tree.send(left, system.KILL)
            time.sleep(CHECK_PAUSE)
        return len(others)

    def _wait_for(
        self,
        targets: set[psutil.Process],
        child: subprocess.Popen[bytes],
        seconds: float,
        *,
        stop_on_kill: bool,
    ) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            child.poll()
            if not process_tree.alive(targets) or (stop_on_kill and self._how() is Abort.KILL):
                return
            time.sleep(CHECK_PAUSE)

    def _wait_for_group(self, group: int) -> None:
        """Wait for all processes in the CLI's process group to end.

        The CLI consists of two processes, and its output is complete only when both have ended.
        Processes that remain after the grace period are killed.
        """
        deadline = time.monotonic() + self.request.grace
        while (left := process_tree.group_members(group)) and time.monotonic() < deadline:
            time.sleep(CHECK_PAUSE)
        process_tree.send(left, system.KILL)

    def _finish(self, code: int | None, started: datetime) -> None:
        self._close_gate()
        if self._budget is not None:
            self._budget.close()
        self._look_at_gate()
        self.folder.remove_secrets(self.request.secrets)
        self.folder.note_full_disk()
        self._keep_last()
        left = self._left()
        if not left:
            self.folder.remove_temporary()
        self.folder.finish(
            Exit(
                code=code,
                started=started,
                ended=datetime.now(UTC),
                aborted=self._how() is not None and not self._was_kept,
                killed=self._killed,
                limit=self._limit,
                limit_words=self._limit_words,
                problem=self._problem,
                ended_others=self._ended_others,
                left=tuple(filter(None, map(process_tree.identify, left))),
            )
        )
        try:
            self._after(self.folder)
        except OSError as error:
            self._write_down(error)


def _start_words(error: OSError, request: Request) -> str:
    """Return why the CLI could not be started, for the `error` event."""
    what = f"spawn {WORDS[request.agent].command}"
    if not is_folder(Path(request.cwd)):
        return f"{what}: the folder {request.cwd} is not there"
    if isinstance(error, FileNotFoundError):
        return f"{what} ENOENT"
    return f"{what}: {reason_of(error)}"


# --- the guardian ---------------------------------------------------------------------------------


def guarded(work: Callable[[], object]) -> bool:
    """Call `work` in a child process with its own session, and wait for the child.

    Returns True if `work` returned, and False if the child was killed or failed. Call this while
    the process has only one thread. From then on, this process ignores the signals that end a run.
    Raises OSError if no process can be started.
    """
    if sys.platform == "win32":  # if this process is killed, its job ends the run's processes
        try:
            work()
        except Exception:
            traceback.print_exc()
            return False
        return True
    process_tree.adopt_strays()
    pid = os.fork()
    if pid == 0:
        _work(work)
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    return _reap_until(pid) == 0


def _work(work: Callable[[], object]) -> None:
    """Call `work` in the child process and exit; never returns."""
    code = 1
    try:
        if sys.platform != "win32":
            os.setsid()
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _reap_until(pid: int) -> int:
    """Reap all children until the process `pid` has ended; return its wait status."""
    if sys.platform == "win32":
        return 1
    while True:
        ended, status = os.wait()
        if ended == pid:
            return status


# --- the program ----------------------------------------------------------------------------------


def main(
    words: list[str],
    *,
    keeper_of: KeeperOf = _nobody,
    gate_of: GateOf = _nobody,
    after: AfterRun = _nothing,
    budget_of: BudgetOf = _nobody,
) -> int:
    """Supervise the run whose folder is the first of `words`; return the exit code.

    The exit code is 2 if the folder contains no run to start, and 0 otherwise. `keeper_of`,
    `gate_of`, `budget_of`: return the objects that watch over the run's files, ask the user about
    its calls and limit its cost. `after`: called when the run has ended.
    """
    folder = RunFolder(Path(words[0]))
    request, waiting = folder.request(), folder.waiting()
    if request is None and waiting is not None:
        request = waiting.request
    if request is None:
        print(f"gemtui: {folder.path} does not contain a run to start", file=sys.stderr)  # noqa: T201
        return 2
    Supervisor(folder, request, keeper_of, gate_of, after, budget_of, waiting).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
