"""A program that runs patterns which may never finish, until it is killed.

Started by its path, so that it needs nothing but `regress`. A request on its input is three numbers
(seconds of processor time as a double, lengths of pattern and text) and both texts in UTF-8; the
answer is one byte, `1` for found. If it is late, the operating system ends it.
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
    """Answer requests until the input ends."""
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
