"""The tests themselves, started by `nohup` or in the background of a script."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.patience import PATIENCE

ROOT = Path(__file__).parents[1]
INTERRUPTS = "tests/cli/test_words.py::test_an_interrupt_ends_quietly_with_130"
IGNORE = 'trap "" INT TERM HUP QUIT; exec "$@"'


def test_signals_that_are_ignored_are_not_handed_down() -> None:
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", INTERRUPTS]
    environ = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    done = subprocess.run(
        ["/bin/sh", "-c", IGNORE, "sh", *words],
        cwd=ROOT,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout
