"""Checkpoints of projects, and an undo of ten files, beside `git status` of the same tree.

The first checkpoint copies every file, so it is also compared with `git add` to a new repository.

Seconds are those of the processor, of git's processes too: other programs don't count.
"""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from gemtui.checkpoints.store import Reason, WritingCall, folder_of
from gemtui.checkpoints.undo import UndoTarget, open_project
from tests.tools.bench.measure import Cost, Row, medians, resident

FILES = (2_000, 20_000, 100_000)
FOLDERS = 200
CHANGED = 10
FLOOR, COPIED = "git status", "git add"


def rows(folder: Path, repeat: int) -> Iterator[Row]:
    """The first checkpoint of each project, later ones, and an undo."""
    for files in FILES:
        yield from _project(folder / str(files), files, repeat)


def _project(place: Path, files: int, repeat: int) -> Iterator[Row]:
    root = _made(place / "project", files)
    status = ["git", "-C", str(root), "status", "--porcelain"]
    store = folder_of(place / "data", root)

    def git() -> None:
        subprocess.run(status, check=True, capture_output=True)

    def take() -> None:
        with open_project(store, root) as project:
            project.taker.take(Reason.PROMPT)

    def copy() -> None:
        repository = {**os.environ, "GIT_DIR": str(place / "copied"), "GIT_WORK_TREE": str(root)}
        for words in (("init", "-q"), ("add", ".")):
            subprocess.run(["git", *words], cwd=root, env=repository, check=True)

    git()
    first, copied = _timed(take), _timed(copy)
    runs = [[_timed(git), _timed(take), *_again(store, root)] for _ in range(repeat)]
    floor, new, later, undone = medians(runs)
    for what, cost in (
        ("the first checkpoint", first),
        ("a checkpoint in a new process", new),
        ("a checkpoint in the same process", later),
        (f"undo of {CHANGED} files", undone),
    ):
        yield Row(what=f"{what}, {files:,} files", cost=cost, floor=FLOOR, least=floor.seconds)
    what = f"the first checkpoint, {files:,} files"
    yield Row(what=what, cost=first, floor=COPIED, least=copied.seconds)


def _again(store: Path, root: Path) -> tuple[Cost, Cost]:
    """A later checkpoint, in which some files changed, and their undo."""
    with open_project(store, root) as project:
        project.taker.take(Reason.PROMPT)
        began = time.time()
        for number in range(CHANGED):
            (root / f"0/{number * FOLDERS}.py").write_text(f"# changed at {began}\n")
        call = WritingCall(run="r", session="s", use=str(began), tool="t", began=began - 1)
        later = _timed(lambda: project.taker.take(Reason.CALL, session="s", calls=lambda: [call]))
        target = UndoTarget(session="s", prompt=1, since=began - 2)
        return later, _timed(lambda: project.undo(target))


def _made(root: Path, files: int) -> Path:
    for number in range(FOLDERS):
        (root / str(number)).mkdir(parents=True)
    for number in range(files):
        text = f"# {number}\n" + "x = 1\n" * (number % 200)
        (root / f"{number % FOLDERS}/{number}.py").write_text(text)
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "All")):
        subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)
    return root


def _timed(work: Callable[[], object]) -> Cost:
    began = _processor()
    work()
    return Cost(seconds=_processor() - began, memory=resident(os.getpid()))


def _processor() -> float:
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)
