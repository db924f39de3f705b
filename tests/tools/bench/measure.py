"""How the benchmarks measure: medians, each in a process of its own, each against a floor."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
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


def medians(runs: Sequence[Sequence[Cost]]) -> list[Cost]:
    """The median of each work, where every run did all of them."""
    return [Cost.middle(list(each)) for each in zip(*runs, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of the table; `floor` says what one cannot be below, in the same run.

    `least`: the seconds of the floor; `least_memory`: its bytes, where memory is what is measured.
    """

    what: str
    cost: Cost
    floor: str
    least: float = 0.0
    least_memory: int = 0

    @property
    def ratio(self) -> float:
        """How many times the floor it is."""
        if self.least_memory:
            return self.cost.memory / self.least_memory
        return self.cost.seconds / self.least


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
    return _status(pid, "VmHWM") or resident(pid)


def resident(pid: int) -> int:
    """The memory that a process has now, in bytes."""
    now = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, check=True)
    return _status(pid, "VmRSS") or int(now.stdout) * 1024


def _status(pid: int, name: str) -> int:
    """What Linux says of a process, in bytes; 0 on other systems."""
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), 0)
