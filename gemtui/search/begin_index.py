"""Have the index of a store made by a process of its own that outlives this one."""

from __future__ import annotations

import pickle
import subprocess
from contextlib import suppress
from pathlib import Path

from gemtui.processes import helper


def begin_index(home: Path, folder: Path) -> None:
    """Start to bring the index in `folder` of the store in `home` up to date; return at once.

    Where the process can't be started, there is no index; nothing is raised.
    """
    with suppress(OSError):
        process = helper("-m", "gemtui.search.indexer", stdin=subprocess.PIPE)
        assert process.stdin is not None
        with process.stdin as asked:
            asked.write(pickle.dumps((home, folder, True)))
        process.returncode = 0  # it outlives this program, so nobody waits for it
