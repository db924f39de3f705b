"""A second process beside the supervisor of a run, which takes over where the supervisor is killed.

Nothing can be done by a process that gets SIGKILL, and no signal at a parent's death reaches the
commands that the CLI starts in sessions of their own. A pipe tells of any death: what waits at its
one end reads the end of the file once nobody holds the other.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress


def stand_guard(take_over: Callable[[], object]) -> Callable[[], None]:
    """Fork a process that calls `take_over` if this one dies; calling the result ends it before.

    To be called while there is one thread. Programs that are started from here on don't keep the
    pipe open. Raises OSError.
    """
    theirs, ours = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        _wait(theirs, take_over)
    os.close(theirs)

    def dismiss() -> None:
        with suppress(OSError):
            os.write(ours, b".")
        os.close(ours)
        os.waitpid(pid, 0)

    return dismiss


def _wait(pipe: int, take_over: Callable[[], object]) -> None:
    """Until the other process has died or dismisses us; does not return."""
    try:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        if not os.read(pipe, 1):
            take_over()
    finally:
        os._exit(0)
