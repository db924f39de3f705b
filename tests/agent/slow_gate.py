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
        self._answer, self._breaks = answer, answer.exists()
        self._asked: float | None = None

    def open(self, _: Path) -> dict[str, str]:
        return {}

    @property
    def waiting(self) -> bool:
        now = time.monotonic()
        if self._asked is None:
            self._asked = now
        if not self._breaks and now > self._asked + 1:
            self._answer.touch()
        return True  # the run ends by itself: no limit runs, however slow that is

    def problem(self) -> str | None:
        return "broken" if self._breaks and self._asked else None

    def close(self) -> None:
        return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:2], gate_of=lambda *_: SlowPerson(Path(sys.argv[2]))))
