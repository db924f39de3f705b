"""Job objects of Windows: processes that can't leave them, and end with their last handle.

A run's supervisor has the only handle, so that nothing of a run outlives the supervisor, whatever
ends it. Nothing else imports this module, which is empty on other systems.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import ctypes
    import subprocess
    from collections.abc import Sequence
    from contextlib import suppress
    from ctypes import wintypes
    from typing import Any

    import psutil

    _CREATE_SUSPENDED = 0x4
    _BASIC_PROCESS_ID_LIST = 3
    _EXTENDED_LIMIT_INFORMATION = 9
    _KILL_ON_JOB_CLOSE = 0x2000
    _MOST = 4096
    """The most members that are listed at once."""

    class _Limits(ctypes.Structure):
        """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

        _fields_ = (
            ("process_time", ctypes.c_int64),
            ("job_time", ctypes.c_int64),
            ("flags", wintypes.DWORD),
            ("smallest", ctypes.c_size_t),
            ("largest", ctypes.c_size_t),
            ("processes", wintypes.DWORD),
            ("affinity", ctypes.c_size_t),
            ("priority", wintypes.DWORD),
            ("scheduling", wintypes.DWORD),
            ("counters", ctypes.c_uint64 * 6),
            ("memory", ctypes.c_size_t * 4),
        )

    class _Members(ctypes.Structure):
        """JOBOBJECT_BASIC_PROCESS_ID_LIST."""

        _fields_ = (
            ("assigned", wintypes.DWORD),
            ("listed", wintypes.DWORD),
            ("pids", ctypes.c_size_t * _MOST),
        )

    class Job:
        """A job object: what is started in it, and whatever that starts. Raises OSError."""

        def __init__(self) -> None:
            self._kernel = ctypes.WinDLL("kernel32", use_last_error=True)
            self._kernel.CreateJobObjectW.restype = wintypes.HANDLE
            self._job = wintypes.HANDLE(self._kernel.CreateJobObjectW(None, None))
            limits = _Limits(flags=_KILL_ON_JOB_CLOSE)
            self._require(
                self._kernel.SetInformationJobObject(
                    self._job,
                    _EXTENDED_LIMIT_INFORMATION,
                    ctypes.byref(limits),
                    ctypes.sizeof(limits),
                )
            )

        def start(
            self, words: Sequence[str], *, creationflags: int, **options: Any
        ) -> subprocess.Popen[bytes]:
            """Start a program as `subprocess.Popen` does, but in the job from its beginning."""
            flags = creationflags | _CREATE_SUSPENDED
            child: Any = subprocess.Popen(words, creationflags=flags, **options)
            try:
                process = wintypes.HANDLE(int(child._handle))
                self._require(self._kernel.AssignProcessToJobObject(self._job, process))
                psutil.Process(child.pid).resume()
            except BaseException:
                child.kill()
                raise
            return child  # type: ignore[no-any-return]

        def members(self) -> set[psutil.Process]:
            """Return the processes that are in the job, but not its console, which ends itself."""
            members = _Members()
            self._require(
                self._kernel.QueryInformationJobObject(
                    self._job,
                    _BASIC_PROCESS_ID_LIST,
                    ctypes.byref(members),
                    ctypes.sizeof(members),
                    None,
                )
            )
            processes = set()
            for pid in members.pids[: members.listed]:
                with suppress(psutil.Error):
                    processes.add(psutil.Process(pid))
            return {process for process in processes if not _is_console(process)}

        def end(self) -> None:
            """End all members at once."""
            self._require(self._kernel.TerminateJobObject(self._job, 1))

        def _require(self, done: int) -> None:
            if not done:
                raise ctypes.WinError(ctypes.get_last_error())

    def _is_console(process: psutil.Process) -> bool:
        with suppress(psutil.Error, OSError):
            return process.name().lower() == "conhost.exe"
        return False
