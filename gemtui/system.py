"""What differs between operating systems: flags for opening files, signals, locks, modes.

What gemtui can't do on Windows yet is in `Unported`. Nothing here has been tried on Windows itself.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from time import sleep
from typing import Any

if sys.platform == "win32":
    import msvcrt
    from contextlib import suppress

    OWN = os.O_BINARY | os.O_NOINHERIT
    AT_ONCE = NO_LINK = FOLDER_ONLY = 0
    ENDING = (signal.SIGTERM, signal.SIGBREAK, signal.SIGINT)
    KILL = signal.SIGTERM
    DETACHED: dict[str, Any] = {"creationflags": 0x0800_0200}
    HOME = "USERPROFILE"
    TELL = signal.SIGBREAK
    _LOCK_AGAIN = 0.05
else:
    import fcntl

    OWN = os.O_CLOEXEC
    """Opens a file for this process alone, with its bytes as they are."""
    AT_ONCE = os.O_NONBLOCK | os.O_NOCTTY
    """Opens anything without waiting, as for a FIFO's other end, or taking it as the terminal."""
    NO_LINK = os.O_NOFOLLOW
    """Opens no link."""
    FOLDER_ONLY = os.O_DIRECTORY
    """Opens only a folder."""
    ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    """The signals that ask a program to end."""
    KILL = signal.SIGKILL
    """The signal that ends a process at once."""
    DETACHED: dict[str, Any] = {"start_new_session": True}
    """The options that start a process apart from this terminal and its signals.

    On Windows, CREATE_NEW_PROCESS_GROUP and CREATE_NO_WINDOW.
    """
    HOME = "HOME"
    """The variable with the user's home folder, as agents read it."""
    TELL = signal.SIGUSR1
    """The signal with which one process of gemtui tells another something."""


class Unported(StrEnum):
    """What gemtui can't do on Windows yet, as the subject of the sentence that says so."""

    ASK = "“Ask me”"
    """Gemini CLI would take a hook that fails, as ours would, for a yes."""
    EXTENSION = "gemtui's extension"
    SUSPEND = "ctrl+z"
    UNDO = "undo"
    WATCH = "watching a folder"
    WORKTREES = "a run in a worktree"


def why_not(what: Unported) -> str:
    """Return why gemtui can't do this on this system, in a sentence; "" if it can."""
    if sys.platform == "win32":
        return f"{what} does not work on Windows yet: use gemtui in WSL"
    return ""


def require(what: Unported) -> None:
    """Raise OSError, with the sentence of `why_not`, if gemtui can't do this on this system."""
    if reason := why_not(what):
        raise OSError(reason)


_MOVE_AGAIN = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.4, 0.4, 0.4)


def lock(handle: int, *, wait: bool) -> bool:
    """Lock an open file until it is closed; return whether this process has the lock.

    `wait`: wait until the lock is free. Raises OSError if the file system has no locks.
    """
    if sys.platform == "win32":
        while True:
            with suppress(OSError):
                os.lseek(handle, 0, os.SEEK_SET)
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
                return True
            if not wait:
                return False
            sleep(_LOCK_AGAIN)
    else:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def move(move: Callable[[Path], object], target: Path) -> None:
    """Move a closed file with `move`, a method of its path, to `target`. Raises OSError.

    Windows refuses while a program, such as a virus scanner, has either of them open, so it is
    tried again for two seconds there.
    """
    for pause in _MOVE_AGAIN if sys.platform == "win32" else ():
        try:
            move(target)
        except PermissionError:
            sleep(pause)
        else:
            return
    move(target)


def use_utf8() -> None:
    """Write to stdout and stderr on Windows as elsewhere: UTF-8, and `\n` at the end of lines."""
    if sys.platform == "win32":
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(encoding="utf-8", errors=stream.errors, newline="\n")


_ARENA_MAX = -8
"""The number of glibc's `mallopt` for the maximum number of heaps."""


def share_heap() -> None:
    """Let all threads of this process use one heap, so that less memory is freed and kept.

    Does nothing unless the C library is glibc. Call this before any thread is started.
    """
    _call_allocator("mallopt", _ARENA_MAX, 1)


def trim_heap() -> None:
    """Give freed memory back to the system. Does nothing unless the C library is glibc."""
    _call_allocator("malloc_trim", 0)


def _call_allocator(name: str, *numbers: int) -> None:
    if sys.platform != "win32":
        import ctypes

        function = getattr(ctypes.CDLL(None), name, None)
        if function is not None:
            function(*numbers)


def set_mode(handle: int, mode: int) -> None:
    """Set an open file's mode. On Windows, the user's profile folder protects files instead."""
    if sys.platform != "win32":
        os.fchmod(handle, mode)


def user() -> int:
    """Return the number of the user as whom this process acts; -1 on Windows."""
    if sys.platform == "win32":
        return -1
    return os.geteuid()


def kill_group(pid: int) -> None:
    """Kill the process group that a process leads; on Windows, the process. Raises OSError."""
    if sys.platform == "win32":
        os.kill(pid, KILL)
    else:
        os.killpg(pid, KILL)
