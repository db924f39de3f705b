"""Which of the long tests are run: those of which something has changed since they passed, or all.

A *story* is a test on a real agent, such as Gemini CLI, or one that is marked `deep`. A module's
stories cover the package that its folder mirrors (`tests/runs` mirrors `gemtui/runs`), what its
mark `covers("gemtui/agent", ...)` names, the module itself, and the programs that stories talk to.
`stories.json` has a digest of all that for each module, from when its stories passed. While the
digest is the same, they are left out, except those marked `every_run`. GEMTUI_TEST_DEEP=1 runs all.

`python -m tests.stories` runs the stories of which something has changed, and records what passed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.deep import DEEP

ROOT = Path(__file__).parents[1]
RECORD = Path(__file__).with_suffix(".json")
PROGRAMS = (
    "tests/gated.py",
    "tests/model_server.py",
    "tests/npm.py",
    "tests/real_cli.py",
    "tests/terminal.py",
)
"""What stories talk to; the version of Gemini CLI stands there, too."""
PROGRAM_FIXTURES = frozenset({"claude_program", "gemini_program", "qwen_program"})
"""What a test asks for that is on a real agent."""
_LEFT_OUT = pytest.StashKey[int]()


def covered(module: str, named: Iterable[str]) -> list[Path]:
    """Return the files that the stories of a module cover.

    Arguments:
        module: the path of the module from the root of the checkout.
        named: what its mark names, as paths from the same root.
    """
    folder = Path(module).parent.relative_to("tests")
    mirrored = ROOT / "gemtui" / folder
    paths = [ROOT / name for name in named]
    if folder.parts and mirrored.exists():
        paths.append(mirrored)
    files = {ROOT / module, *(ROOT / program for program in PROGRAMS)}
    for path in paths or [ROOT / "gemtui"]:
        files.update(_files_of(path))
    return sorted(files)


@cache
def _files_of(path: Path) -> frozenset[Path]:
    if path.is_file():
        return frozenset({path})
    return frozenset(file for file in path.rglob("*") if file.is_file() and file.suffix != ".pyc")


def digest(module: str, named: Iterable[str]) -> str:
    """Return a number for the contents of all that the stories of a module cover."""
    lines = [f"{file.relative_to(ROOT)} {_contents(file)}" for file in covered(module, named)]
    return sha256("\n".join(lines).encode()).hexdigest()[:16]


@cache
def _contents(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()


def recorded() -> dict[str, str]:
    """Return the digests of the modules whose stories passed, by the paths of the modules."""
    record: dict[str, str] = json.loads(RECORD.read_text())
    return record


def module_of(nodeid: str) -> str:
    """Return the path of the module of a test."""
    return nodeid.split("::")[0]


def _is_story(item: pytest.Item) -> bool:
    is_real = not PROGRAM_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))
    return is_real or item.get_closest_marker("deep") is not None


def _mark(item: pytest.Item) -> str:
    """Mark a story, and return the digest of what it covers; its reports carry that, too."""
    named = {path for mark in item.iter_markers("covers") for path in mark.args}
    number = digest(module_of(item.nodeid), named)
    item.add_marker("story")
    item.user_properties.append(("story", number))
    return number


def _names_one(config: pytest.Config) -> bool:
    """Return whether somebody asks for a module or a test by its name."""
    return any(".py" in word for word in config.args)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the stories that would show nothing new, and begin with the others: they take
    longest.
    """
    record = recorded()
    run_all = DEEP or _names_one(config)
    stories, left_out, others = [], [], []
    for item in items:
        if not _is_story(item):
            others.append(item)
            continue
        is_settled = _mark(item) == record.get(module_of(item.nodeid))
        if is_settled and not run_all and item.get_closest_marker("every_run") is None:
            left_out.append(item)
        else:
            stories.append(item)
    items[:] = stories + others
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    _note(config, len(left_out))


def _note(config: pytest.Config, number: int) -> None:
    config.stash[_LEFT_OUT] = number
    output = getattr(config, "workeroutput", None)
    if output is not None:
        output["stories_left_out"] = number


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over from a worker how many stories it has left out; all leave out the same."""
    node.config.stash[_LEFT_OUT] = getattr(node, "workeroutput", {}).get("stories_left_out", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was left out, so that nobody takes a green run for more than it was."""
    number = terminalreporter.config.stash.get(_LEFT_OUT, 0)
    if number:
        terminalreporter.write_line(
            f"{number} long tests left out: nothing that they cover has changed since they passed; "
            "GEMTUI_TEST_DEEP=1 runs them"
        )


class Recorder:
    """Writes down the modules whose stories have all passed."""

    def __init__(self) -> None:
        self._digests: dict[str, str] = {}
        self._failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the outcome of one phase of one story."""
        number = dict(report.user_properties).get("story")
        if number is None:
            return
        module = module_of(report.nodeid)
        self._digests[module] = str(number)
        if not report.passed:
            self._failed.add(module)

    def write(self) -> None:
        """Write the digests of what passed beside those of what was not run; none for what
        failed.
        """
        record = recorded() | self._digests
        kept = {
            module: number
            for module, number in sorted(record.items())
            if module not in self._failed and (ROOT / module).exists()
        }
        RECORD.write_text(json.dumps(kept, indent=2) + "\n")


def main(arguments: list[str]) -> int:
    """Run the stories and record what passed; `arguments` go to pytest."""
    recorder = Recorder()
    code = pytest.main(["-m", "story", *arguments], plugins=[recorder])
    recorder.write()
    return int(code)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
