"""Plan what an undo does to each file, without losing the user's later edits.

Each change to undo is reverted, newest first. If the file is still as the change left it, the
earlier state is restored exactly. If the file has been edited since, the edit is merged with the
reversal. If the edit and the change affect the same or adjacent lines, the file is left alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from typing import NamedTuple

from gemtui.checkpoints.merge import merge
from gemtui.checkpoints.store import (
    ABSENT,
    FILE,
    FOLDER,
    GONE,
    UNKEPT,
    CheckpointStore,
    FileState,
    Tree,
    WritingCall,
    digest_of,
    folders_of,
    is_folder_name,
)

DELETED = "deleted since"
"""The reason for leaving a file alone that somebody has deleted."""
_EDITED = "the same lines have been edited since"
_MADE_AGAIN = "recreated since"
_CREATED_AND_EDITED = "edited since it was created"
_REPLACED = "replaced since by something else"
_DROPPED = "its earlier contents are no longer stored"


class Action(StrEnum):
    """The actions that a plan can take on a file.

    RESTORE gives it an earlier state, REMOVE deletes it, MERGE reverts changes but keeps later
    edits, and KEEP leaves it alone.
    """

    RESTORE = "restore"
    REMOVE = "remove"
    MERGE = "merge"
    KEEP = "keep"


class Delta(NamedTuple):
    """A change to one file.

    `when`: seconds since 1970. `before`, `after`: the file's states before and after the change.
    `undo`: whether to revert this change.
    """

    when: float
    before: FileState
    after: FileState
    undo: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The planned change to one file, or to a folder's mode.

    * `path`: a folder's path ends with a slash.
    * `why`: why the file is left alone; "" if it is changed.
    * `target`: the file's state before the changes that are being undone.
    * `left`: its state right after these changes.
    * `now`: its current state, which includes later edits.
    * `result`: its state after this step.

    The contents of all these states are in the store.
    """

    path: bytes
    action: Action
    why: str = ""
    target: FileState
    left: FileState
    now: FileState
    result: FileState

    @property
    def implied(self) -> bool:
        """Whether the step only sets the mode of a folder that is missing at the moment.

        Restoring the files in such a folder creates it again, so users needn't be told about the
        step.
        """
        return is_folder_name(self.path) and self.now.kind == ABSENT

    def left_alone(self, why: str) -> Step:
        """Return the step, changed to leave the file alone for this reason."""
        return replace(self, action=Action.KEEP, why=why, result=self.now)


Histories = Mapping[bytes, Sequence[Delta]]
"""Maps each file or folder to its changes, oldest first."""


def histories(
    store: CheckpointStore, wanted: Callable[[WritingCall], bool]
) -> dict[bytes, list[Delta]]:
    """Map each file or folder to its changes, from the first one to undo onwards.

    `wanted`: returns whether to undo a call's changes. Files without changes to undo are left out.
    """
    chosen = {id for id, call in store.calls().items() if wanted(call)}
    times = store.times()
    deltas: dict[bytes, list[Delta]] = {}
    for id, change in chain(store.changes(by_calls=True), store.folder_changes()):
        undo = change.call in chosen
        if undo or change.path in deltas:
            delta = Delta(times.get(id, 0.0), change.before, change.after, undo)
            deltas.setdefault(change.path, []).append(delta)
    return deltas


def plan_steps(store: CheckpointStore, tree: Tree, changes: Histories) -> list[Step]:
    """Return the steps that undo some of the changes, sorted by path.

    `tree`: the files' current states. `changes`: each file's changes, of which those with `undo`
    set are reverted. Files that are already as they should be are left out.
    """
    steps = []
    for path, deltas in sorted(changes.items()):
        step = _step(store, path, tree.get(path, (GONE, None))[0], deltas)
        if step is not None:
            steps.append(step)
    while True:  # a file that is left alone may be in the way of another one
        changed = _without_losses(without_collisions(steps, tree), changes)
        if changed == steps:
            return steps
        steps = changed


def _step(
    store: CheckpointStore, path: bytes, now: FileState, deltas: Sequence[Delta]
) -> Step | None:
    groups = _groups(deltas)
    if not groups:
        return None
    (target, _), (_, left) = groups[0], groups[-1]
    step = Step(path=path, action=Action.RESTORE, target=target, left=left, now=now, result=now)
    result = now
    for before, after in reversed(groups):
        reverted = _revert(store, result, before, after)
        if isinstance(reverted, str):
            return step.left_alone(reverted)
        if reverted.content not in (before.content, result.content):
            step = replace(step, action=Action.MERGE)
        result = reverted
    if result == now or (is_folder_name(path) and result.kind == ABSENT):
        return None  # an empty folder is removed together with its last file
    if result.kind == ABSENT:
        return replace(step, action=Action.REMOVE, result=result)
    if result.kind != FOLDER and not store.has_contents(result.content):
        return step.left_alone(_DROPPED)
    return replace(step, result=result)


def _groups(deltas: Sequence[Delta]) -> list[tuple[FileState, FileState]]:
    """Return the changes to undo as (before, after) states.

    Changes that directly follow each other are joined into one pair.
    """
    groups: list[tuple[FileState, FileState]] = []
    follows = False
    for delta in deltas:
        if delta.undo:
            if follows and states_equal(groups[-1][1], delta.before):
                groups[-1] = groups[-1][0], delta.after
            else:
                groups.append((delta.before, delta.after))
        follows = delta.undo
    return [(before, after) for before, after in groups if before != after]


def _revert(
    store: CheckpointStore, now: FileState, before: FileState, after: FileState
) -> FileState | str:
    """Return the state `now` without the change from `before` to `after`.

    If the change can't be reverted, return the reason as a message.
    """
    if states_equal(now, before):
        return now
    if FOLDER in (before.kind, after.kind):  # a mode changed since is kept, as for files
        return before if now == after else now
    if before.kind == UNKEPT:
        return f"its earlier contents were not stored: {before.why}"
    if now.kind == UNKEPT and not states_equal(now, after):
        return f"it can't be compared: {now.why}"
    if states_equal(now, after):
        return before if before.mode >= 0 else with_mode(before, now)
    if {now.kind, before.kind, after.kind} == {FILE}:
        mode = before.mode if now.mode == after.mode and before.mode >= 0 else now.mode
        content = _merged(store, now.content, before.content, after.content)
        return _EDITED if content is None else FileState(FILE, mode, content)
    if now.kind == ABSENT:
        return DELETED
    if after.kind == ABSENT:
        return _MADE_AGAIN
    return _CREATED_AND_EDITED if before.kind == ABSENT else _REPLACED


def with_mode(state: FileState, like: FileState) -> FileState:
    """Return a file's state with the mode of `like`, or 0644 if that is unknown.

    Use this for states whose own mode is unknown. Links are returned unchanged.
    """
    mode = like.mode if like.kind == FILE and like.mode >= 0 else 0o644
    return state._replace(mode=mode) if state.kind == FILE else state


def states_equal(one: FileState, other: FileState) -> bool:
    """Return whether two states are equal, ignoring unknown modes."""
    if one == other:
        return True
    unknown = one.mode < 0 or other.mode < 0
    return unknown and one.kind == other.kind and one.content == other.content


def _merged(store: CheckpointStore, now: str, before: str, after: str) -> str | None:
    if now == after:
        return before
    if before == after or now == before:
        return now
    try:
        merged = merge(store.content(after), store.content(now), store.content(before))
    except KeyError:
        return None
    return None if merged is None else store.keep(merged)


def without_collisions(steps: Iterable[Step], tree: Tree) -> list[Step]:
    """Return the steps, with KEEP for files whose restoration would replace something.

    For example, there may now be a folder in a deleted file's place. `tree`: the files' current
    states.
    """
    checked = list(steps)
    removed = {step.path for step in checked if step.action is Action.REMOVE}
    files = {path for path in tree if path not in removed and not is_folder_name(path)}
    folders = {folder for path in files for folder in folders_of(path)}
    for at, step in enumerate(checked):
        if step.action in (Action.RESTORE, Action.MERGE):
            if step.path in folders:
                checked[at] = step.left_alone("a folder that holds other files is in its place")
            elif not files.isdisjoint(folders_of(step.path)):
                checked[at] = step.left_alone("something else is now where its folder was")
    return checked


def _without_losses(steps: Sequence[Step], changes: Histories) -> list[Step]:
    """Return the steps, but leave files alone that may be the only copy of a lost file.

    If one of the changes to undo renamed a file that can't be restored, undoing that change would
    delete the renamed file, which is the only copy. A file counts as the renamed one if it had the
    lost contents, or was created when the lost file was removed.
    """
    lost_by_content = dict[str, bytes]()
    lost_by_time = dict[float, bytes]()
    for step in steps:
        if step.action is Action.KEEP:
            for delta in changes[step.path]:
                if delta.undo and delta.before.kind == FILE:
                    lost_by_content[delta.before.content] = step.path
                if delta.undo and delta.after.kind == ABSENT:
                    lost_by_time[delta.when] = step.path
    lost_by_content.pop(digest_of(b""), None)
    safe = []
    for step in steps:
        sources = list[bytes | None]()
        if step.action is not Action.KEEP and not is_folder_name(step.path):
            undone = [delta for delta in changes[step.path] if delta.undo]
            sources += [lost_by_content.get(delta.after.content) for delta in undone]
            created = [delta for delta in undone if delta.before.kind == ABSENT]
            sources += [lost_by_time.get(delta.when) for delta in created]
        for source in filter(None, sources):
            name = os.fsdecode(source)
            why = f"it may contain files that were in {name}, which is left alone"
            step = step.left_alone(why)
            break
        safe.append(step)
    return safe
