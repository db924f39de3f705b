"""Make the observations of the policy cases anew with the installed CLI, and say what differs.

    python -m tests.tools.observation [--cases FILE] [--only PREFIX] [--sample N] [--output FILE]

A scripted model on loopback makes the calls; each run has a home and a project of its own. Two
lists come out: where the CLI does not do what was recorded, and where our engine says something
else than the CLI did. `--output` writes the cases with what was seen now, in the form in which they
are read; a file of cases without outcomes is thus filled in. Exit code 1 where anything differs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemtui.agent.detect import detect_cli
from gemtui.policy.model.rules import CHECKED_AGAINST
from tests.policy.observed import Answer, Run
from tests.tools.observation.cases import Case, Seen, in_runs, read_cases
from tests.tools.observation.observe import Lost, observe

CASES = Path(__file__).parents[2] / "data" / "policy" / "cases.jsonl"
ENGINE = "engine"
"""The scope in which our engine answers for what happens; others have other judges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One case: what the CLI did now, None = it did not come to that call, and what we say."""

    case: Case
    now: Seen | None
    ours: Answer
    problem: str = ""

    @property
    def changed(self) -> bool:
        """Whether the CLI does something else than was recorded."""
        return self.case.seen is not None and not _same(self.case.seen, self.now)

    @property
    def missed(self) -> bool:
        """Whether our engine says something else than the CLI did."""
        return (
            self.case.scope == ENGINE and self.ours is not None and not _same(self.ours, self.now)
        )

    def row(self) -> dict[str, Any]:
        """The parts of the case's line that are seen."""
        now = self.now
        if now is None:
            return {"id": self.case.id, "problem": self.problem}
        return {
            "id": self.case.id,
            "outcome": now.outcome,
            "offered": now.offered,
            "error_type": now.error,
            "message": now.message,
        }


def _same(one: Seen | Answer, other: Seen | None) -> bool:
    return other is not None and (one.outcome, one.offered) == (other.outcome, other.offered)


def observe_run(program: Path, folder: Path, cases: tuple[Case, ...]) -> tuple[Observed, ...]:
    """One run of the CLI, and our engine on the same calls; `folder` must not be there yet."""
    problem, seen = "", tuple[Seen | None, ...]()
    try:
        seen = observe(program, folder, cases)
    except Lost as lost:
        problem, seen = str(lost), (None,) * len(cases)
    said = Run(cases[0], folder / "ours").answers(cases)
    return tuple(
        Observed(case=case, now=now, ours=mine, problem=problem)
        for case, now, mine in zip(cases, seen, said, strict=True)
    )


def report(found: Sequence[Observed]) -> Iterator[str]:
    """What differs, a line each, and the counts."""
    for each in found:
        if each.changed:
            assert each.case.seen is not None
            yield f"changed {_line(each)} was {_words(each.case.seen)}, is {_words(each.now)}"
        if each.missed:
            yield f"missed  {_line(each)} is {_words(each.now)}, we say {_words(each.ours)}"
        if each.problem:
            yield f"lost    {_line(each)} {each.problem}"
    changed, missed = sum(each.changed for each in found), sum(each.missed for each in found)
    yield f"{len(found)} calls: {changed} other than recorded, {missed} other than our engine says"


def _line(each: Observed) -> str:
    case = each.case
    way = "interactive" if case.interactive else "headless"
    return f"{case.id} [{case.mode}, {way}] {case.tool} {json.dumps(dict(case.args))}:"


def _words(seen: Seen | Answer | None) -> str:
    if seen is None:
        return "unknown"
    return f"{seen.outcome}{'' if seen.offered else ', not offered'}"


def _chosen(options: argparse.Namespace) -> list[tuple[Case, ...]]:
    cases = [case for case in read_cases(options.cases) if case.id.startswith(options.only)]
    runs = list(in_runs(cases))
    if options.sample is not None and options.sample < len(runs):
        runs = random.Random(options.seed).sample(runs, options.sample)
    return runs


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.tools.observation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--cases", type=Path, default=CASES, help="JSON Lines; default: the data's")
    parser.add_argument("--only", default="", metavar="PREFIX", help="ids that begin so")
    parser.add_argument("--sample", type=int, metavar="N", help="N runs, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the cases as seen now")
    return parser.parse_args()


def main() -> int:
    """Observe, and print what differs."""
    options = _options()
    found_cli = detect_cli(os.environ)
    cli = found_cli.cli
    if cli is None:
        print(f"{found_cli.problem}, or name it by GEMINI_CLI_PATH", file=sys.stderr)
        return 2
    print(f"Gemini CLI {found_cli.version}; recorded was, and our engine is, {CHECKED_AGAINST}")
    runs = _chosen(options)
    base = Path(tempfile.mkdtemp(prefix="observe-"))
    try:
        with ThreadPoolExecutor(options.jobs) as pool:
            places = (base / f"run{number}" for number in range(len(runs)))
            many = pool.map(lambda place, run: observe_run(cli.path, place, run), places, runs)
            found = [each for one in many for each in one]
    finally:
        shutil.rmtree(base)
    print(*report(found), sep="\n")
    if options.output is not None:
        _write(options.output, options.cases, found)
    return 1 if any(each.changed or each.missed or each.problem for each in found) else 0


def _write(path: Path, cases: Path, found: Sequence[Observed]) -> None:
    """The lines of the file of cases, as they are but for what was seen."""
    now = {each.case.id: each.row() for each in found}
    rows = (json.loads(line) for line in cases.read_text("utf-8").split("\n") if line.strip())
    with path.open("w", encoding="utf-8") as out:
        for row in rows:
            if row["id"] in now:
                print(json.dumps({**row, **now[row["id"]]}), file=out)


if __name__ == "__main__":
    sys.exit(main())
