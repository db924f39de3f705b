"""`python -m tests.tools.bench.watched FILE`: gemtui, with its event loop's longest stops in a
file.

Each line of FILE is the processor time, in seconds, of one callback of the event loop that kept the
app from drawing and from reading keys. Time in which other programs had the processor is not in it.
"""

from __future__ import annotations

import sys
from asyncio import Handle
from pathlib import Path
from time import thread_time

from gemtui.__main__ import main

LEAST = 0.01
"""Shorter stops, in seconds, are not written."""


def watch(told: Path) -> None:
    """Write the stops of this process's event loop to a file from now on."""
    run = Handle._run

    def timed(self: Handle) -> None:
        began = thread_time()
        run(self)
        if (took := thread_time() - began) > LEAST:
            with told.open("a") as file:
                file.write(f"{took}\n")

    Handle._run = timed  # type: ignore[method-assign]


if __name__ == "__main__":
    watch(Path(sys.argv.pop(1)))
    sys.exit(main())
