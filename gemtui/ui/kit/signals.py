"""Signals: a reliable exit, also if the terminal disappears, and suspending on ctrl+z.

Textual writes to the terminal from a thread and waits for that thread. If the terminal disappears,
for example because an ssh connection drops or a pane is closed, the thread dies. The app would then
wait forever and ignore every signal that is handled in the event loop. That's why plain signal
handlers are used here: the first signal asks the app to exit cleanly, and if it doesn't, an alarm
forces it to.

On ctrl+z or `kill -TSTP`, the terminal is restored before gemtui stops, and set up again after
`fg`. Textual does this inside its signal handlers, which has three problems. First, if a signal
arrives while the event loop is writing to the terminal, the app deadlocks. Second, `kill -CONT`
starts a second thread that reads keys. Third, Textual sends SIGSTOP to its own process alone, which
hangs the terminal if no shell is waiting, or if another program of the same job is. Here, the
handlers only wake the event loop, and the whole job is stopped with SIGTSTP, which the kernel
ignores if there is no shell.
"""

from __future__ import annotations

import asyncio
import errno
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING, Any

from gemtui.interrupts import SIGNALS, StopRequest
from gemtui.processes import DRIVER

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase

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
    if sys.platform != "win32" and _hangs_up(0):  # under nohup, SIGHUP was ignored until now
        os._exit(128 + signal.SIGHUP)


class ExitSignals:
    """Handles the signals that end the app; creating one installs the handlers.

    `leave`: takes the exit code and must make the app exit; it is called in the event loop.
    `attributes`: the terminal's attributes from before the app started (see `terminal_attributes`).
    `stop`: is told about each signal, for work in threads that changes files.
    """

    def __init__(
        self,
        leave: Callable[[int], object],
        attributes: list[Any] | None,
        stop: StopRequest | None = None,
    ) -> None:
        self._leave, self._stop = leave, StopRequest() if stop is None else stop
        self._loop = asyncio.get_running_loop()
        self._code = 0
        self._alarms = 0
        self._terminal = attributes
        self._signalled: SimpleQueue[int] = SimpleQueue()
        threading.Thread(target=self._end_at_last, name="end", daemon=True).start()
        for number in SIGNALS:
            signal.signal(number, self._on_signal)
        if sys.platform != "win32":
            signal.signal(signal.SIGALRM, self._on_alarm)
        threading.Thread(target=_watch_terminal, name="terminal", daemon=True).start()

    @property
    def is_exiting(self) -> bool:
        """Whether a signal that ends the app has arrived."""
        return bool(self._code)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._stop.receive(number)
        if not self._code:
            self._code = 128 + number
            self._signalled.put(self._code)
            _set_alarm(GRACE)
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
    _set_alarm(0)


def _set_alarm(seconds: float) -> None:
    """Raise SIGALRM every so often; 0 ends that. Windows has only the last thread's end."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_REAL, seconds, seconds)


def terminal_attributes() -> list[Any] | None:
    """Return the terminal's `termios` attributes, or None if there is no terminal."""
    if sys.platform != "win32":
        import termios

        with suppress(OSError, ValueError, termios.error):
            return termios.tcgetattr(sys.__stdin__ or 0)
    return None


def _restore(attributes: list[Any] | None) -> None:
    """Restore the terminal as far as possible without waiting for it.

    `attributes`: the attributes to set; None does nothing.
    """
    if sys.platform == "win32":
        return
    if attributes is None:
        return
    import termios

    with suppress(OSError, ValueError, termios.error):
        termios.tcsetattr(sys.__stdin__ or 0, termios.TCSANOW, attributes)
        if select.select([], [2], [], 0)[1]:
            os.write(2, _RESTORED)


def _watch_terminal() -> None:
    """Wait until the terminal hangs up, then send SIGHUP to this process.

    Not every system does this by itself.
    """
    if sys.platform != "win32" and _hangs_up():
        os.kill(os.getpid(), signal.SIGHUP)


def _hangs_up(timeout: int | None = None) -> bool:
    """Wait until the terminal, or a server that shows the app in a browser, hangs up.

    Returns False if there is neither.

    `timeout`: the milliseconds after which to return False; None waits forever.
    """
    stream = sys.__stdin__
    if sys.platform == "win32":
        return False
    if stream is None or not (_is_terminal(stream.fileno()) or DRIVER in os.environ):
        return False
    poll = select.poll()
    poll.register(stream.fileno(), 0)
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(timeout))


def _is_terminal(handle: int) -> bool:
    """Return whether a file descriptor belongs to a terminal, even to one that has hung up."""
    if sys.platform == "win32":
        return False
    import termios

    try:
        termios.tcgetattr(handle)
    except termios.error as error:
        return bool(error.args[0] == errno.EIO)
    return True


NO_TERMINAL = "gemtui has no terminal of its own here, so there is no shell to return to."
NO_SHELL = "There is no shell to return to, because gemtui was not started from one."


class JobControl:
    """Handles SIGTSTP and SIGCONT; creating an instance installs the handlers.

    `leaving`: returns whether the app is exiting because of a signal; the terminal is then left
    alone.
    """

    def __init__(self, app: AppBase, leaving: Callable[[], bool]) -> None:
        self._app, self._leaving = app, leaving
        self._loop = asyncio.get_running_loop()
        self._stopping = self._continued = False
        if sys.platform != "win32":
            signal.signal(signal.SIGTSTP, self._on_stop)
            signal.signal(signal.SIGCONT, self._on_continue)

    def _on_stop(self, _number: int, _frame: FrameType | None) -> None:
        if self._app.handed_over:
            # Another program, such as an editor, is in the foreground and stops the whole job. It
            # has the terminal, so there is nothing to restore.
            with _stopping_by_default():
                _stop_job(os.getpid())
        else:
            self._loop.call_soon_threadsafe(self._app.call_later, self.suspend)

    def _on_continue(self, _number: int, _frame: FrameType | None) -> None:
        self._continued = True
        if not (self._stopping or self._app.handed_over):
            self._loop.call_soon_threadsafe(self._app.call_later, self._take_terminal_again)

    def suspend(self) -> None:
        """Stop the whole job until a shell resumes it in the foreground."""
        driver = self._app._driver
        if driver is None or self._ends():
            return
        if not driver.can_suspend:
            self._app.show_message(NO_TERMINAL)
            return
        self._stopping, self._continued = True, False
        self._app.app_suspend_signal.publish(self._app)
        driver.suspend_application_mode()
        with _stopping_by_default():
            _stop_job(0)
            stopped = self._continued
            self._wait_for_foreground()
        self._stopping = False
        self._resume()
        if not stopped:
            self._app.show_message(NO_SHELL)

    def _take_terminal_again(self) -> None:
        """Set up the terminal again after SIGCONT, in case the shell changed its modes.

        This matters after a SIGSTOP, which doesn't let the app restore the terminal before it
        stops.
        """
        driver = self._app._driver
        if driver is None or self._ends():
            return
        self._stopping = True
        self._wait_for_foreground()
        self._stopping = False
        self._app.app_suspend_signal.publish(self._app)
        driver.suspend_application_mode()
        self._resume()

    def _wait_for_foreground(self) -> None:
        """Stop the job again while another job uses the terminal.

        This happens if the user has resumed gemtui in the background with `bg`.
        """
        if sys.platform == "win32":
            return
        while self._continued and not self._leaving() and not _in_foreground():
            self._continued = False
            os.kill(0, signal.SIGTTOU)

    def _ends(self) -> bool:
        return self._leaving() or self._app._exit

    def _resume(self) -> None:
        driver = self._app._driver
        if driver is None:
            return
        if self._leaving():
            # The shell has the terminal, so setting its modes now would disturb the shell.
            if sys.platform != "win32":
                signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            vars(driver)["attrs_before"] = None
            return
        driver.resume_application_mode()
        self._app.app_resume_signal.publish(self._app)
        self._app.refresh(layout=True)


@contextmanager
def _stopping_by_default() -> Iterator[None]:
    if sys.platform == "win32":
        yield
        return
    handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, handler)


def _stop_job(pid: int) -> None:
    if sys.platform != "win32":
        os.kill(pid, signal.SIGTSTP)


def _in_foreground() -> bool:
    """Return whether this process's job is in the foreground; True if that is unknown."""
    if sys.platform == "win32":
        return True
    try:
        return os.tcgetpgrp((sys.__stdin__ or sys.stdin).fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return True
