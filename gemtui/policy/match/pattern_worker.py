"""A program that runs patterns that may never finish, until it is killed.

It is started by its path, so that it needs nothing but `regress`. A request on its standard input
consists of three numbers (the limit in seconds of CPU time, as a double, and the lengths of the
pattern and the text), followed by the pattern and the text in UTF-8. The answer is one byte: `1` if
the text contains a match, otherwise `0`. If the search exceeds the limit, the operating system ends
the program.
"""

from __future__ import annotations

import signal
import struct
import sys
from typing import BinaryIO

import regress

HEADER = struct.Struct("<dII")
READY = b"r"


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Write `READY`, then answer requests until the input ends."""
    answers.write(READY)
    answers.flush()
    while header := requests.read(HEADER.size):
        seconds, pattern_length, text_length = HEADER.unpack(header)
        pattern = requests.read(pattern_length).decode()
        text = requests.read(text_length).decode()
        regex = regress.Regex(pattern)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        found = regex.find(text) is not None
        signal.setitimer(signal.ITIMER_PROF, 0)
        answers.write(b"1" if found else b"0")
        answers.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
