"""Reliable exit when a signal arrives or the terminal disappears.

Textual writes to the terminal from a thread and waits for that thread. If the terminal disappears,
for example because an ssh connection drops or a pane is closed, the thread dies. The app would then
wait forever and ignore every signal that is handled in the event loop. That's why plain signal
handlers are used here: the first signal asks the app to exit cleanly, and if it doesn't, an alarm
forces it to.
"""

from __future__ import annotations

import asyncio
import errno
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
"""Seconds to wait for a clean exit, and again for an exit by exception."""
LAST = 8.0
"""Seconds after a signal until the process is ended, whatever its threads do."""
_RESTORED = b"\x1b[?1049l\x1b[?1000;1002;1003;1006;2004;2048l\x1b[?25h\x1b[<u\x1b[23;2t\x1b[0m"
"""Escape sequences that leave the alternate screen and reset the terminal's modes.

They reset the mouse, paste and keyboard modes, the cursor and the window title.
"""


def exit_immediately(attributes: list[Any] | None) -> None:
    """Until an `ExitSignals` exists, make signals end the process immediately.

    While the app starts, there is nothing to clean up, and a normal exit would wait for Textual's
    threads. `attributes`: the result of `terminal_attributes`, to restore before exiting.
    """

    def on_signal(number: int, _frame: FrameType | None) -> None:
        _restore(attributes)
        os._exit(128 + number)

    for number in SIGNALS:
        signal.signal(number, on_signal)
    if _hangs_up(0):  # if SIGHUP was ignored until now, as under nohup, it never arrives
        os._exit(128 + signal.SIGHUP)


class ExitSignals:
    """Handles the signals that end the app; creating one installs the handlers.

    `leave`: takes the exit code and must make the app exit; it is called in the event loop.
    `attributes`: the terminal's attributes from before the app started (see `terminal_attributes`).
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
    def is_exiting(self) -> bool:
        """Whether a signal that ends the app has arrived."""
        return bool(self._code)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if not self._code:
            self._code = 128 + number
            self._signalled.put(self._code)
            signal.setitimer(signal.ITIMER_REAL, GRACE, GRACE)
            self._loop.call_soon_threadsafe(self._leave, self._code)

    def _on_alarm(self, _number: int, _frame: FrameType | None) -> None:
        """Exit by raising SystemExit, which doesn't depend on any message queue."""
        self._alarms += 1
        if self._alarms <= 2:
            raise SystemExit(self._code)

    def _end_at_last(self) -> None:
        """End the process `LAST` seconds after a signal, from a separate thread.

        Without this, Python would wait for Textual's threads, one of which may be waiting for a
        terminal that no longer exists.
        """
        code = self._signalled.get()
        time.sleep(LAST)  # this thread does nothing else, so the event loop isn't blocked
        _restore(self._terminal)
        os._exit(code)


def cancel_alarm() -> None:
    """Cancel the alarm, because the app has exited."""
    signal.setitimer(signal.ITIMER_REAL, 0)


def terminal_attributes() -> list[Any] | None:
    """Return the terminal's `termios` attributes, or None if there is no terminal."""
    with suppress(OSError, ValueError, termios.error):
        return termios.tcgetattr(sys.__stdin__ or 0)
    return None


def _restore(attributes: list[Any] | None) -> None:
    """Restore the terminal as far as possible without waiting for it.

    `attributes`: the attributes to set; None does nothing.
    """
    if attributes is None:
        return
    with suppress(OSError, ValueError, termios.error):
        termios.tcsetattr(sys.__stdin__ or 0, termios.TCSANOW, attributes)
        if select.select([], [2], [], 0)[1]:
            os.write(2, _RESTORED)


def _watch_terminal() -> None:
    """Wait until the terminal hangs up, then send SIGHUP to this process.

    Not every system does this by itself.
    """
    if _hangs_up():
        os.kill(os.getpid(), signal.SIGHUP)


def _hangs_up(timeout: int | None = None) -> bool:
    """Wait until the terminal hangs up; return False if there is no terminal.

    `timeout`: the milliseconds after which to return False; None waits forever.
    """
    stream = sys.__stdin__
    if stream is None or not _is_terminal(stream.fileno()):
        return False
    poll = select.poll()
    poll.register(stream.fileno(), 0)
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(timeout))


def _is_terminal(handle: int) -> bool:
    """Return whether a file descriptor belongs to a terminal, even to one that has hung up."""
    try:
        termios.tcgetattr(handle)
    except termios.error as error:
        return bool(error.args[0] == errno.EIO)
    return True
