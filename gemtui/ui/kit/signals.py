"""Out of the program whatever happens: signals, and a terminal that is gone.

Textual writes to the terminal in a thread and waits for it. When the terminal goes away (an ssh
connection drops, a pane is closed) that thread dies, and the app would wait for ever, deaf to every
signal that only the event loop handles. So signals are taken by plain handlers: the first asks the
app to leave in order, an alarm leaves without asking when it does not.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
GRACE = 3.0
"""Seconds that leaving in order may take; then twice as long for leaving at all."""


class ExitSignals:
    """Takes the signals from now on; `leave(code)` must make the event loop's app end."""

    def __init__(self, leave: Callable[[int], object]) -> None:
        self._leave = leave
        self._loop = asyncio.get_running_loop()
        self._code = 0
        self._alarms = 0
        for number in SIGNALS:
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGALRM, self._on_alarm)
        threading.Thread(target=_watch_terminal, name="terminal", daemon=True).start()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if not self._code:
            self._code = 128 + number
            signal.setitimer(signal.ITIMER_REAL, GRACE, GRACE)
            self._loop.call_soon_threadsafe(self._leave, self._code)

    def _on_alarm(self, _number: int, _frame: FrameType | None) -> None:
        """Leave by an exception, which no queue can hold up; the last time by force."""
        self._alarms += 1
        if self._alarms > 2:
            os._exit(self._code)
        raise SystemExit(self._code)


def left() -> None:
    """The app has ended: no alarm any more."""
    signal.setitimer(signal.ITIMER_REAL, 0)


def _watch_terminal() -> None:
    """Tell ourselves that the terminal has hung up: not everybody who should does."""
    stream = sys.__stdin__
    if stream is None or not stream.isatty():
        return
    poll = select.poll()
    poll.register(stream.fileno(), 0)
    if any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll()):
        os.kill(os.getpid(), signal.SIGHUP)
