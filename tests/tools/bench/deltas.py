"""A stand-in for the CLI that streams at a steady rate: `deltas.py RATE SECONDS [OPTION...]`.

It gives RATE deltas a second for SECONDS; each names the moment in which it was written (`t`, then
nanoseconds of the monotonic clock, which is one for all processes), so that a reader of the screen
can tell how old it is. Of the CLI's options it knows --version and --help.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

PARAGRAPH = 80
"""Deltas to a paragraph."""
HELP = """Options:
      --session-id       Start a new session  [string]
      --policy           Rules  [array]
  -o, --output-format    Format  [string] [choices: "stream-json"]
"""


def main(rate: int, seconds: float) -> None:
    """Stream; what could not be written in time comes at once."""
    say('{"type":"init","session_id":"deltas","model":"auto"}')
    began = time.monotonic()
    for number in range(int(rate * seconds)):
        time.sleep(max(0.0, began + number / rate - time.monotonic()))
        end = "\\n\\n" if number % PARAGRAPH == PARAGRAPH - 1 else " "
        text = f"t{time.monotonic_ns()}{end}"
        say(f'{{"type":"message","role":"assistant","content":"{text}","delta":true}}')
    say('{"type":"result","status":"success"}')


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def install(program: Path, rate: int, seconds: float) -> None:
    """Make `program` a CLI that streams so."""
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} {rate} {seconds} "$@"\n')
    program.chmod(0o755)


if __name__ == "__main__":
    match sys.argv[3:4]:
        case ["--version"]:
            say("0.61.0")
        case ["--help"]:
            say(HELP)
        case _:
            main(int(sys.argv[1]), float(sys.argv[2]))
