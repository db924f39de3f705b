"""Runs a test on the real Gemini CLI only if what it covers has changed since it passed.

These tests need a third of the time of all. `real_stories.json` has, for each of their modules,
the digest of all that it covers, from when its tests passed. While that digest is the same, only
those marked `every_run` are run. `GEMTUI_TEST_REAL=all` runs all of them. A module that is named on
the command line is run whole, unless that variable is `changed`.

`python -m tests.real_stories` runs what has changed, and writes the digests of what passed.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.covered import ROOT, digest

PASSED = Path(__file__).with_suffix(".json")
WANTED = os.environ.get("GEMTUI_TEST_REAL", "")
_NAME = "real_stories_left_out"
_LEFT_OUT = pytest.StashKey[int]()


def passed() -> dict[str, str]:
    """Return the digests of the modules whose tests passed, by their paths."""
    found: dict[str, str] = json.loads(PASSED.read_text())
    return found


@cache
def _is_settled(module: str) -> bool:
    return passed().get(module) == digest(ROOT / module)


def _module(nodeid: str) -> str:
    return nodeid.split("::")[0]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests on the real CLI, and leave out those that would show nothing new."""
    settled = []
    for item in items:
        if "gemini_program" in getattr(item, "fixturenames", ()):
            item.add_marker("real_cli")
            once = item.get_closest_marker("every_run") is None
            if once and WANTED != "all" and _is_settled(_module(item.nodeid)):
                settled.append(item)
    if settled and not _names_one(config):
        left_out = {item.nodeid for item in settled}
        items[:] = [item for item in items if item.nodeid not in left_out]
        config.hook.pytest_deselected(items=settled)
        config.stash[_LEFT_OUT] = len(settled)
        if (output := getattr(config, "workeroutput", None)) is not None:
            output[_NAME] = len(settled)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over from a worker how many tests it has left out; all leave out the same."""
    node.config.stash[_LEFT_OUT] = getattr(node, "workeroutput", {}).get(_NAME, 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was left out, so that nobody takes a green run for more than it was."""
    if number := terminalreporter.config.stash.get(_LEFT_OUT, 0):
        terminalreporter.write_line(
            f"{number} tests on the real Gemini CLI left out: nothing that they cover has changed "
            "since they passed; GEMTUI_TEST_REAL=all runs them"
        )


def _names_one(config: pytest.Config) -> bool:
    """Return whether somebody asks for a module or a test by its name."""
    return WANTED != "changed" and any(".py" in word for word in config.args)


class Recorder:
    """Writes down the modules whose tests on the real CLI have all passed."""

    def __init__(self) -> None:
        self._good = defaultdict[str, bool](lambda: True)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the outcome of one phase of one test."""
        if "real_cli" in report.keywords:
            self._good[_module(report.nodeid)] &= report.passed

    def write(self, before: Mapping[str, str]) -> None:
        """Write the digests: new ones for what passed, none for what failed."""
        now = {module: digest(ROOT / module) if self._good[module] else "" for module in self._good}
        kept = {
            module: number
            for module, number in sorted({**before, **now}.items())
            if number and (ROOT / module).exists()
        }
        PASSED.write_text(json.dumps(kept, indent=2) + "\n")


def main(words: list[str]) -> int:
    """Run the tests and record what passed; `words` go to pytest."""
    recorder, before = Recorder(), passed()
    code = pytest.main(["-m", "real_cli", *words], plugins=[recorder])
    recorder.write(before)
    return int(code)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
