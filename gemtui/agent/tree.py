"""The process tree of a run: found by parent, by group and by tag, and ended as a whole.

A shell tool runs in a session of its own and outlives the CLI (contract 0, trap 4); it still
inherits our tag.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress

import psutil

from gemtui.agent.folder import RUN_TAG


def descendants(pid: int) -> set[psutil.Process]:
    """All processes below `pid` and itself, as far as they can be seen."""
    try:
        root = psutil.Process(pid)
        return {root, *root.children(recursive=True)}
    except psutil.Error:
        return set()


def tagged(run_id: str) -> set[psutil.Process]:
    """All processes that carry the run's tag in their environment, wherever they hang now."""
    found = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get(RUN_TAG) == run_id:
                found.add(process)
    return found - {psutil.Process()}


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
    """Signal each process, and each whole process group that one of them leads.

    Our own process and group are never meant.
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


def end_tagged(run_id: str) -> None:
    """Kill everything that carries the run's tag."""
    while left := alive(tagged(run_id)):
        send(left, signal.SIGKILL)
        time.sleep(0.02)
