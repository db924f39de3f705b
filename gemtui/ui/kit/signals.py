"""Exiting in all circumstances: on signals, and when the terminal is gone.

Textual writes to the terminal in a thread and waits for it. When the terminal goes away (an ssh
connection drops, a pane is closed) that thread dies, and the app would wait for ever, ignoring
every signal that only the event loop handles. So plain handlers receive the signals: the first asks
the app to exit in order; if it does not, an alarm forces it to.
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
"""Seconds for an orderly exit; then the same again for an exit by exception."""
LAST = 8.0
"""Seconds after which the process is ended, whatever its threads wait for."""
_RESTORED = b"\x1b[?1049l\x1b[?1000;1002;1003;1006;2004;2048l\x1b[?25h\x1b[<u\x1b[23;2t\x1b[0m"
"""Leaves the alternate screen, resets mouse, paste and keyboard modes, cursor and title."""


def end_at_once(attributes: list[Any] | None) -> None:
    """Let signals end the process at once, until ExitSignals is used.

    There is nothing to close yet, but an orderly exit would wait for threads of Textual.
    `attributes`: of `terminal_attributes`.
    """

    def on_signal(number: int, _frame: FrameType | None) -> None:
        _restore(attributes)
        os._exit(128 + number)

    for number in SIGNALS:
        signal.signal(number, on_signal)


class ExitSignals:
    """Handles signals from now on; `leave(code)` must end the event loop's app.

    `attributes`: those of the terminal before the app began, from `terminal_attributes`.
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
        """Exit by an exception, which no queue can delay."""
        self._alarms += 1
        if self._alarms <= 2:
            raise SystemExit(self._code)

    def _end_at_last(self) -> None:
        """End the process some time after a signal, from a thread.

        A thread of Textual may wait for a terminal that is gone, and Python waits for that thread.
        """
        code = self._signalled.get()
        time.sleep(LAST)  # in a thread that does nothing else: the event loop is not held up
        _restore(self._terminal)
        os._exit(code)


def left() -> None:
    """Cancel the alarm after the app has ended."""
    signal.setitimer(signal.ITIMER_REAL, 0)


def terminal_attributes() -> list[Any] | None:
    """Return the attributes of the terminal; None if there is none."""
    with suppress(OSError, ValueError, termios.error):
        return termios.tcgetattr(sys.__stdin__ or 0)
    return None


def _restore(attributes: list[Any] | None) -> None:
    """Restore the terminal as far as possible without waiting for it."""
    if attributes is None:
        return
    with suppress(OSError, ValueError, termios.error):
        termios.tcsetattr(sys.__stdin__ or 0, termios.TCSANOW, attributes)
        if select.select([], [2], [], 0)[1]:
            os.write(2, _RESTORED)


def _watch_terminal() -> None:
    """Send ourselves SIGHUP when the terminal hangs up, as not every system does."""
    stream = sys.__stdin__
    if stream is None or not stream.isatty():
        return
    poll = select.poll()
    poll.register(stream.fileno(), 0)
    if any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll()):
        os.kill(os.getpid(), signal.SIGHUP)
