"""Tests that were started by `nohup`, or in the background of a script."""

from __future__ import annotations

import signal
import subprocess
import sys

from tests.conftest import pytest_configure

IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
TELL = f"""
import signal
print(*(int(signal.getsignal(number) is signal.SIG_IGN) for number in {[*map(int, IGNORED)]}))
"""


def test_signals_that_are_ignored_are_not_handed_down() -> None:
    before = {number: signal.signal(number, signal.SIG_IGN) for number in IGNORED}
    try:
        pytest_configure()
        child = subprocess.run([sys.executable, "-c", TELL], capture_output=True, check=True)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert child.stdout == b"0 0 0 0\n"
