"""What commands cost over whole stores, from the start of the process to its end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.tools.bench.make_store import store_in
from tests.tools.bench.measure import Cost, Row, medians
from tests.tools.bench.starting import environ

FLOOR = ("-c", "import click")
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("sessions", "--everywhere", "--json"),
    ("sessions", "--everywhere", "--limit", "20"),
    ("show", "latest"),
    ("stats", "--everywhere", "--json"),
    ("doctor",),
)


def rows(folder: Path, counts: list[int], repeat: int) -> Iterator[Row]:
    """Each command with a cache; the floor is a process that only imports the command line."""
    for count in counts:
        home = store_in(folder, count)
        for command in COMMANDS:
            cpu(("-m", "gemtui", *command), home)
        programs = (FLOOR, *(("-m", "gemtui", *command) for command in COMMANDS))
        runs = [[cpu(program, home) for program in programs] for _ in range(repeat)]
        floor, *costs = medians(runs)
        for command, cost in zip(COMMANDS, costs, strict=True):
            what = f"gemtui {' '.join(command)}, {count:,} sessions"
            yield Row(what=what, cost=cost, floor='python -c "import click"', least=floor.seconds)
        changed = [(cpu(FLOOR, home), _after_a_change(home)) for _ in range(repeat)]
        floor, cost = medians(changed)
        what = f"gemtui stats --everywhere --json, {count:,} sessions, one has changed"
        yield Row(what=what, cost=cost, floor='python -c "import click"', least=floor.seconds)


def _after_a_change(home: Path) -> Cost:
    path = next((home / ".gemini").glob("tmp/*/chats/*.jsonl"))
    changed = path.with_suffix(".new")
    lines = path.read_bytes().splitlines(keepends=True)
    changed.write_bytes(b"".join([*lines, lines[-1]]))
    shutil.copystat(path, changed)  # so that the order of the sessions stays the same
    changed.replace(path)
    return cpu(("-m", "gemtui", "stats", "--everywhere", "--json"), home)


def cpu(words: Sequence[str], home: Path) -> Cost:
    """The CPU time of a Python process, and of what it has started and waited for.

    Exit code 1 is an answer, such as that nothing was found.
    """
    process = subprocess.Popen(
        [sys.executable, *words],
        env=environ(home),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in (0, 1), words
    return Cost(seconds=used.ru_utime + used.ru_stime, memory=0)
