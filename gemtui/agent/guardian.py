"""The parent of a supervisor: ends the run if the supervisor is killed.

A process can't react to its own SIGKILL, and a command can leave its parent, its session and its
environment (`env -i setsid nohup ...`). Therefore, where the operating system supports it, the
guardian is a child subreaper: every descendant that loses its parent becomes the guardian's child
(`process_tree.adopt_strays`), and the guardian reaps it.
"""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable

from gemtui.agent import process_tree

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def guarded(work: Callable[[], object]) -> bool:
    """Call `work` in a child process with its own session, and wait for the child.

    Returns True if `work` returned, and False if the child was killed or failed. Call this while
    the process has only one thread. From then on, this process ignores the signals that end a run.
    Raises OSError if no process can be started.
    """
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
        os.setsid()
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _reap_until(pid: int) -> int:
    """Reap all children until the process `pid` has ended; return its wait status."""
    while True:
        ended, status = os.wait()
        if ended == pid:
            return status
