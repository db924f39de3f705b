"""Restore a project's files to the state before a prompt, or redo undone changes.

The plan is saved in the store before the first file is changed. If this process is killed, the next
process that opens the store completes the plan, so no file is left half-written.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import orjson

from gemtui.checkpoints.plan import Action, Delta, Histories, Step, histories, plan_steps
from gemtui.checkpoints.project_files import TOP, ProjectFiles
from gemtui.checkpoints.store import (
    ABSENT,
    FILE,
    FOLDER,
    GONE,
    UNKNOWN,
    CheckpointStore,
    FileState,
    Reason,
    Undo,
    WritingCall,
    decode,
    has_checkpoints,
    is_in_use,
    only_one,
    open_store,
)
from gemtui.checkpoints.take import Before, Taker, open_taker
from gemtui.checkpoints.tree import is_tracked_name
from gemtui.errors import UndoError, reason_of


def made_by_user(call: WritingCall) -> bool:
    """Return whether a recorded call stands for a change the user made with gemtui.

    Such changes, which are undos, redos, reviews and applied worktrees, are recorded as calls.
    """
    return call.tool in (UNDO, REDO, REVIEW, APPLY) and not call.run


class RecordedChange(NamedTuple):
    """A file tool's change that is in the session's record, but in no checkpoint.

    `when`: seconds since 1970. `before`, `after`: contents; None if the file did not exist. `tool`,
    `use`: the tool's name and the call's id, as Gemini CLI names them.
    """

    path: bytes
    when: float
    before: bytes | None
    after: bytes | None
    tool: str = ""
    use: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoTarget:
    """The point to go back to: right before prompt number `prompt` of a session.

    `since`: when the prompt was sent, in seconds since 1970. `uses`: Gemini CLI's ids for the
    session's calls since then; if the session is a fork, this includes calls inherited from its
    parent. `recorded`: changes that no checkpoint covers.
    """

    session: str
    prompt: int
    since: float
    uses: frozenset[str] = frozenset()
    recorded: Sequence[RecordedChange] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesUndone:
    """The steps of an undo or redo that were carried out or, in a dry run, planned.

    `notes`: what the user should know, one sentence each. `undo`: the id of the undo or redo; None
    for a dry run. `checkpoint`: the id of the checkpoint taken beforehand; None for a dry run.
    """

    session: str
    prompt: int
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()
    undo: int | None = None
    checkpoint: int | None = None

    def paths(self, action: Action) -> list[bytes]:
        """Return the files to which the plan applies this action."""
        return [step.path for step in self.steps if step.action is action]


def covered_calls(store: CheckpointStore) -> frozenset[str]:
    """Return Gemini CLI's ids of the calls whose changes are all in checkpoints.

    A call is left out if the checkpoint before it was incomplete, or if the former state of one of
    its files is unknown.
    """
    calls = store.calls()
    unknown = {each.call for _, each in store.changes(by_calls=True) if each.before == UNKNOWN}
    return frozenset(call.use for id, call in calls.items() if call.sure and id not in unknown)


class Project:
    """Undoes and redoes changes to one project.

    Created by `open_project`, which locks the project's checkpoints while the object is in use.
    """

    def __init__(self, root: Path, store: CheckpointStore, taker: Taker) -> None:
        self.root, self.store, self.taker = root, store, taker
        self._settled: list[str] = []

    def undo(self, target: UndoTarget, *, paths: Sequence[bytes] | None = None, dry_run: bool = False) -> FilesUndone:
        """Undo the changes since `target`.

        `paths`: undo only changes to these files, and to files under these folders; None means all.
        `dry_run`: only return the planned steps. Raises OSError, CheckpointsUnreadable.
        """
        lineage = self.store.lineage(target.session)
        recorded = [each for each in target.recorded if is_tracked_name(each.path)]

        def wanted(call: WritingCall) -> bool:
            mine = call.session in lineage and call.began >= target.since
            return mine or call.use in target.uses

        def changes() -> Histories:
            return _with_records(self.store, histories(self.store, wanted), recorded)

        also = {each.path: UNKNOWN for each in recorded}
        return self.change(
            UNDO, target.session, self._planned(changes, paths), also=also, prompt=target.prompt,
            dry_run=dry_run,
        )  # fmt: skip

    def redo(self, *, paths: Sequence[bytes] | None = None, dry_run: bool = False) -> FilesUndone:
        """Reverse the newest undo that has not been reversed yet.

        Raises UndoError if there is none. Arguments and other errors are the same as for `undo`.
        """
        undo = self.newest_undo()
        if undo is None:
            raise UndoError(" ".join((*self._settled, "nothing to redo in this folder")))

        def changes() -> Histories:
            return histories(self.store, lambda call: call.id == undo.call)

        return self.change(
            REDO, undo.session, self._planned(changes, paths), prompt=undo.prompt, dry_run=dry_run,
            redone=undo,
        )  # fmt: skip

    def newest_undo(self) -> Undo | None:
        """Return the undo that `redo` would reverse; None if there is none."""
        open_ones = (u for u in self.store.undos() if u.redoes is None and not u.undone)
        return max(open_ones, key=lambda undo: undo.id, default=None)

    def _planned(self, changes: Callable[[], Histories], paths: Sequence[bytes] | None) -> Callable[[], list[Step]]:
        def planned() -> list[Step]:
            chosen = _chosen(changes(), paths)
            return plan_steps(self.store, self.store.states_around(chosen), chosen)

        return planned

    def change(
        self,
        tool: str,
        session: str,
        planned: Callable[[], list[Step]],
        *,
        also: Mapping[bytes, Before] | None = None,
        prompt: int = 0,
        dry_run: bool = False,
        redone: Undo | None = None,
    ) -> FilesUndone:
        """Take a checkpoint, then carry out the planned steps, which `redo` can reverse.

        * `tool`: the tool name under which to record the change.
        * `planned`: returns the steps; called after the checkpoint has been taken.
        * `also`: files to include although git ignores them, with their former states.
        * `prompt`: the number of the prompt to go back to; 0 if there is none.
        * `redone`: the undo that this change reverses.
        * `dry_run`: only return the planned steps. A checkpoint is still taken if files have
          changed.

        Raises OSError, CheckpointsUnreadable.
        """
        reason = Reason.MANUAL if dry_run else Reason.UNDO
        taken = self.taker.take(reason, session=session, also=also or {}, always=not dry_run)
        with self.store.transaction():
            steps = planned()
            tasks = _tasks_of(steps)
            notes = (*self._settled, *(() if taken is None else taken.notes))
            steps = [step for step in steps if not step.implied]
            told = FilesUndone(session=session, prompt=prompt, steps=tuple(steps), notes=notes)
            if dry_run or taken is None:
                return told
            call = self._call(session, tool, taken.id)
            id = self.store.begin_undo(
                taken.time, session, prompt, taken.id, call, _encode_tasks(tasks), None if redone is None else redone.id
            )
        (undo,) = (each for each in self.store.undos() if each.id == id)
        done = self._finish(undo)
        return FilesUndone(
            session=session,
            prompt=prompt,
            steps=tuple(_after(step, done) for step in steps),
            notes=notes,
            undo=id,
            checkpoint=taken.id,
        )

    def _call(self, session: str, tool: str, number: int) -> int:
        """Store an undo or redo as a call, to which its changes belong; return the id.

        `number`: the id of the checkpoint taken beforehand, which makes the call's name unique.
        """
        now = time.time()
        call = WritingCall(run="", session=session, use=f"{tool} {number}", tool=tool, began=now, ended=now)
        return self.store.save_call(call)

    def _finish(self, undo: Undo, *, interrupted: bool = False) -> _Applied:
        """Carry out an undo's tasks, take a checkpoint and mark the undo as complete.

        `interrupted`: note in the checkpoint that the undo had been interrupted.
        """
        tasks = _decode_tasks(undo.plan or "[]")
        with ProjectFiles(self.root) as files:
            done = _apply(self.store, files, tasks, undo.id)
        owned = dict.fromkeys(done.paths, undo.call)
        also = dict.fromkeys(done.paths, GONE)
        notes = tuple(_settled_words(undo, done)) if interrupted else ()
        self._settled += notes
        self.taker.take(Reason.UNDO, session=undo.session, owned=owned, also=also, notes=notes)
        with self.store.transaction():
            self.store.end_undo(undo)
        return done

    def finish_interrupted(self) -> tuple[str, ...]:
        """Complete interrupted undos; return notes about them.

        Notes about undos that this object completed earlier are included. The next change's result
        contains the notes as well. Raises OSError.
        """
        for undo in [each for each in self.store.undos() if each.plan is not None]:
            self._finish(undo, interrupted=True)
        return tuple(self._settled)


@contextmanager
def open_project(folder: Path, root: Path, without: tuple[Path, ...] = ()) -> Iterator[Project]:
    """Lock a project's checkpoints, complete interrupted undos and yield a Project.

    `folder`: the folder of the checkpoints. `root`: the project's folder. `without`: folders that
    are never included. Raises OSError, CheckpointsUnreadable.
    """
    with only_one(folder), open_taker(folder, root, without) as (store, taker):
        project = Project(root, store, taker)
        project.finish_interrupted()
        yield project


def interrupted_undo(folder: Path) -> str | None:
    """Return which kind of change was interrupted and never completed.

    This is "undo", "redo", or "revert"; None if there is none, or if another process holds the lock
    and may be completing it. `folder`: the folder of a project's checkpoints; it may not exist.
    Raises OSError, CheckpointsUnreadable.
    """
    if not has_checkpoints(folder):
        return None
    with open_store(folder) as store:
        found = [each for each in store.undos() if each.plan is not None]
    if not found or is_in_use(folder):
        return None
    return _kind_of(found[-1])


def _chosen(changes: Histories, paths: Sequence[bytes] | None) -> Histories:
    if paths is None:
        return changes
    return {
        path: deltas
        for path, deltas in changes.items()
        if any(each in (b"", path) or path.startswith(each + b"/") for each in paths)
    }


def _with_records(
    store: CheckpointStore, known: dict[bytes, list[Delta]], recorded: Sequence[RecordedChange]
) -> Histories:
    """Merge changes from the session's record into those from checkpoints, by time.

    `known`: the changes from checkpoints; this mapping is modified and returned. If it and
    `recorded` share a file, those of its changes in `known` that lack a former state are dropped.
    """
    for path in {each.path for each in recorded} & known.keys():
        known[path] = [delta for delta in known[path] if delta.before != UNKNOWN]
    for each in recorded:
        delta = Delta(each.when, _state(store, each.before), _state(store, each.after), undo=True)
        known.setdefault(each.path, []).append(delta)
        known[each.path].sort(key=lambda delta: delta.when)
    return known


def _state(store: CheckpointStore, content: bytes | None) -> FileState:
    """Return the state of a file with these contents and an unknown mode.

    `content`: None if the file is missing.
    """
    return GONE if content is None else FileState(FILE, -1, store.keep(content))


def _kind_of(undo: Undo) -> str:
    return "redo" if undo.redoes is not None else "undo" if undo.prompt else "revert"


def _settled_words(undo: Undo, done: _Applied) -> Iterator[str]:
    """Yield notes for the user about completing an interrupted undo, redo or review."""
    yield f"First, an interrupted {_kind_of(undo)} in this folder was completed."
    for path, why in done.failed.items():
        yield f"That {_kind_of(undo)} left {os.fsdecode(path)} alone: {why}"


def _after(step: Step, done: _Applied) -> Step:
    why = done.failed.get(step.path)
    if why is None or step.action is Action.KEEP:
        return step
    return Step(
        path=step.path, action=Action.KEEP, why=why, target=step.target, left=step.left,
        now=step.now, result=step.now,
    )  # fmt: skip


# --- carrying out a plan --------------------------------------------------------------------------

_MEANWHILE = "has just changed"
_WRITABLE = 0o700
"""The permission bits that the owner of a folder needs to change the files in it."""


class _Task(NamedTuple):
    """A change to one file or folder.

    `now`: the state it had when the undo was planned; if it has changed since, the task fails.
    `result`: the state to give it.
    """

    path: bytes
    now: FileState
    result: FileState


class _Applied(NamedTuple):
    """The result of carrying out tasks.

    `paths`: the files that are now as planned. `failed`: maps each of the other files to the reason
    why it isn't.
    """

    paths: frozenset[bytes]
    failed: dict[bytes, str]


def _tasks_of(steps: Iterable[Step]) -> list[_Task]:
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
    return [_Task(step.path, step.now, step.result) for step in (*opened, *removed, *others, *closed)]


def _opens(step: Step) -> bool:
    """Return whether a step gives a folder the permissions to change files in it."""
    return step.now.kind == FOLDER and bool(step.result.mode & ~step.now.mode & _WRITABLE)


def _encode_tasks(tasks: Iterable[_Task]) -> str:
    """Serialise tasks to a string, which `_decode_tasks` parses."""
    return orjson.dumps([[task.path.hex(), task.now.encode(), task.result.encode()] for task in tasks]).decode()


def _decode_tasks(text: str) -> list[_Task]:
    """Parse the tasks that `_encode_tasks` serialised. Raises ValueError."""
    return [_Task(bytes.fromhex(path), decode(now), decode(result)) for path, now, result in orjson.loads(text)]


def _apply(store: CheckpointStore, files: ProjectFiles, tasks: Sequence[_Task], undo: int) -> _Applied:
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
            failed[task.path] = reason_of(error)
        else:
            done.add(task.path)
    return _Applied(frozenset(done), failed)


class _ChangedMeanwhile(Exception):
    """Raised if a file is no longer in the state that the plan found."""


def _do(store: CheckpointStore, files: ProjectFiles, task: _Task, spare: bytes) -> None:
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


def _set_mode(files: ProjectFiles, task: _Task) -> None:
    """Give a folder its planned mode; do nothing if the folder is missing.

    Raises _ChangedMeanwhile, OSError.
    """
    state = files.folder_state(task.path)
    if state in (GONE, task.result):
        return
    if task.now not in (GONE, state):
        raise _ChangedMeanwhile
    files.set_folder_mode(task.path, task.result.mode)


UNDO, REDO, REVIEW, APPLY = "undo", "redo", "review", "worktree"
"""The tool names under which changes made by gemtui itself are recorded.

They are recorded as calls, so that they can be undone as well. APPLY is for applied worktrees.
"""
