"""Run patterns that may never finish in a process that can be killed.

A single process runs all such patterns. It is started on first use, restarted if it had to be
killed, and ended when gemtui exits. It is a separate program rather than a fork, so that it works
the same way on Linux and macOS.
"""

from __future__ import annotations

import atexit
import os
import selectors
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from gemtui.policy.match import pattern_worker
from gemtui.processes import helper

_START_SECONDS: Final = 60.0
_PATIENCE: Final = 20.0


class _Worker:
    """The process that runs patterns; it serves one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def found(self, pattern: str, text: str, seconds: float) -> bool | None:
        """Return whether `text` contains a match; None if the search took too long.

        `pattern`, `text`: as rewritten for `regress`. `seconds`: the limit, in CPU time. On a busy
        machine, the search may take up to `_PATIENCE` times as long in real time.
        """
        with self._lock:
            process = self._running()
            answer = b""
            if process is not None:
                with suppress(OSError):
                    _send(process, pattern.encode(), text.encode(), seconds)
                    answer = _answer(process, seconds * _PATIENCE)
            if answer not in (b"0", b"1"):
                self._end()
                return None
            return answer == b"1"

    def _running(self) -> subprocess.Popen[bytes] | None:
        """Return the process, starting it if necessary; None if it can't be started."""
        process = self._process
        if process is not None and self._owner == os.getpid() and process.poll() is None:
            return process
        if process is not None and self._owner == os.getpid():
            self._end()
        with suppress(OSError):
            program = str(Path(pattern_worker.__file__).absolute())
            pipe = subprocess.PIPE
            self._process = process = helper(program, stdin=pipe, stdout=pipe, bufsize=0)
            self._owner = os.getpid()
            if _answer(process, _START_SECONDS) == pattern_worker.READY:
                return process
            self._end()
        return None

    def end(self) -> None:
        """Kill the process, if this program has started it and it is running."""
        with self._lock:
            if self._owner == os.getpid():
                self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with process:
                pass


def _send(process: subprocess.Popen[bytes], pattern: bytes, text: bytes, seconds: float) -> None:
    assert process.stdin is not None
    left = memoryview(pattern_worker.HEADER.pack(seconds, len(pattern), len(text)) + pattern + text)
    while left:
        left = left[process.stdin.write(left) :]


def _answer(process: subprocess.Popen[bytes], seconds: float) -> bytes:
    """Return one byte of the process's output; b"" if it exited or took too long."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        return process.stdout.read(1) if selector.select(seconds) else b""


_WORKER: Final = _Worker()
found = _WORKER.found
end = _WORKER.end
atexit.register(end)
