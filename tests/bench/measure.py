"""How the benchmarks measure: medians, each in a process of its own, each against a floor."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What something took: seconds, and bytes of memory that its process had at most."""

    seconds: float
    memory: int

    @classmethod
    def middle(cls, costs: list[Cost]) -> Cost:
        """The median of each."""
        return cls(
            seconds=median(cost.seconds for cost in costs),
            memory=int(median(cost.memory for cost in costs)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of the table; `floor` says what one cannot be faster than, in the same run."""

    what: str
    cost: Cost
    floor: str
    least: float

    def __str__(self) -> str:
        ratio = self.cost.seconds / self.least
        return (
            f"| {self.what} | {milliseconds(self.cost.seconds)} | {self.floor} "
            f"| {milliseconds(self.least)} | {ratio:.1f} | {self.cost.memory / 1e6:,.0f} MB |"
        )


HEAD = (
    "| what | time | floor | its time | ratio | memory |\n| --- | ---: | --- | ---: | ---: | ---: |"
)


def milliseconds(seconds: float) -> str:
    """A time as the table shows it."""
    return f"{seconds * 1000:,.0f} ms" if seconds >= 0.01 else f"{seconds * 1000:.1f} ms"


def alone(work: Callable[[Path], None], place: Path) -> Cost:
    """The cost of `work(place)` in a new process; starting it and importing are not counted."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_timed, work, place).result()


def _timed(work: Callable[[Path], None], place: Path) -> Cost:
    began = time.perf_counter()
    work(place)
    return Cost(seconds=time.perf_counter() - began, memory=peak(os.getpid()))


def peak(pid: int) -> int:
    """The most memory a process had, in bytes; what it has now where the system can't tell."""
    status = Path(f"/proc/{pid}/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    now = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, check=True)
    return int(now.stdout) * 1024
