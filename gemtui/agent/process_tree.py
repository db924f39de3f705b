"""Find the processes of a run by parent, by group and by tag, and end all of them.

A shell tool runs in a session of its own and outlives the CLI, but inherits our tag
(assets/gemini-cli.md#process-tree).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress

import psutil

from gemtui.agent.run_folder import RUN_TAG

_STEP = 0.02
_AFTER_KILL = 5.0
"""Seconds that a process may take to go after SIGKILL."""


def descendants(pid: int) -> set[psutil.Process]:
    """Return the process `pid` and all below it, as far as they can be seen."""
    with suppress(psutil.Error):
        return _with_children(psutil.Process(pid))
    return set()


def cpu_seconds(pid: int) -> float:
    """Return how long the process `pid` and all that lives below it have computed, in seconds."""
    total = 0.0
    for process in descendants(pid):
        with suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def _with_children(process: psutil.Process) -> set[psutil.Process]:
    with suppress(psutil.Error):
        return {process, *process.children(recursive=True)}
    return {process}


def by_run() -> dict[str, set[psutil.Process]]:
    """Return all living processes that carry a run's tag in their environment, by the run's id.

    One pass over the processes of the machine, about 0.1 ms for each. Those of other users can't be
    seen.
    """
    found: dict[str, set[psutil.Process]] = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            run_id = process.environ().get(RUN_TAG)
            if run_id is not None and process.pid != os.getpid() and is_alive(process):
                found.setdefault(run_id, set()).add(process)
    return found


def tagged(run_id: str) -> set[psutil.Process]:
    """Return all living processes that carry the run's tag, whatever their parent is now."""
    return by_run().get(run_id, set())


def members(group: int) -> set[psutil.Process]:
    """All living processes of a process group."""
    found = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if os.getpgid(process.pid) == group and is_alive(process):
                found.add(process)
    return found


def is_alive(process: psutil.Process) -> bool:
    """Whether it still runs; a zombie does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def alive(processes: Iterable[psutil.Process]) -> set[psutil.Process]:
    """Those that still run."""
    return {process for process in processes if is_alive(process)}


def send(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    """Send a signal to each process, and to the whole process group that one of them leads.

    Never to our own process and group.
    """
    ours = os.getpgid(0)
    for process in processes:
        if process.pid == os.getpid():
            continue
        with suppress(psutil.Error, OSError):
            if os.getpgid(process.pid) == process.pid != ours and process.is_running():
                os.killpg(process.pid, number)
        with suppress(psutil.Error, OSError):
            process.send_signal(number)


def end_tagged(run_id: str, *, grace: float = 0.0) -> int:
    """End all processes that carry the run's tag and all below them; return their number.

    SIGTERM first, and SIGKILL after `grace` seconds; 0 = SIGKILL at once. Processes that don't end
    within some seconds after SIGKILL are left.
    """
    ended: set[psutil.Process] = set()
    began = time.monotonic()
    while (passed := time.monotonic() - began) < grace + _AFTER_KILL:
        roots = tagged(run_id)
        left = alive(ended) | roots.union(*map(_with_children, roots))
        if not left:
            break
        if passed >= grace:
            send(left, signal.SIGKILL)
        else:
            send(left - ended, signal.SIGTERM)
        ended |= left
        time.sleep(_STEP)
    return len(ended)
