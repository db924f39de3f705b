"""Put known faults into copies of gemtui, and look whether the tests notice.

`mutants.toml` lists the faults, such as a dropped check or a comparison that is off by one, each
with the test that must fail. The checkout itself is never changed.

    python -m tests.tools.mutants [NAME…] [--jobs N]
    python -m tests.tools.mutants --check        # only whether they still fit the code: a second
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_suffix(".toml")
NOT_COPIED = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "build", "dist")
KILLED = "killed"


@dataclass(frozen=True)
class Mutant:
    """A fault: in `file`, `before` is replaced with `after`; then `test` must fail."""

    name: str
    file: str
    before: str
    after: str
    test: str

    @property
    def applies(self) -> bool:
        """Whether the file still has this text, once."""
        file = ROOT / self.file
        return file.exists() and file.read_text().count(self.before) == 1

    @property
    def test_exists(self) -> bool:
        """Whether the test still has this name."""
        module, _, function = self.test.partition("::")
        file = ROOT / module
        pattern = rf"^(async )?def {function}\("
        return file.exists() and re.search(pattern, file.read_text(), re.MULTILINE) is not None

    @property
    def tests(self) -> str:
        """What pytest is to run: the test, or its whole module if the test has another name by
        now.
        """
        return self.test if self.test_exists else self.test.partition("::")[0]


def main() -> int:
    """Try the mutants that the command line names, or all of them; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.tools.mutants", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="mutants to try (default: all)")
    parser.add_argument("--jobs", type=int, default=1, help="how many to try at the same time")
    parser.add_argument("--check", action="store_true", help="try none; list those out of date")
    options = parser.parse_args()
    mutants = [Mutant(**entry) for entry in tomllib.loads(LIST.read_text())["mutant"]]
    if unknown := set(options.names) - {mutant.name for mutant in mutants}:
        parser.error(f"no such mutant: {', '.join(sorted(unknown))}")
    chosen = [mutant for mutant in mutants if not options.names or mutant.name in options.names]
    for mutant in chosen:
        if not mutant.test_exists:
            print(
                f"out of date: {mutant.name} names {mutant.test}, which is gone; its whole module "
                "is run instead"
            )
    if options.check:
        stale = [mutant for mutant in chosen if not mutant.applies]
        for mutant in stale:
            print(f"out of date: {mutant.name}: its text is not in {mutant.file} once")
        return 1 if stale else 0
    with TemporaryDirectory(prefix="mutants-") as folder:
        copies = [Path(folder, str(number)) for number in range(options.jobs)]
        for copy in copies:
            shutil.copytree(ROOT, copy, ignore=NOT_COPIED)
        print("without a mutant: ", end="", flush=True)
        tests = sorted({mutant.tests for mutant in chosen})
        if run_tests(copies[0], tests) != 0:
            print("some of the tests fail")
            return 1
        print("all tests pass")
        killed = try_all(chosen, copies)
    print(f"{killed} of {len(chosen)} mutants killed")
    return 0 if killed == len(chosen) else 1


def try_all(mutants: Sequence[Mutant], copies: Sequence[Path]) -> int:
    """Try mutants, one at a time in each copy of the checkout; return how many were killed."""
    free: SimpleQueue[Path] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def try_in_free_copy(mutant: Mutant) -> str:
        copy = free.get()
        try:
            return try_one(mutant, copy)
        finally:
            free.put(copy)

    killed = 0
    with ThreadPoolExecutor(len(copies)) as pool:
        for mutant, result in zip(mutants, pool.map(try_in_free_copy, mutants), strict=True):
            killed += result == KILLED
            print(f"{result:17} {mutant.name}", flush=True)
    return killed


def try_one(mutant: Mutant, copy: Path) -> str:
    """Try one mutant in a copy of the checkout, which is as before afterwards; return what
    happened.
    """
    original, mutated = ROOT / mutant.file, copy / mutant.file
    if not mutant.applies:
        return "snippet not found"
    mutated.write_text(original.read_text().replace(mutant.before, mutant.after))
    code = run_tests(copy, [mutant.tests])
    shutil.copy2(original, mutated)
    return {0: "SURVIVED", 1: KILLED}.get(code, f"pytest ended {code}")


def run_tests(copy: Path, tests: Sequence[str]) -> int:
    """Run tests in a copy of the checkout with its own gemtui; return pytest's exit code.

    No bytecode is written: Python might take a mutant's for the original, which is as old to the
    second.
    """
    environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    options = ["-x", "-q", "-n0", "-p", "no:cacheprovider", "--timeout=120"]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    quiet = subprocess.DEVNULL
    return subprocess.run(command, cwd=copy, env=environment, stdout=quiet, stderr=quiet).returncode


if __name__ == "__main__":
    sys.exit(main())
