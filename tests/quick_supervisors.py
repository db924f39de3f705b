"""Supervisors of runs that are copies of a process in which all that they import is there.

A supervisor needs most of its time for imports. Hundreds of tests start one: here it is forked from
a process that has imported everything, and is otherwise what the adapter would have started.
Commands that are tested as processes start theirs as always.
"""

from __future__ import annotations

import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

IMPORTED = (
    "gemtui.agent.supervise",
    "gemtui.runs.supervisor",
    "gemtui.runs.budget",
    "gemtui.runs.gate.gemini_gate",
    "gemtui.runs.undo.checkpointing",
    "gemtui.kept.resume_guard",
    "gemtui.kept.run_copies",
)
_MOST = 1_000_000
"""Bytes of a request: the environment is the largest part of it."""


def serve(number: int) -> None:
    """Fork a process for each request that comes through a socket, until it is closed."""
    for name in IMPORTED:
        __import__(name)
    signal.signal(signal.SIGCHLD, _reap)
    with socket.socket(fileno=number) as requests:
        while True:
            message, numbers, _, _ = socket.recv_fds(requests, _MOST, 4)
            if not message:
                return
            *streams, answer = numbers
            pid = os.fork()
            if pid == 0:
                requests.close()
                os.close(answer)
                _become(json.loads(message), streams)
            with suppress(BrokenPipeError):
                os.write(answer, str(pid).encode())
            for number in numbers:
                os.close(number)


def _reap(*_: object) -> None:
    """Wait for all that have ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _become(request: dict[str, Any], streams: list[int]) -> None:
    """Be the program that was asked for, in this process."""
    code: Any = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["environ"])
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        sys.argv[1:] = request["words"]
        warnings.simplefilter("ignore")  # that the program has been imported is the point
        runpy.run_module(request["program"], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or 0)


class Forks:
    """The process that forks, and the way to it.

    `environ`: what stood in the environment before a test changed it.
    """

    def __init__(self, environ: dict[str, str]) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-P", __file__, str(theirs.fileno())]
            self._process = subprocess.Popen(
                command,
                cwd=Path(__file__).parent,
                env=environ,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def start(self, request: dict[str, Any], streams: list[int]) -> int:
        """Return the process id of a new process.

        Each answer has its own pipe: a signal may end the wait for one.
        """
        reading, writing = os.pipe()
        with os.fdopen(reading, "rb") as answer:
            try:
                message = json.dumps(request).encode()
                socket.send_fds(self._requests, [message], [*streams, writing])
            finally:
                os.close(writing)
            return int(answer.read())

    def close(self) -> None:
        """End the process; what it has forked goes on."""
        self._requests.close()
        self._process.wait()


def _is_forkable(args: list[str]) -> bool:
    """Return whether it is a supervisor, started by the user who started the tests."""
    return args[1:3] == ["-P", "-m"] and args[3] in IMPORTED and os.geteuid() == os.getuid()


def _has_ended(pid: int, timeout: int | None) -> bool:
    """Return whether a process that is no child of ours has ended; wait for that first."""
    try:
        number = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        events = select.poll()
        events.register(number, select.POLLIN)
        return bool(events.poll(timeout))
    finally:
        os.close(number)


@contextmanager
def quick_supervisors() -> Iterator[type[subprocess.Popen[bytes]]]:
    """Yield a class of processes of which supervisors are forked."""
    from gemtui.processes import IndependentProcess

    forks: Forks | None = None
    environ = dict(os.environ)

    class QuickProcess(IndependentProcess):
        is_forked = False

        def _execute_child(self, args: list[str], *rest: Any) -> None:
            nonlocal forks
            if not _is_forkable(args):
                super()._execute_child(args, *rest)  # type: ignore[misc]
                return
            pipes = rest[9:15]
            stdin, _, _, stdout, _, stderr = pipes
            forks = forks or Forks(environ)
            request = {
                "program": args[3],
                "words": args[4:],
                "cwd": str(rest[4]),
                "environ": rest[5],
            }
            self.pid = forks.start(request, [stdin, stdout, stderr])
            self.is_forked = self._child_created = True
            self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]

        def _internal_poll(self, *args: Any, **named: Any) -> int | None:
            if not self.is_forked:
                return super()._internal_poll(*args, **named)  # type: ignore[misc, no-any-return]
            if self.returncode is None and _has_ended(self.pid, 0):
                self.returncode = 0
            return self.returncode

        def _try_wait(self, flags: int) -> tuple[int, int]:
            if not self.is_forked:
                return super()._try_wait(flags)  # type: ignore[misc, no-any-return]
            return (self.pid if _has_ended(self.pid, 0 if flags else None) else 0, 0)

    yield QuickProcess
    if forks is not None:
        forks.close()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
