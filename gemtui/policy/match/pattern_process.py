"""Run patterns in a process that can be killed, because they may never finish.

A single process runs all patterns. It is started on first use, restarted if it had to be
killed, and ended when gemtui exits. This module is what both sides import, so it imports little.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from contextlib import suppress
from functools import lru_cache
from typing import Final

from gemtui.worker import Parent, Worker

_START_SECONDS: Final = 60.0
_PATIENCE: Final = 20.0


class _PatternProcess:
    """The process that runs patterns; it serves one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._worker: Worker | None = None
        self._owner = 0

    def found(self, pattern: str, text: str, seconds: float) -> bool | None:
        """Return whether `text` contains a match; None if the search took too long.

        `pattern`, `text`: as rewritten for `regress`. `seconds`: the limit, in CPU time. On a busy
        machine, the search may take up to `_PATIENCE` times as long in real time.
        """
        with self._lock:
            answer: bool | None = None
            try:
                with suppress(OSError):
                    answer = self._running().ask(
                        (pattern, text, seconds), seconds=seconds * _PATIENCE
                    )
            finally:
                # also if ctrl+c has stopped the wait: a later answer isn't for the next search
                if answer is None:
                    self._end()
            return answer

    def _running(self) -> Worker:
        """Return the process, which is started if necessary. Raises OSError."""
        worker = self._worker
        if worker is not None and self._owner == os.getpid() and worker.is_running():
            return worker
        self._end()
        self._worker = Worker(f"{__name__}:serve")
        self._owner = os.getpid()
        self._worker.receive(seconds=_START_SECONDS)
        return self._worker

    def end(self) -> None:
        """Kill the process, if this program has started it and it is running."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        worker = self._worker
        self._worker = None
        if worker is not None and self._owner == os.getpid():
            worker.end()


_PROCESS: Final = _PatternProcess()
found = _PROCESS.found
end = _PROCESS.end
atexit.register(end)


def serve(parent: Parent) -> None:
    """Search texts for the process that has started this one.

    If a search exceeds its limit, the operating system ends this process.
    """
    import regress

    compiled = lru_cache(maxsize=256)(regress.Regex)

    def search(question: tuple[str, str, float]) -> bool:
        pattern, text, seconds = question
        regex = compiled(pattern)
        _limit(seconds)
        matches = regex.find(text) is not None
        _limit(0)
        return matches

    parent.send("ready")
    parent.answer(search)


def _limit(seconds: float) -> None:
    """Let the system end this process once it has computed so long; 0 lifts the limit.

    On Windows, only the limit of the process that asks holds.
    """
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds)
