"""A supervisor whose gate speaks with the agent: `python -m tests.agent.speaking_gate`.

Its words are the run's folder, and after how many seconds the agent is let go.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import IO

from gemtui.agent.supervise import main


class Speaker:
    """A gate that allows everything and keeps the agent."""

    stopped = False
    waiting = False

    def __init__(self, seconds: float) -> None:
        self.kept_until: float | None = time.time() + 3600
        self._seconds = seconds

    def open(self, _: Path) -> dict[str, str]:
        return {}

    def connect(self, stdin: IO[bytes]) -> None:
        self._stdin = stdin
        stdin.write(b"hello")
        timer = threading.Timer(self._seconds, stdin.close)
        timer.daemon = True
        timer.start()

    def interrupt(self) -> bool:
        self._stdin.write(b", stop")
        self._stdin.close()
        return True

    def problem(self) -> None:
        return None

    def close(self) -> None:
        self._stdin.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:2], gate_of=lambda *_: Speaker(float(sys.argv[2]))))
