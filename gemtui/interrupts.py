"""Signals that ask a command to stop while it changes a project's files.

As long as no file has been changed, such a signal raises Interrupted. From then on it is only
noted, so that the work can be finished, which usually takes less than a second. If it takes longer,
or if another signal arrives, the work stops between two files and says how to finish it.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from types import FrameType

from gemtui.system import ENDING

SIGNALS = ENDING
_IMPORT = "<frozen importlib._bootstrap>"
"""The file name of the code that imports modules."""


class Interrupted(KeyboardInterrupt):
    """Raised by a signal that arrives before any file is changed. `number`: the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class StopRequest:
    """A request to stop, made by a signal, to work that changes files.

    `grace`: the seconds that the work may take to finish after a signal. `number`: the number of
    the first signal; 0 if none has arrived. `changes_files`: whether the work has reached the point
    from which on it should be finished. `report`: what was left undone and how to finish it.
    """

    def __init__(self, grace: float = 3.0) -> None:
        self.number = 0
        self.changes_files = False
        self.report = ""
        self._grace, self._until = grace, inf

    def begin_changes(self) -> None:
        """Note that files are about to be changed, so that signals no longer raise an error."""
        self.changes_files = True

    def receive(self, number: int) -> None:
        """Note a signal. Work may go on for a moment after the first one, but not after more."""
        self._until = -inf if self.number else time.monotonic() + self._grace
        self.number = self.number or number

    @property
    def is_due(self) -> bool:
        """Whether the work must stop now, before the next file."""
        return time.monotonic() > self._until


@contextmanager
def signals_caught(stop: StopRequest) -> Iterator[None]:
    """Handle the signals that end a program during a `with` block.

    They are noted in `stop`. The first one raises Interrupted unless files are already being
    changed. Signals that are ignored, as under nohup, stay ignored. Outside the main thread, this
    does nothing.
    """

    def on_signal(number: int, frame: FrameType | None) -> None:
        is_first = not stop.number
        stop.receive(number)
        if is_first and not stop.changes_files:
            exit_if_importing(number, frame)
            raise Interrupted(number)

    is_main = threading.current_thread() is threading.main_thread()
    caught = [
        signal_number
        for signal_number in SIGNALS
        if is_main and signal.getsignal(signal_number) is not signal.SIG_IGN
    ]
    before = {signal_number: signal.signal(signal_number, on_signal) for signal_number in caught}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def exit_if_importing(number: int, frame: FrameType | None) -> None:
    """Exit at once if a signal arrives while a module is being imported.

    During an import, Python may ignore an exception, or turn it into a RuntimeError. `number`: the
    signal's. `frame`: where the program was when it arrived.
    """
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT:
            os._exit(128 + number)
        frame = frame.f_back
