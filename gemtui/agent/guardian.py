"""The parent of a supervisor: ends the run if its supervisor is killed.

A process can't react to its own SIGKILL, and a command can leave its parent, its session and its
environment (`env -i setsid nohup ...`). So the guardian is a child subreaper where the system has
them: every process below it that loses its parent becomes its child (`process_tree.strays`), and is
reaped by it.
"""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable

from gemtui.agent import process_tree

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def guarded(work: Callable[[], object]) -> bool:
    """Call `work` in a child process with its own session; return whether it returned.

    False means that the child was killed or failed. Call it while there is only one thread. From
    then on, signals that end a run are ignored. Raises OSError if no process can be started.
    """
    process_tree.adopt_strays()
    pid = os.fork()
    if pid == 0:
        _work(work)
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    return _reap_until(pid) == 0


def _work(work: Callable[[], object]) -> None:
    """Do the child's part; does not return."""
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
    """Reap all children until this one has ended, and return its wait status."""
    while True:
        ended, status = os.wait()
        if ended == pid:
            return status
