"""Work on a background thread, with results shown by the event loop as they arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Event
from time import monotonic
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Reading:
    """The event loop's handle on work on a background thread, such as reading files.

    The thread uses it to show results and to find out whether to stop. It must be created in the
    event loop. `can_show`: returns whether results can still be shown. `every`: the minimum number
    of seconds between two partial results.
    """

    def __init__(
        self, can_show: Callable[[], object] = lambda: True, *, every: float = 0.0
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopped, self._drawn = Event(), Event()
        self._can_show, self._every, self._shown = can_show, every, monotonic()

    def stop(self) -> None:
        """Tell the work to end soon, and ignore its results from now on."""
        self._stopped.set()
        self._drawn.set()

    def is_stopped(self) -> bool:
        """Return whether the work should end, because its results are no longer needed."""
        return self._stopped.is_set()

    def wait(self, seconds: float) -> bool:
        """Block the calling thread for some seconds, or until the work has been stopped.

        Returns whether it has been stopped.
        """
        return self._stopped.wait(seconds)

    def is_due(self) -> bool:
        """Return whether it is time to show a partial result.

        If so, the next one is due `every` seconds from now.
        """
        due = monotonic() - self._shown > self._every
        if due:
            self._shown = monotonic()
        return due

    def show(self, act: Callable[..., None], *args: Any) -> None:
        """Call `act` in the event loop, unless its results are no longer wanted by then."""
        if not self.is_stopped():
            self._loop.call_soon_threadsafe(self._act, act, *args)

    def draw(self, seconds: float, act: Callable[..., None], *args: Any) -> None:
        """Show results as `show` does, and block until they are drawn or the work is stopped.

        Blocks at most for some seconds. The last argument that `act` gets is a function; it must
        call it once the results are drawn.
        """
        self._drawn.clear()
        self.show(act, *args, self._drawn.set)
        if not self.is_stopped():
            self._drawn.wait(seconds)

    def _act(self, act: Callable[..., None], *args: Any) -> None:
        if not self.is_stopped() and self._can_show():
            act(*args)


class Latest(Generic[T]):
    """Passes values from a background thread to the event loop, which shows the last.

    A value that hasn't been shown yet is replaced by the next one.
    """

    def __init__(self, show: Callable[[T], None]) -> None:
        self._loop, self._show = asyncio.get_running_loop(), show
        self._value: T | None = None

    def put(self, value: T) -> None:
        """Ask the event loop to show a value; may be called from any thread."""
        idle, self._value = self._value is None, value
        if idle:
            self._loop.call_soon_threadsafe(self.flush)

    def flush(self) -> None:
        """Show the newest value now, if it hasn't been shown yet."""
        value, self._value = self._value, None
        if value is not None:
            self._show(value)
