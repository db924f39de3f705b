"""`gemtui sessions --json` over whole stores, with the cache that an earlier call has left."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.tools.bench.make_store import store_in
from tests.tools.bench.measure import Cost, Row, medians
from tests.tools.bench.starting import environ

LIST = ("-m", "gemtui", "sessions", "--everywhere", "--json")
LIMIT = 20
LOOK = """
import os, sys
for project in os.scandir(sys.argv[1]):
    for entry in os.scandir(f"{project.path}/chats"):
        entry.stat(follow_symlinks=False)
"""


def rows(folder: Path, counts: list[int], repeat: int) -> Iterator[Row]:
    """All sessions and the newest ones; the floor is a program that only looks at the files."""
    for count in counts:
        home = store_in(folder, count)
        look = ("-c", LOOK, str(home / ".gemini" / "tmp"))
        commands = (look, LIST, (*LIST, "--limit", str(LIMIT)))
        _run(LIST, home)
        runs = [[_run(words, home) for words in commands] for _ in range(repeat)]
        floor, whole, newest = medians(runs)
        name = f"gemtui sessions --everywhere --json, {count:,} sessions, cache"
        for what, cost in ((name, whole), (f"{name}, --limit {LIMIT}", newest)):
            yield Row(what=what, cost=cost, floor="stat of all files", least=floor.seconds)


def _run(words: Sequence[str], home: Path) -> Cost:
    """A process from its start to its end."""
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, *words], env=environ(home), stdout=subprocess.DEVNULL, check=True
    )
    return Cost(seconds=time.perf_counter() - began, memory=0)
