"""Carry out an undo's plan; even after a crash, no file is left half-written.

The plan is saved in the store before the first file is changed. If this process is killed, the next
process that opens the store completes the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import orjson

from gemtui.checkpoints.folders import TOP
from gemtui.checkpoints.plan import Action, Step
from gemtui.checkpoints.project_files import ProjectFiles
from gemtui.checkpoints.states import ABSENT, FOLDER, GONE, FileState, decode
from gemtui.checkpoints.store import CheckpointStore

_MEANWHILE = "has just changed"
_WRITABLE = 0o700
"""The permission bits that the owner of a folder needs to change the files in it."""


class Task(NamedTuple):
    """A change to one file or folder.

    `now`: the state it had when the undo was planned; if it has changed since, the task fails.
    `result`: the state to give it.
    """

    path: bytes
    now: FileState
    result: FileState


class Applied(NamedTuple):
    """The result of carrying out tasks.

    `paths`: the files that are now as planned. `failed`: maps each of the other files to the reason
    why it isn't.
    """

    paths: frozenset[bytes]
    failed: dict[bytes, str]


def tasks_of(steps: Iterable[Step]) -> list[Task]:
    """Return a plan's tasks, sorted so that they can be carried out in this order.

    Folders are made writable first and read-only last.
    """
    wanted = [step for step in steps if step.action is not Action.KEEP]
    removed = [step for step in wanted if step.result.kind == ABSENT]
    folders = [step for step in wanted if step.result.kind == FOLDER]
    others = [step for step in wanted if step.result.kind not in (ABSENT, FOLDER)]
    folders.sort(key=lambda step: (step.path != TOP, step.path))
    opened = [step for step in folders if _opens(step)]
    closed = [step for step in reversed(folders) if not _opens(step)]
    removed.sort(key=lambda step: step.path, reverse=True)
    return [Task(step.path, step.now, step.result) for step in (*opened, *removed, *others, *closed)]


def _opens(step: Step) -> bool:
    """Return whether a step gives a folder the permissions to change files in it."""
    return step.now.kind == FOLDER and bool(step.result.mode & ~step.now.mode & _WRITABLE)


def encode_tasks(tasks: Iterable[Task]) -> str:
    """Serialise tasks to a string, which `decode_tasks` parses."""
    return orjson.dumps([[task.path.hex(), task.now.encode(), task.result.encode()] for task in tasks]).decode()


def decode_tasks(text: str) -> list[Task]:
    """Parse the tasks that `encode_tasks` serialised. Raises ValueError."""
    return [Task(bytes.fromhex(path), decode(now), decode(result)) for path, now, result in orjson.loads(text)]


def apply(store: CheckpointStore, files: ProjectFiles, tasks: Sequence[Task], undo: int) -> Applied:
    """Carry out the tasks of an undo and return which ones succeeded.

    An interrupted undo is completed by calling this again with the same tasks. Files that have
    changed since the plan was made are left alone. `undo`: the undo's id, which makes the names of
    temporary files unique.
    """
    done, failed = set[bytes](), dict[bytes, str]()
    for at, task in enumerate(tasks):
        spare = b".gemtui-undo-%d-%d" % (undo, at)
        files.remove_spare(task.path, spare)
        try:
            _do(store, files, task, spare)
        except KeyError:
            failed[task.path] = "its earlier contents are corrupt"
        except _ChangedMeanwhile:
            failed[task.path] = _MEANWHILE
        except IsADirectoryError:
            failed[task.path] = "a folder is now in its place"
        except OSError as error:
            failed[task.path] = error.strerror or str(error)
        else:
            done.add(task.path)
    return Applied(frozenset(done), failed)


class _ChangedMeanwhile(Exception):
    """Raised if a file is no longer in the state that the plan found."""


def _do(store: CheckpointStore, files: ProjectFiles, task: Task, spare: bytes) -> None:
    if task.result.kind == FOLDER:
        _set_mode(files, task)
        return
    state, _ = files.state(task.path)
    if state == task.result:
        if state.kind == ABSENT:  # an interrupted undo may have left empty folders
            files.remove_empty(task.path)
        return
    if state != task.now:
        raise _ChangedMeanwhile
    if task.result.kind == ABSENT:
        files.remove(task.path)
    else:
        files.write(task.path, task.result, store.content(task.result.content), spare)


def _set_mode(files: ProjectFiles, task: Task) -> None:
    """Give a folder its planned mode; do nothing if the folder is missing.

    Raises _ChangedMeanwhile, OSError.
    """
    state = files.folder_state(task.path)
    if state in (GONE, task.result):
        return
    if task.now not in (GONE, state):
        raise _ChangedMeanwhile
    files.set_folder_mode(task.path, task.result.mode)
