"""The entry point of the command `gemtui` and of `python -m gemtui`."""

from __future__ import annotations

import atexit
import gc
import signal
import sys
from types import FrameType

from gemtui.interrupts import exit_if_importing
from gemtui.system import use_utf8

_COLLECTOR = (200_000, 20, 50)
"""Thresholds for the garbage collector, as arguments of `gc.set_threshold`.

With Python's defaults, a tenth of the time of most commands would be spent on collections that free
nothing, many of them during imports. The app sets thresholds of its own.
"""


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt on SIGINT; but while a module is being imported, exit at once."""
    exit_if_importing(number, frame)
    raise KeyboardInterrupt


def main() -> int:
    """Run the command that this process's arguments name, and return its exit code."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not under nohup
        signal.signal(signal.SIGINT, _interrupt)
    use_utf8()
    gc.set_threshold(*_COLLECTOR)
    atexit.register(gc.freeze)  # the last collection frees nothing that the exit does not free
    try:
        from gemtui.cli import main as run

        return run()
    except KeyboardInterrupt:  # also one that arrives when the command has just ended
        return 130


if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # the current folder: nothing must be imported from it
    sys.exit(main())
