"""A second process that ends a run if its supervisor is killed.

A process can do nothing about its own SIGKILL, and no signal at a parent's death reaches the
commands that the CLI starts in sessions of their own. A pipe tells of any death: whoever reads its
one end sees the end of the file once nobody holds the other.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress


def stand_guard(take_over: Callable[[], object]) -> Callable[[], None]:
    """Fork a process that calls `take_over` if this one dies; return a function that ends it.

    To be called while there is only one thread. Programs that are started afterwards don't inherit
    the pipe. Raises OSError.
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
