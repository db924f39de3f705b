"""The parent of a supervisor: it ends a run whose supervisor is killed, and inherits its strays.

A process can do nothing about its own SIGKILL, and a command can leave its parent, its session and
its environment (`env -i setsid nohup ...`). So the guardian is a child subreaper where the system
has such: whatever loses its parent anywhere below the guardian becomes its child
(`process_tree.strays`), and is reaped by it.
"""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable

from gemtui.agent import process_tree

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def guarded(work: Callable[[], object]) -> bool:
    """Call `work` in a child process with a session of its own; return whether it returned.

    False = the child was killed, or failed. To be called while there is only one thread; signals
    that end a run are ignored from then on. Raises OSError if no process can be started.
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
    """Reap all children until this one has ended; return its wait status."""
    while True:
        ended, status = os.wait()
        if ended == pid:
            return status
