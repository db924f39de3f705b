"""Suspending gemtui on ctrl+z or `kill -TSTP`, and resuming it on `fg`.

The terminal is restored before gemtui stops and set up again afterwards. Textual does this inside
its signal handlers, which has three problems. First, if a signal arrives while the event loop is
writing to the terminal, the app deadlocks. Second, `kill -CONT` starts a second thread that reads
keys. Third, Textual sends SIGSTOP to its own process alone, which hangs the terminal if no shell is
waiting, or if another program of the same job is. Here, the handlers only wake the event loop, and
the whole job is stopped with SIGTSTP, which the kernel ignores if there is no shell.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gemtui.ui.kit.app_base import AppBase

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
        signal.signal(signal.SIGTSTP, self._on_stop)
        signal.signal(signal.SIGCONT, self._on_continue)

    def _on_stop(self, _number: int, _frame: FrameType | None) -> None:
        if self._app.handed_over:
            # Another program, such as an editor, is in the foreground and stops the whole job. It
            # has the terminal, so there is nothing to restore.
            with _stopping_by_default():
                os.kill(os.getpid(), signal.SIGTSTP)
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
        self._stopping, self._continued = True, False
        self._app.app_suspend_signal.publish(self._app)
        driver.suspend_application_mode()
        with _stopping_by_default():
            os.kill(0, signal.SIGTSTP)
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
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            vars(driver)["attrs_before"] = None
            return
        driver.resume_application_mode()
        self._app.app_resume_signal.publish(self._app)
        self._app.refresh(layout=True)


@contextmanager
def _stopping_by_default() -> Iterator[None]:
    handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, handler)


def _in_foreground() -> bool:
    """Return whether this process's job is in the foreground; True if that is unknown."""
    try:
        return os.tcgetpgrp((sys.__stdin__ or sys.stdin).fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return True
