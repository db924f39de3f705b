"""Measure gemtui and print a Markdown table: `python -m tests.tools.bench`; `--help` has the
options.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.tools.bench import (
    checkpointing,
    commands,
    editing,
    hooks,
    opening,
    policies,
    reading,
    running,
    searching,
    stalling,
    starting,
    waiting,
)
from tests.tools.bench.measure import Row
from tests.tools.bench.record import HEAD, beside, figures, line, record, recorded

PARTS = (
    "start",
    "rest",
    "commands",
    "stores",
    "agents",
    "search",
    "session",
    "open",
    "policies",
    "edits",
    "huge",
    "stops",
    "many",
    "run",
    "hooks",
    "waiting",
    "checkpoints",
)
OPTED = ("agents", "huge", "many", "run", "hooks", "waiting", "checkpoints")
"""Parts that are measured only if they are named."""
MEGABYTE = 1_000_000
AGENT_SESSIONS = 2_000
"""How many sessions of Claude Code are read; they have half a gigabyte."""


def main() -> None:
    """Run what was asked for; a row is printed as soon as it is known, beside what it was."""
    wanted = _parser().parse_args()
    wanted.parts = wanted.parts or [part for part in PARTS if part not in OPTED]
    with tempfile.TemporaryDirectory(prefix="gemtui-bench-") as folder:
        print(f"{HEAD} recorded |\n| --- | ---: | --- | ---: | ---: | ---: | --- |", flush=True)
        before, measured = recorded(), []
        for row in _rows(Path(folder), wanted):
            measured.append(figures(row))
            print(f"{line(measured[-1])} {beside(measured[-1], before)} |", flush=True)
    if wanted.record:
        record(measured)


def _rows(folder: Path, wanted: argparse.Namespace) -> Iterator[Row]:
    stores = wanted.folder or folder
    stores.mkdir(parents=True, exist_ok=True)
    if "start" in wanted.parts:
        yield from starting.rows(stores, wanted.sessions, wanted.repeat)
    if "rest" in wanted.parts:
        yield from starting.resting(stores, wanted.sessions, min(wanted.repeat, 3))
    if "commands" in wanted.parts:
        yield from commands.rows(stores, wanted.sessions, wanted.repeat)
    if "stores" in wanted.parts:
        yield from reading.stores(stores, wanted.sessions, wanted.repeat)
    if "agents" in wanted.parts:
        yield from reading.of_claude(stores, AGENT_SESSIONS, min(wanted.repeat, 3))
    if "search" in wanted.parts:
        yield from searching.rows(stores, wanted.sessions, wanted.repeat)
    if "session" in wanted.parts:
        yield from reading.session(folder, wanted.size * MEGABYTE, wanted.repeat)
    if "open" in wanted.parts:
        yield from opening.rows(folder, wanted.size * MEGABYTE, wanted.repeat)
    if "policies" in wanted.parts:
        yield from policies.rows(folder, wanted.repeat)
    if "edits" in wanted.parts:
        yield from editing.rows(folder, wanted.repeat)
    if "huge" in wanted.parts:
        yield from reading.session(folder, 1_000 * MEGABYTE, 1)
    if "stops" in wanted.parts:
        yield from stalling.rows(stores, max(wanted.sessions), wanted.repeat)
    if "many" in wanted.parts:
        yield from stalling.many(stores, min(wanted.repeat, 3))
    if "run" in wanted.parts:
        yield from running.rows(folder, wanted.repeat)
    if "hooks" in wanted.parts:
        yield from hooks.rows(folder, wanted.repeat)
    if "waiting" in wanted.parts:
        yield from waiting.rows(folder, wanted.repeat)
    if "checkpoints" in wanted.parts:
        yield from checkpointing.rows(folder, wanted.repeat)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.tools.bench", description=__doc__)
    parser.add_argument(
        "parts",
        nargs="*",
        choices=PARTS,
        help="what to measure; all but `agents` (half a gigabyte of sessions of Claude Code) and "
        "`huge` (a log of 1 GB), which are written to the temporary folder, "
        "`run` (runs, which take some minutes), `hooks` and `waiting` (which need Gemini CLI from "
        "npm) and `checkpoints` (122,000 small files, written to the temporary folder)",
    )
    parser.add_argument(
        "--sessions",
        type=lambda words: [int(word) for word in words.split(",")],
        default=[100, 1_000, 10_000],
        help="sizes of the stores, such as 100,1000",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        help="where stores are made, and used again by a later call; by default a temporary folder",
    )
    parser.add_argument("--size", type=int, default=20, help="megabytes of the large session")
    parser.add_argument(
        "--record",
        action="store_true",
        help="keep the figures, for later runs to be compared with and for the table of "
        "benchmarks.md (then python -m tests.tools.documents)",
    )
    parser.add_argument("--repeat", type=int, default=5, help="how often; medians are shown")
    return parser


if __name__ == "__main__":
    main()
