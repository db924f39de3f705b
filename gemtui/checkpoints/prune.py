"""Remove checkpoints that are too old or exceed a size limit."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from pathlib import Path

from gemtui.checkpoints.store import Checkpoint, open_store
from gemtui.checkpoints.usage import CheckpointsUsage, checkpoints_usage, project_folders
from gemtui.errors import CheckpointsUnreadable
from gemtui.files import folder_sizes, locked

_LOCK = "lock"
_ROUNDS = 12
"""The most steps in which a project's checkpoints are removed to save space.

Each step removes the older half of the checkpoints; the last one removes all that are left.
"""


def remove_old_checkpoints(
    checkpoints: Path,
    *,
    before: float,
    most_bytes: int,
    goes_on: Callable[[str], bool],
    needed: Collection[Path] = (),
) -> CheckpointsUsage:
    """Remove old checkpoints; return the number of projects pruned and bytes freed.

    * `checkpoints`: the folder that contains the checkpoints of all projects.
    * `before`: remove checkpoints older than this, in seconds since 1970.
    * `most_bytes`: the size limit for all projects together.
    * `goes_on`: returns whether the run with this id is still working. If so, the run's first
      checkpoint and all later ones of its project are kept.
    * `needed`: the folders of projects from which no checkpoint is removed.

    Projects whose checkpoints are in use or unreadable are skipped.
    """
    sizes = {
        folder: sum(folder_sizes(folder))
        for folder in project_folders(checkpoints)
        if folder not in needed
    }
    for folder in sizes:
        _prune_one(folder, goes_on, lambda checkpoint: checkpoint.time >= before)
    for folder in sorted(sizes, key=_used_last):
        for step in range(1, _ROUNDS + 1):
            if checkpoints_usage(checkpoints).bytes <= most_bytes:
                break
            newest = _newest(folder, step)
            if not _prune_one(folder, goes_on, partial(_is_among, newest)):
                break
    freed = [size - sum(folder_sizes(folder)) for folder, size in sizes.items()]
    freed = [size for size in freed if size > 0]
    return CheckpointsUsage(folder=checkpoints, projects=len(freed), bytes=sum(freed))


def _used_last(folder: Path) -> float:
    with suppress(OSError, CheckpointsUnreadable), open_store(folder) as store:
        return max(store.times().values(), default=0.0)
    return 0.0


def _newest(folder: Path, step: int) -> frozenset[int]:
    """Return the ids of the checkpoints to keep in a step: the newer half.

    `step`: the step's number. In the last step, which has the number `_ROUNDS`, nothing is kept.
    """
    with suppress(OSError, CheckpointsUnreadable), open_store(folder) as store:
        ids = sorted(store.times())
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
    with suppress(OSError, CheckpointsUnreadable), locked(folder / _LOCK, wait=False) as is_free:
        if not is_free:
            return False
        with open_store(folder) as store:
            if any(undo.plan is not None for undo in store.undos()):
                return False
            for at, checkpoint in enumerate(store.checkpoints()):
                if stays(checkpoint) or (checkpoint.run and goes_on(checkpoint.run)):
                    if at > 0:
                        with store.transaction():
                            store.drop_before(checkpoint.id)
                        store.release_space()
                    return at > 0
        shutil.rmtree(folder)
        return True
    return False
