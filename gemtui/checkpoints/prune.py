"""Remove checkpoints that are too old or exceed a size limit."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gemtui.checkpoints.store import Checkpoint, CheckpointStore, open_store
from gemtui.errors import CheckpointsUnreadable
from gemtui.files import folder_sizes, locked
from gemtui.jsonout import fields

PRUNE_CHECKPOINTS = "gemtui checkpoints --prune"
"""The shell command with which users remove old checkpoints."""
_LOCK = "lock"
_ROUNDS = 12
"""The most steps in which a project's checkpoints are removed to save space.

Each step removes the older half of the checkpoints; the last one removes all that are left.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointsUsage:
    """The disk usage of checkpoints.

    `folder`: the folder that contains the checkpoints of all projects. `projects`: the number of
    projects. `bytes`: their total size.
    """

    folder: Path
    projects: int
    bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Return the usage as JSON values."""
        return fields(self, "folder", "projects", "bytes")


def checkpoints_usage(place: Path) -> CheckpointsUsage:
    """Return the disk usage of the checkpoints under `place`. Never raises."""
    folders = list(_folders(place))
    return CheckpointsUsage(
        folder=place, projects=len(folders), bytes=sum(sum(folder_sizes(each)) for each in folders)
    )


def remove_old_checkpoints(
    place: Path,
    *,
    before: float,
    most_bytes: int,
    goes_on: Callable[[str], bool],
    needed: Collection[Path] = (),
) -> CheckpointsUsage:
    """Remove old checkpoints; return the number of projects pruned and bytes freed.

    * `place`: the folder that contains the checkpoints of all projects.
    * `before`: remove checkpoints older than this, in seconds since 1970.
    * `most_bytes`: the size limit for all projects together.
    * `goes_on`: returns whether the run with this id is still working. If so, the run's first
      checkpoint and all later ones of its project are kept.
    * `needed`: the folders of projects from which no checkpoint is removed.

    Projects whose checkpoints are in use or unreadable are skipped.
    """
    folders = (each for each in _folders(place) if each not in needed)
    was = {folder: sum(folder_sizes(folder)) for folder in folders}
    for folder in was:
        _prune_one(folder, goes_on, lambda each: each.time >= before)
    for folder in sorted(was, key=_used_last):
        for step in range(1, _ROUNDS + 1):
            if checkpoints_usage(place).bytes <= most_bytes:
                break
            if not _prune_one(folder, goes_on, partial(_is_among, _newest(folder, step))):
                break
    left = {folder: sum(folder_sizes(folder)) for folder in was}
    freed = {folder: size - left[folder] for folder, size in was.items() if left[folder] < size}
    return CheckpointsUsage(folder=place, projects=len(freed), bytes=sum(freed.values()))


def _folders(place: Path) -> Iterator[Path]:
    with suppress(OSError):
        yield from sorted(each for each in place.iterdir() if each.is_dir())


def _used_last(folder: Path) -> float:
    with suppress(OSError, CheckpointsUnreadable), open_store(folder) as store:
        return max((each.time for each in store.checkpoints()), default=0.0)
    return 0.0


def _newest(folder: Path, step: int) -> frozenset[int]:
    """Return the ids of the checkpoints to keep in a step: the newer half.

    `step`: the step's number. In the last step, which has the number `_ROUNDS`, nothing is kept.
    """
    with suppress(OSError, CheckpointsUnreadable), open_store(folder) as store:
        ids = [each.id for each in store.checkpoints()]
        return frozenset(ids[(len(ids) + 1) // 2 :] if step < _ROUNDS else ())
    return frozenset()


def _is_among(ids: frozenset[int], checkpoint: Checkpoint) -> bool:
    return checkpoint.id in ids


def _prune_one(
    folder: Path, goes_on: Callable[[str], bool], stays: Callable[[Checkpoint], bool]
) -> bool:
    """Remove a project's checkpoints that are older than the first one to keep.

    `goes_on`: returns whether the run with this id is still working; its checkpoints are kept.
    `stays`: returns whether to keep any other checkpoint. Returns whether any were removed.
    """
    with suppress(OSError, CheckpointsUnreadable), _free(folder) as free:
        if not free:
            return False
        with open_store(folder) as store:
            checkpoints = store.checkpoints()
            if any(undo.plan is not None for undo in store.undos()):
                return False
            first = next(
                (
                    each.id
                    for each in checkpoints
                    if stays(each) or (each.run and goes_on(each.run))
                ),
                None,
            )
            if first is not None:
                return _drop(store, first, checkpoints)
        shutil.rmtree(folder)
        return True
    return False


def _drop(store: CheckpointStore, first: int, checkpoints: list[Checkpoint]) -> bool:
    if checkpoints[0].id == first:
        return False
    with store.transaction():
        store.drop_before(first)
    store.release_space()
    return True


@contextmanager
def _free(folder: Path) -> Iterator[bool]:
    """Hold a project's lock if it is free; yield whether it was."""
    with locked(folder / _LOCK, wait=False) as free:
        yield free
