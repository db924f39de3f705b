"""Ask gemtui about one hook of Gemini CLI: `ask.py LIVE PID`, with the event's JSON on stdin.

The answer comes through the socket in GEMTUI_GATE, however long it takes: one line there, one line
back, which is printed at once. Without a whole answer the exit code is 2. What LIVE and PID are,
hook.sh says.
"""

import json
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

_NOTED = 1_048_576


def _note(live: Path, pid: str, event: bytes) -> None:
    """Let gemtui's list of sessions know; that it can't is no reason to refuse anything."""
    new = live / f".{pid}.{os.getpid()}"
    try:
        new.write_bytes(event[:_NOTED])
        new.replace(live / pid)
    except OSError:
        with suppress(OSError):
            new.unlink()


def _ask(event: bytes) -> bytes:
    """Return the answer. Raises OSError and ValueError if there is none."""
    with socket.socket(socket.AF_UNIX) as gate:
        gate.connect(os.environ["GEMTUI_GATE"])
        gate.sendall(b'{"event": %b}\n' % event)
        with gate.makefile("rb") as stream:
            answer = stream.readline()
    if not (answer.endswith(b"\n") and isinstance(json.loads(answer), dict)):
        raise ValueError("gemtui's answer is not whole")
    return answer


def main(live: str, pid: str) -> int:
    """Ask, print, and return the exit code."""
    event = sys.stdin.buffer.read().strip()
    _note(Path(live), pid, event)
    try:
        answer = _ask(event)
    except (OSError, ValueError, KeyError) as error:
        sys.stderr.write(f"gemtui does not answer: {error}\n")
        return 2
    while answer:
        answer = answer[os.write(1, answer) :]
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
