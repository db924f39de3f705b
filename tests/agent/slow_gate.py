"""A supervisor at whose gate somebody thinks for a second: `python -m tests.agent.slow_gate`.

Its words are the run's folder, and the file that is there once an answer was given. Where that file
is there before, nobody answers, and the gate does not hold any more once it asks.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from gemtui.agent.supervise import main


class SlowPerson:
    """A gate that asks from the start on."""

    stopped = False

    def __init__(self, answer: Path) -> None:
        self._answer, self._began = answer, time.monotonic()
        self._breaks = answer.exists()
        self._asks = False

    def open(self, _: Path) -> dict[str, str]:
        return {}

    @property
    def waiting(self) -> bool:
        self._asks = True
        waits = self._breaks or time.monotonic() < self._began + 1
        if not waits:
            self._answer.touch()
        return waits

    def problem(self) -> str | None:
        return "broken" if self._breaks and self._asks else None

    def close(self) -> None:
        return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:2], gate_of=lambda *_: SlowPerson(Path(sys.argv[2]))))
