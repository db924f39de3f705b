"""Combine the changes that tools made into one patch per file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path, PurePath
from typing import NamedTuple

from msgspec import Struct

from gemtui.sessions.store.projects import folder_names
from gemtui.sessions.store.store import Problem
from gemtui.sessions.writes.written_files import RecordedWrite
from gemtui.text import counted
from gemtui.transcript.diffs import NoPatch, apply_diff, file_patch
from gemtui.transcript.model import DiffDisplay

_CHANGED_BETWEEN = "includes changes that no session wrote"


class FilePatch(Struct, frozen=True, kw_only=True):
    """The changes to one file as one patch.

    `text`: the patch for `git apply`; "" if the file hasn't changed, or if the patch can't be
    determined, in which case `unknown` gives the reason. `gaps`: how often the file was changed
    between two tool calls by something other than a tool call; those changes are included in the
    patch.
    """

    path: PurePath
    text: str = ""
    unknown: str = ""
    gaps: int = 0


class Remark(NamedTuple):
    """A note about a patch, with the paths of the files it concerns."""

    what: str
    about: Sequence[str]


def remarks(files: Iterable[FilePatch], problems: Iterable[Problem] = ()) -> list[Remark]:
    """Return the notes about a patch; files with the same note are counted together.

    `files`: all files of the patch. `problems`: parts of the sessions that could not be read.
    """
    found: dict[str, list[str]] = {}
    for problem in problems:
        found.setdefault(problem.what, []).append(str(problem.path))
    for each in files:
        if each.unknown:
            found.setdefault(f"left out: {each.unknown}", []).append(str(each.path))
    for each in files:
        if each.gaps:
            found.setdefault(_CHANGED_BETWEEN, []).append(str(each.path))
    return [Remark(f"{what}: {counted(len(about), 'file')}", about) for what, about in found.items()]


class ProjectPatch:
    """Combines file writes into one patch for each file under the folder `root`.

    For each file, only the contents of the first and the last write are held in memory.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders = sorted(folder_names(root))
        self._files: dict[PurePath, _Changes] = {}

    def add(self, write: RecordedWrite) -> None:
        """Add a write, whose `change` must have been read, in any order.

        Writes that failed are ignored.
        """
        if write.written:
            self._files.setdefault(write.path, _Changes()).add(write)

    def files(self) -> Iterator[FilePatch]:
        """Yield each file's patch, sorted by path."""
        names, folders = set[PurePath](), set[PurePath]()
        for path, changes in sorted(self._files.items()):
            folder = next((each for each in self._folders if path.is_relative_to(each)), None)
            if folder is None:
                yield FilePatch(path=path, unknown=f"not in {self._root}")
                continue
            name = path.relative_to(folder)
            found = changes.patch(path, name.as_posix())
            if found.text and (name in names | folders or not names.isdisjoint(name.parents)):
                found = FilePatch(
                    path=path,
                    unknown=("another file in the patch has the same name, or its name is also the name of a folder"),
                )
            elif found.text:
                names.add(name)
                folders.update(name.parents)
            yield found


class _Step(NamedTuple):
    """One write, with hashes of the file's contents before and after; None if unknown."""

    when: datetime
    before: int | None
    after: int | None


class _Changes:
    """The writes to one file."""

    def __init__(self) -> None:
        self._steps: list[_Step] = []
        self._ends: list[RecordedWrite] = []

    def add(self, write: RecordedWrite) -> None:
        change = write.change
        before, after = (None, None) if change is None else (change.original, change.new)
        self._steps.append(_Step(write.when, _hash(before), _hash(after)))
        ends = sorted([*self._ends, write], key=lambda each: each.when)
        self._ends = [ends[0], ends[-1]]

    def patch(self, path: PurePath, name: str) -> FilePatch:
        """Return all writes as one patch.

        `name`: the path to use in the patch, relative to the project and with slashes.
        """
        first, last = (each.change for each in self._ends)
        if first is None or last is None:
            return FilePatch(path=path, unknown="its contents after the write are not recorded")
        try:
            text = file_patch(name, None if first.is_new else _before(first), _after(last))
        except NoPatch as problem:
            return FilePatch(path=path, unknown=str(problem))
        return FilePatch(path=path, text=text, gaps=self._gaps())

    def _gaps(self) -> int:
        """Return how often anything but a write changed the file between two writes."""
        steps = sorted(self._steps, key=lambda each: each.when)
        return sum(
            one.after is not None and other.before is not None and one.after != other.before
            for one, other in pairwise(steps)
        )


def _before(change: DiffDisplay) -> str:
    if not change.is_new and change.original is None:
        raise NoPatch("its contents before the write are not recorded")
    return "" if change.is_new else change.original or ""


def _after(change: DiffDisplay) -> str:
    return apply_diff(_before(change), change.diff) if change.new is None else change.new


def _hash(text: str | None) -> int | None:
    return None if text is None else hash(text)
