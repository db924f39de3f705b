"""A project with checkpoints, its calls and its person."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gemtui.checkpoints.store import Reason, WritingCall, folder_of
from gemtui.checkpoints.undo import Project, UndoTarget, open_project
from gemtui.interrupts import StopRequest

Tree = dict[bytes, tuple[str, int, bytes]]


def files_of(root: Path) -> Tree:
    """All files and links below a folder but repositories' own: kind, mode, content."""
    found: Tree = {}
    for place in [root, *root.rglob("*")]:
        inside = bytes(place.relative_to(root))
        if place.is_symlink():
            found[inside] = "link", 0, bytes(place.readlink())
        elif place.is_file() and ".git" not in place.parts:
            found[inside] = "file", place.stat().st_mode & 0o777, place.read_bytes()
    return found


def tree_of(root: Path) -> Tree:
    """The same, and the folders in which they are, whose names end with a slash."""
    found = files_of(root)
    return found | {
        bytes(above) + b"/": ("folder", (root / above).stat().st_mode & 0o777, b"")
        for name in found
        for above in path_of(Path(), name).parents
    }


def path_of(root: Path, name: bytes) -> Path:
    """The path of a name in a project."""
    return root / os.fsdecode(name)


def put(root: Path, name: bytes, content: bytes) -> None:
    """Write a file, whatever is in its place or in that of its folders."""
    path = path_of(root, name)
    for above in reversed(path.relative_to(root).parents):
        place = root / above
        if place.is_symlink() or not place.is_dir():
            drop(root, bytes(above))
            place.mkdir()
    drop(root, name)
    path.write_bytes(content)


def drop(root: Path, name: bytes) -> None:
    """Remove whatever has this name."""
    path = path_of(root, name)
    with suppress(NotADirectoryError, FileNotFoundError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def wait_for_next_second() -> None:
    """Wait until what was changed so far is in an earlier second than all that follows."""
    time.sleep(1.03 - time.time() % 1)


class Session:
    """A session in a project of its own; its calls and prompts are counted instead of timed."""

    def __init__(self, place: Path) -> None:
        self.root, self.data = place / "project", place / "data"
        self.root.mkdir()
        self.count = 0
        self.prompts: list[float] = []
        self.trees: list[Tree] = []

    @contextmanager
    def opened(
        self, *, dry_run: bool = False, stop: StopRequest | None = None
    ) -> Iterator[Project]:
        place = folder_of(self.data, self.root)
        with open_project(place, self.root, dry_run=dry_run, stop=stop) as project:
            yield project

    def prompt(self) -> None:
        """A prompt; the tree before it is remembered."""
        with self.opened() as project:
            project.taker.take(Reason.PROMPT, run="r", session="s")
        self.count += 1
        self.prompts.append(float(self.count))
        self.trees.append(tree_of(self.root))

    def call(self, act: Callable[[Path], object]) -> None:
        """A call; what it changes is its own, whatever the clock says."""
        before = tree_of(self.root)
        act(self.root)
        after = tree_of(self.root)
        changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        self.count += 1
        at = float(self.count)
        with self.opened() as project:
            call = WritingCall(run="r", session="s", use=str(at), tool="t", began=at)
            with project.store.transaction():
                id = project.store.save_call(call)
            owned = dict.fromkeys(changed, id)
            project.taker.take(Reason.CALL, run="r", session="s", owned=owned)

    def person(self, act: Callable[[Path], object]) -> None:
        """An edit of the person's, between two checkpoints."""
        act(self.root)
        with self.opened() as project:
            project.taker.take(Reason.MANUAL)

    def target(self, number: int) -> UndoTarget:
        """Where the prompt with this number was given."""
        return UndoTarget(session="s", prompt=number, since=self.prompts[number - 1])
