"""A pytest plugin that lets gemtui see this system as Windows: `-p tests.windows_like`.

Only gemtui's own modules are given a `sys`, `os`, `signal`, `select` and `socket` without what
Windows lacks, and can't move or remove files that are open; all other libraries, pytest and helper
processes keep the real ones. It shows what
gemtui itself would look for in vain, not what Windows does: paths, sharing and consoles stay those
of this system.
"""

from __future__ import annotations

import builtins
import errno
import fcntl
import importlib.abc
import importlib.machinery
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil

MISSING = {
    "os": """fork forkpty killpg setsid getpgid getpgrp tcgetpgrp getuid geteuid getgid getegid
        uname nice wait waitid fchmod fchown chown lchown mkfifo openpty ttyname pread pwrite
        copy_file_range set_blocking O_NOFOLLOW O_CLOEXEC O_NONBLOCK O_NOCTTY O_DIRECTORY O_PATH""",
    "signal": """SIGHUP SIGKILL SIGQUIT SIGALRM SIGTSTP SIGCONT SIGSTOP SIGTTOU SIGTTIN SIGUSR1
        SIGUSR2 SIGPIPE SIGCHLD SIGWINCH setitimer ITIMER_REAL ITIMER_PROF pthread_sigmask""",
    "select": "poll POLLIN POLLOUT POLLERR POLLHUP epoll",
    "socket": "AF_UNIX SO_PEERCRED",
}
"""What each module lacks on Windows, as far as gemtui could use it."""
GONE = {"termios", "fcntl", "tty", "pty", "pwd", "grp", "resource"}
"""The modules that Windows has not at all."""
OPENS_BY_HANDLE = ("open", "stat", "mkdir", "rmdir", "unlink", "rename", "readlink", "chmod")
"""The functions that take no folder's handle there."""


class Seen(ModuleType):
    """A module as gemtui sees it on Windows."""

    def __init__(self, real: ModuleType, **other: object) -> None:
        super().__init__(real.__name__)
        self.__dict__.update(_real=real, **other)
        self._missing = frozenset(MISSING.get(real.__name__, "").split())

    def __getattr__(self, name: str) -> Any:
        if name in self._missing:
            raise AttributeError(f"{self.__name__} has no {name} on Windows")
        return getattr(self._real, name)


def _by_path(name: str) -> Any:
    function = getattr(os, name)

    def call(*args: Any, **options: Any) -> Any:
        if options.get("dir_fd") is not None:
            raise NotImplementedError(f"os.{name} takes no dir_fd on Windows")
        return function(*args, **options)

    return call


def _locking(handle: int, how: int, _size: int) -> None:
    fcntl.flock(handle, how)


def _refuse_open_files(name: str) -> None:
    """Let a method of `Path` refuse files that this process has open, if gemtui calls it."""
    method = getattr(Path, name)

    def call(path: Path, *args: Any, **options: Any) -> Any:
        if sys._getframe(1).f_globals["__name__"].startswith("gemtui."):
            handles = Path("/proc/self/fd")
            opened = {str(handle.readlink()) for handle in handles.iterdir() if handle.is_symlink()}
            if str(path.absolute()) in opened:
                raise PermissionError(errno.EACCES, f"{name}: the file is in use", str(path))
        return method(path, *args, **options)

    setattr(Path, name, call)


for method in ("replace", "rename", "unlink"):
    _refuse_open_files(method)


class Popen(subprocess.Popen[bytes]):
    """A process with options of Windows."""

    def __init__(self, words: Any, *, creationflags: int = 0, **options: Any) -> None:
        super().__init__(words, start_new_session=bool(creationflags), **options)


class Job:
    """A job object whose members are a process and its descendants."""

    def start(self, words: Any, **options: Any) -> Popen:
        child = Popen(words, **options)
        self._members = {psutil.Process(child.pid)}
        return child

    def members(self) -> set[psutil.Process]:
        for process in [*self._members]:
            with suppress(psutil.Error):
                self._members.update(process.children(recursive=True))
        return {process for process in self._members if process.is_running()}

    def end(self) -> None:
        for process in self.members():
            process.kill()


os.environ["SYSTEMROOT"] = tempfile.mkdtemp(prefix="windows-like-")
os.mkdir(os.path.join(os.environ["SYSTEMROOT"], "System32"))  # noqa: PTH102, PTH118
NO_BITS = dict.fromkeys(("O_BINARY", "O_NOINHERIT"), 0)
SEEN: dict[str, ModuleType] = {
    "sys": Seen(sys, platform="win32"),
    "os": Seen(os, **NO_BITS, **{name: _by_path(name) for name in OPENS_BY_HANDLE}),
    "signal": Seen(signal, SIGBREAK=signal.SIGUSR2),
    "select": Seen(select),
    "socket": Seen(socket),
    "subprocess": Seen(subprocess, Popen=Popen),
    "msvcrt": ModuleType("msvcrt"),
}
vars(SEEN["msvcrt"]).update(locking=_locking, LK_NBLCK=fcntl.LOCK_EX | fcntl.LOCK_NB)


def _import(
    name: str,
    globals: Mapping[str, object] | None = None,
    locals: Mapping[str, object] | None = None,
    fromlist: Sequence[str] = (),
    level: int = 0,
) -> ModuleType:
    if level == 0 and name in GONE:
        raise ModuleNotFoundError(f"No module named {name!r} on Windows", name=name)
    if level == 0 and name in SEEN:
        return SEEN[name]
    return builtins.__import__(name, globals, locals, fromlist, level)


class Loader(importlib.machinery.SourceFileLoader):
    """Runs a module of gemtui with the imports above."""

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": _import}
        code = self.get_code(module.__name__)
        assert code is not None
        exec(code, vars(module))


class Finder(importlib.abc.MetaPathFinder):
    """Finds gemtui's modules where they are, except one side of the connection to helpers."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] != "gemtui" or name == "gemtui.worker":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec


sys.modules["gemtui.agent.job"] = Seen(ModuleType("gemtui.agent.job"), Job=Job)
sys.meta_path.insert(0, Finder())
