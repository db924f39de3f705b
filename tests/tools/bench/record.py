"""The figures that stand in the repository, and what a run says beside them.

`recorded.json` has for each line of the table its figures, and when and on which version of gemtui
they were measured. `python -m tests.tools.bench --record` writes it, `python -m
tests.tools.documents` makes the table of assets/benchmarks.md of it.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gemtui.version import VERSION
from tests.tools.bench.measure import Row, milliseconds

FILE = Path(__file__).with_name("recorded.json")
ALLOWED = 1.15
"""Ratios differ by so much from run to run."""
HEAD = "| what | time | floor | its time | ratio | memory |"
_RULE = "| --- | ---: | --- | ---: | ---: | ---: |"

Figures = dict[str, Any]


def figures(row: Row) -> Figures:
    """A row as it is recorded: milliseconds, megabytes."""
    return {
        "what": row.what,
        "floor": row.floor,
        "ms": round(row.cost.seconds * 1000, 2),
        "floor_ms": round(row.least * 1000, 2),
        "mb": round(row.cost.memory / 1e6, 1),
        "floor_mb": round(row.least_memory / 1e6, 1),
        "ratio": round(row.ratio, 2),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "version": VERSION,
        "python": platform.python_version(),
        "textual": version("textual"),
    }


def recorded(path: Path = FILE) -> list[Figures]:
    """All that was recorded; empty where nothing was."""
    found: list[Figures] = json.loads(path.read_text()) if path.exists() else []
    return found


def record(measured: Iterable[Figures], path: Path = FILE) -> None:
    """Put figures in the place of earlier ones of the same lines; new lines come last."""
    kept = {_key(each): each for each in recorded(path)}
    kept.update((_key(each), each) for each in measured)
    path.write_text(json.dumps(list(kept.values()), indent=1, ensure_ascii=False) + "\n")


def beside(now: Figures, before: Iterable[Figures]) -> str:
    """What a run says of a line beside what was recorded: `was 2.3: slower`."""
    was = next((each["ratio"] for each in before if _key(each) == _key(now)), None)
    if was is None:
        return "not recorded"
    more = "more" if now["floor_mb"] else "slower"
    less = "less" if now["floor_mb"] else "quicker"
    if now["ratio"] > was * ALLOWED:
        return f"was {was:.1f}: {more}"
    return f"was {was:.1f}: {less}" if now["ratio"] * ALLOWED < was else f"was {was:.1f}"


def line(of: Figures) -> str:
    """A line of the table."""
    memory = f"{of['mb']:,.0f} MB" if of["mb"] else "–"
    if of["floor_mb"]:
        time, least = "–", f"{of['floor_mb']:,.0f} MB"
    else:
        time, least = milliseconds(of["ms"] / 1000), milliseconds(of["floor_ms"] / 1000)
    return f"| {of['what']} | {time} | {of['floor']} | {least} | {of['ratio']:.1f} | {memory} |"


def table(path: Path = FILE) -> Iterator[str]:
    """The table of assets/benchmarks.md: the machine's floors, then what gemtui does.

    It has what was measured on the last day. Lines that differ only in the number of sessions are
    one line, which shows the largest store.
    """
    everything = sorted(recorded(path), key=_rank)
    newest = max(everything, key=lambda each: each["date"])
    lines = [each for each in everything if each["date"] == newest["date"]]
    of_program = f"gemtui {newest['version']}, Python {newest['python']}"
    yield f"Measured on {newest['date']}: {of_program}, Textual {newest['textual']}."
    yield from ("", "| floor | time |", "| --- | ---: |")
    floors = {each["floor"]: each["floor_ms"] for each in lines if each["floor_ms"]}
    for floor in SHARED:
        if floor in floors:
            yield f"| {floor} | {milliseconds(floors[floor] / 1000)} |"
    yield from ("", f"{HEAD} at 1,000 | at 100 |", f"{_RULE} ---: | ---: |")
    by_task: dict[tuple[str, str], list[Figures]] = {}
    for each in lines:
        by_task.setdefault((_SIZE.sub("", each["what"]), each["floor"]), []).append(each)
    for same in by_task.values():
        ratios = {_sessions(each): f"{each['ratio']:.1f}" for each in same}
        largest = max(same, key=_sessions)
        smaller = [ratios.get(size, "") if len(same) > 1 else "" for size in (1_000, 100)]
        yield f"{line(largest)} {' | '.join(smaller)} |"


SHARED = (
    'python -c "import click"',
    "minimal Textual app",
    "orjson over all lines",
    "read all bytes",
)
"""The floors that the table names first."""
_TASKS = ("gemtui ", "summaries ", "search index", "start ", "search ", "memory ")
"""How the lines of the table begin, in their order; others follow."""
_SIZE = re.compile(r"([0-9,]+) sessions(, [0-9,]+ MB)?")


def _sessions(of: Figures) -> int:
    size = _SIZE.search(of["what"])
    return 0 if size is None else int(size[1].replace(",", ""))


def _rank(of: Figures) -> int:
    starts = (number for number, task in enumerate(_TASKS) if of["what"].startswith(task))
    return next(starts, len(_TASKS))


def _key(of: Figures) -> tuple[str, str]:
    return of["what"], of["floor"]
