"""Find a run's processes by parent, group and tag, and end all of them.

The tag is an environment variable that contains the run's id. A shell tool runs in its own session
and outlives the CLI, but inherits the tag (assets/gemini-cli.md#process-tree). A command that also
drops the tag is found only on Linux, where it becomes a child of the run's guardian.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from gemtui import system
from gemtui.agent.run_folder import RUN_TAG, Owner, ProcessId, RunFolder

_SET_CHILD_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of Linux's prctl(2)."""
_STEP = 0.02
_AFTER_KILL = 5.0
"""Seconds that a process may take to disappear after SIGKILL."""


def descendants(pid: int) -> set[psutil.Process]:
    """Return the process `pid` and its descendants; an empty set if it has ended.

    A descendant whose parent has ended can't be found this way.
    """
    with suppress(psutil.Error):
        return _with_children(psutil.Process(pid))
    return set()


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of the process `pid` and its living descendants."""
    total = 0.0
    for process in descendants(pid):
        with suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def wants_cpu(pid: int) -> bool:
    """Return whether `pid` or a descendant uses the CPU, or waits for its turn or for a disk."""
    busy = (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP)
    for process in descendants(pid):
        with suppress(psutil.Error):
            if process.status() in busy:
                return True
    return False


def _with_children(process: psutil.Process) -> set[psutil.Process]:
    with suppress(psutil.Error):
        return {process, *process.children(recursive=True)}
    return {process}


def by_run() -> dict[str, set[psutil.Process]]:
    """Return all living processes that carry a run's tag, grouped by run id.

    This is one pass over the environments of the machine's processes, at about 0.1 ms each. Other
    users' processes are invisible.
    """
    processes: dict[str, set[psutil.Process]] = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            run_id = process.environ().get(RUN_TAG)
            if run_id is not None and process.pid != os.getpid() and is_alive(process):
                processes.setdefault(run_id, set()).add(process)
    return processes


def tagged(run_id: str) -> set[psutil.Process]:
    """Return all living processes that carry the run's tag, whatever their parents."""
    return by_run().get(run_id, set())


def adopt_strays() -> bool:
    """Make this process the parent of all descendants that lose their own parent.

    Returns whether the system supports this; only Linux does. Child processes don't inherit the
    role.
    """
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def inherited_processes(guardian: int) -> set[psutil.Process]:
    """Return the processes a run's guardian has inherited, with their descendants.

    `guardian`: the pid of the guardian, which adopts the run's processes that lose their parent.
    Call this from the guardian itself or from one of its children; for any other caller, or after
    the guardian has ended, the result is empty. If a child calls, the result leaves out that child
    and its descendants. On systems where the guardian can't adopt processes, only the processes it
    started itself are found.
    """
    if guardian not in (os.getpid(), os.getppid()):
        return set()
    inherited = {process for process in descendants(guardian) if process.pid != guardian}
    return inherited if guardian == os.getpid() else inherited - descendants(os.getpid())


def is_inside(folder: RunFolder, pid: int | None = None) -> bool:
    """Return whether a run's agent started a process, directly or not.

    `pid`: the process; None means this one. A process can lose the tag (`env -i`) or its parents
    (`setsid --fork`), so either sign is enough: the process or one above it carries the run's tag;
    or the CLI is above it, or the guardian without the supervisor, because the guardian inherits
    only what the run has left behind. The supervisor's other children are the user's own programs.
    A process that can't see the supervisor of a run that has not ended may be in a container that
    the run has made (`unshare --pid`), so it counts as inside. On systems without `adopt_strays`, a
    process that has lost both can't be recognised.
    """
    if pid is None and (os.environ.get(RUN_TAG) == folder.id or not _sees_itself()):
        return True
    above = _with_parents(pid)
    if any(_carries(process, folder.id) for process in above):
        return True
    owner = folder.owner()
    if owner is None:
        return False
    if not owner_lives(owner):
        return folder.exit() is None
    pids = {process.pid for process in above}
    if owner.pid in pids:
        return owner.cli in pids
    return owner.cli in pids or _guardian_of(owner) in pids


def _sees_itself() -> bool:
    """Return whether the system's list of processes has this one under its own pid.

    On Linux the list may be missing, or may be that of another container.
    """
    if sys.platform != "linux":
        return True
    with suppress(OSError):
        return Path("/proc/self").readlink() == Path(str(os.getpid()))
    return False


def _with_parents(pid: int | None) -> list[psutil.Process]:
    """Return a process, or this one, and those above it."""
    process = psutil.Process(pid)
    with suppress(psutil.Error):
        return [process, *process.parents()]
    return [process]


def _carries(process: psutil.Process, run_id: str) -> bool:
    with suppress(psutil.Error, OSError):
        return process.environ().get(RUN_TAG) == run_id
    return False


def _guardian_of(owner: Owner) -> int | None:
    """Return the pid of a supervisor's guardian; None if the guardian has ended.

    The supervisor is a fork of its guardian, so both have the same command line. A parent with
    another one is the system's own, which inherits the processes of everybody.
    """
    with suppress(psutil.Error):
        supervisor = psutil.Process(owner.pid)
        parent = supervisor.parent()
        if parent is not None and parent.cmdline() == supervisor.cmdline():
            return parent.pid
    return None


def identify(process: psutil.Process) -> ProcessId | None:
    """Return the pid and start time of a process; None if the process is gone."""
    with suppress(psutil.Error):
        return ProcessId(pid=process.pid, began=process.create_time())
    return None


def this_process() -> ProcessId:
    """Return the pid and start time of this process."""
    own = psutil.Process()
    return ProcessId(pid=own.pid, began=own.create_time())


def still_running(ids: Iterable[ProcessId]) -> set[psutil.Process]:
    """Return the processes that are still running; a reused pid does not count."""
    running = set()
    for id in ids:
        with suppress(psutil.Error, ValueError):  # a negative number is not a pid
            process = psutil.Process(id.pid)
            if abs(process.create_time() - id.began) < 1 and is_alive(process):
                running.add(process)
    return running


def group_members(group: int) -> set[psutil.Process]:
    """Return all living processes of a process group."""
    members = set[psutil.Process]()
    if sys.platform == "win32":
        return members
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if os.getpgid(process.pid) == group and is_alive(process):
                members.add(process)
    return members


def is_alive(process: psutil.Process) -> bool:
    """Return whether a process is still running; a zombie counts as ended."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def alive(processes: Iterable[psutil.Process]) -> set[psutil.Process]:
    """Return the processes that are still running."""
    return {process for process in processes if is_alive(process)}


def send(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    """Send a signal to each process, and to each process group that one of them leads.

    This process and its group are never signalled.
    """
    for process in processes:
        if process.pid == os.getpid():
            continue
        if sys.platform != "win32":
            with suppress(psutil.Error, OSError):
                if os.getpgid(process.pid) == process.pid != os.getpgid(0) and process.is_running():
                    os.killpg(process.pid, number)
        with suppress(psutil.Error, OSError):
            process.send_signal(number)


def owner_lives(owner: Owner | None) -> bool:
    """Return whether this supervisor is still running.

    The process's start time is also compared, because its pid may have been reused.
    """
    if owner is None:
        return False
    return bool(still_running((ProcessId(pid=owner.pid, began=owner.began),)))


def is_supervised(folder: RunFolder) -> bool:
    """Return whether a run's supervisor is alive, or may not have been recorded yet."""
    return folder.is_starting() or owner_lives(folder.owner())


def end_processes(
    find: Callable[[], set[psutil.Process]],
    *,
    grace: float = 0.0,
    at_once: Callable[[], bool] = lambda: False,
) -> int:
    """End the processes that `find` returns, and their descendants.

    Returns how many processes ended. `find` is called repeatedly until it returns nothing. SIGTERM
    is sent first, then SIGKILL after `grace` seconds (0 means at once) or as soon as `at_once`
    returns true. Processes that survive SIGKILL for some seconds are left alone.
    """
    seen: set[psutil.Process] = set()
    began = time.monotonic()
    while (passed := time.monotonic() - began) < grace + _AFTER_KILL:
        roots = find()
        left = alive(seen) | roots.union(*map(_with_children, roots))
        if not left:
            break
        if passed >= grace or at_once():
            grace = min(grace, passed)
            send(left, system.KILL)
        else:
            send(left - seen, signal.SIGTERM)
        seen |= left
        time.sleep(_STEP)
    return len(seen) - len(alive(seen))


def end_tagged(run_id: str) -> int:
    """End all processes that carry the run's tag; return how many ended.

    See `end_processes`.
    """
    return end_processes(lambda: tagged(run_id))
