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
import termios
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
GRACE = 3.0
"""Seconds that leaving in order may take; then as long again for leaving by an exception."""
LAST = 8.0
"""Seconds after which a process is ended that is still there, whatever its threads wait for."""
_RESTORED = b"\x1b[?1049l\x1b[?1000;1002;1003;1006;2004;2048l\x1b[?25h\x1b[<u\x1b[23;2t\x1b[0m"
"""Leaves the other screen; mouse, paste and keyboard modes off, cursor on, the title put back."""


def end_at_once(attributes: list[Any] | None) -> None:
    """Let signals end the process, with the terminal as it was, until ExitSignals takes them.

    There is nothing to leave in order yet, but threads of Textual's would be waited for.
    `attributes`: of `terminal_attributes`.
    """

    def on_signal(number: int, _frame: FrameType | None) -> None:
        _restore(attributes)
        os._exit(128 + number)

    for number in SIGNALS:
        signal.signal(number, on_signal)


class ExitSignals:
    """Takes the signals from now on; `leave(code)` must make the event loop's app end.

    `attributes`: those of the terminal before the app began, `terminal_attributes`.
    """

    def __init__(self, leave: Callable[[int], object], attributes: list[Any] | None) -> None:
        self._leave = leave
        self._loop = asyncio.get_running_loop()
        self._code = 0
        self._alarms = 0
        self._terminal = attributes
        self._signalled: SimpleQueue[int] = SimpleQueue()
        threading.Thread(target=self._end_at_last, name="end", daemon=True).start()
        for number in SIGNALS:
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGALRM, self._on_alarm)
        threading.Thread(target=_watch_terminal, name="terminal", daemon=True).start()

    @property
    def leaving(self) -> bool:
        """Return whether a signal has come that ends the app."""
        return bool(self._code)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if not self._code:
            self._code = 128 + number
            self._signalled.put(self._code)
            signal.setitimer(signal.ITIMER_REAL, GRACE, GRACE)
            self._loop.call_soon_threadsafe(self._leave, self._code)

    def _on_alarm(self, _number: int, _frame: FrameType | None) -> None:
        """Leave by an exception, which no queue can hold up."""
        self._alarms += 1
        if self._alarms <= 2:
            raise SystemExit(self._code)

    def _end_at_last(self) -> None:
        """In a thread: end the process a while after a signal; one that has ended knows nothing.

        A thread of Textual's may wait for a terminal that is gone, and Python waits for it.
        """
        code = self._signalled.get()
        time.sleep(LAST)  # in a thread that does nothing else: the event loop is not held up
        _restore(self._terminal)
        os._exit(code)


def left() -> None:
    """The app has ended: no alarm any more."""
    signal.setitimer(signal.ITIMER_REAL, 0)


def terminal_attributes() -> list[Any] | None:
    """Return the attributes of the terminal; None = there is none."""
    with suppress(OSError, ValueError, termios.error):
        return termios.tcgetattr(sys.__stdin__ or 0)
    return None


def _restore(attributes: list[Any] | None) -> None:
    """Give the terminal back, as far as it takes anything without being waited for."""
    if attributes is None:
        return
    with suppress(OSError, ValueError, termios.error):
        termios.tcsetattr(sys.__stdin__ or 0, termios.TCSANOW, attributes)
        if select.select([], [2], [], 0)[1]:
            os.write(2, _RESTORED)


def _watch_terminal() -> None:
    """Tell ourselves that the terminal has hung up: not everybody who should does."""
    stream = sys.__stdin__
    if stream is None or not stream.isatty():
        return
    poll = select.poll()
    poll.register(stream.fileno(), 0)
    if any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll()):
        os.kill(os.getpid(), signal.SIGHUP)
