"""Restore a project's files to the state before a prompt, or redo undone changes.

The plan is saved in the store before the first file is changed. If this process is killed, the next
process that changes files there completes the plan, so no file is left half-written. A preview does
all of this in a transaction that is rolled back, and writes no files.
"""

from __future__ import annotations

import os
import shlex
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from errno import EACCES
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import NamedTuple, TypeVar

import orjson

from gemtui import system
from gemtui.checkpoints.plan import DELETED, Action, Delta, Histories, Step, histories, plan_steps
from gemtui.checkpoints.project_files import TOP, ProjectFiles
from gemtui.checkpoints.store import (
    ABSENT,
    FILE,
    FOLDER,
    GONE,
    LINK,
    UNKEPT,
    UNKNOWN,
    UNTRUSTED,
    CheckpointStore,
    FileChange,
    FileState,
    Reason,
    Tree,
    Undo,
    WritingCall,
    copy_store,
    decode,
    folders_of,
    has_checkpoints,
    is_folder_name,
    is_in_use,
    is_unfinished,
    only_one,
    open_store,
    recorded_state,
)
from gemtui.checkpoints.take import Before, Taker, open_taker
from gemtui.checkpoints.tree import TOO_MANY, TRACKED, is_tracked_name
from gemtui.checkpoints.uncovered import decode_uncovered, uncovered_notes
from gemtui.errors import CheckpointsUnreadable, UndoError, reason_of
from gemtui.files import is_private
from gemtui.interrupts import StopRequest
from gemtui.jsonout import fields

ValueT = TypeVar("ValueT")
_PREVIEW = "gemtui-preview-"


def made_by_user(call: WritingCall) -> bool:
    """Return whether a recorded call is a change that the user made with gemtui.

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


class Interruption(NamedTuple):
    """The progress of a change to a project's files when a signal stopped it.

    `done`, `left`: how many files are as planned, and how many are not yet. `finish`: the command
    that finishes the change; "" if nothing is left.
    """

    done: int
    left: int
    finish: str

    def to_dict(self) -> dict[str, object]:
        """Return this as JSON values."""
        return self._asdict() | {"finish": self.finish or None}

    @property
    def words(self) -> str:
        """A sentence for the user about it."""
        if not self.left:
            return "interrupted, but everything was finished before"
        return (
            f"interrupted after {self.done:,} of {self.done + self.left:,} files; to finish, "
            f"run: {self.finish}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesUndone:
    """The steps of an undo or redo that were carried out or, in a preview, planned.

    * `steps`: what was done to each file, including what completed an interrupted change before.
    * `notes`: what the user should know, one sentence each.
    * `undo`: the id of the undo or redo; None if it had nothing to do, and for a preview.
    * `checkpoint`: the id of the checkpoint taken beforehand; None in the same cases.
    * `covered`: whether nothing that could have changed is missing from the checkpoints.
    * `count`: how many files and folders the change itself affects, without an interrupted one.
    * `interrupted`: how far it came if a signal stopped it.
    * `contents`: file contents of the steps that are not in the store, by digest.
    """

    session: str
    prompt: int
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()
    undo: int | None = None
    checkpoint: int | None = None
    covered: bool = True
    count: int = 0
    interrupted: Interruption | None = None
    contents: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether, as far as is known, everything has been done."""
        kept = any(step.action is Action.KEEP for step in self.steps)
        return self.covered and self.interrupted is None and not kept

    def paths(self, action: Action) -> list[bytes]:
        """Return the files to which the plan applies this action."""
        return [step.path for step in self.steps if step.action is action]


class UndoInterrupted(UndoError):
    """Raised if a signal stopped a change to a project's files. `files`: what was done."""

    def __init__(self, files: FilesUndone) -> None:
        super().__init__("interrupted")
        self.files = files


def covered_calls(store: CheckpointStore) -> frozenset[str]:
    """Return Gemini CLI's ids of the calls whose changes are all in checkpoints.

    A call is left out if the checkpoint before it was incomplete, or if the former state of one of
    its files is unknown.
    """
    calls = store.calls()
    changes = store.changes(by_calls=True)
    unknown = {change.call for _, change in changes if change.before == UNKNOWN}
    return frozenset(call.use for id, call in calls.items() if call.sure and id not in unknown)


class _Completed(NamedTuple):
    """An interrupted change that has been completed, or would be."""

    kind: str
    session: str
    prompt: int
    steps: tuple[Step, ...]


class Project:
    """Undoes and redoes changes to one project.

    Created by `open_project`, which locks the project's checkpoints while the object is in use.
    `stop`: says when to stop between two files. `is_preview`: only plan changes; the caller rolls
    back everything that is written to the store.
    """

    def __init__(
        self,
        root: Path,
        store: CheckpointStore,
        taker: Taker,
        *,
        stop: StopRequest | None = None,
        is_preview: bool = False,
    ) -> None:
        self.root, self.store, self.taker = root, store, taker
        self.is_preview = is_preview
        self._stop = StopRequest() if stop is None else stop
        self._completed = list[_Completed]()
        self._settled: list[str] = []

    def undo(
        self, target: UndoTarget, *, paths: Sequence[bytes] | None = None, command: str = ""
    ) -> FilesUndone:
        """Undo the changes since `target`.

        `paths`: undo only changes to these files, and to files under these folders; None means all.
        `command`: the shell command that finishes the undo if it is interrupted. Raises OSError,
        CheckpointsUnreadable, UndoInterrupted.
        """
        lineage = self.store.lineage(target.session)
        recorded = [change for change in target.recorded if is_tracked_name(change.path)]

        def wanted(call: WritingCall) -> bool:
            own = call.session in lineage and call.began >= target.since
            return own or call.use in target.uses

        def planned() -> list[Step]:
            changes = _with_records(self.store, histories(self.store, wanted), recorded)
            return self._steps(_chosen(changes, paths))

        also = {change.path: UNKNOWN for change in recorded}
        calls = [call for call in self.store.calls().values() if wanted(call)]
        missing = uncovered_notes_of(self.store, self.taker, calls, paths)
        result = self.change(
            UNDO, target.session, planned, also=also, prompt=target.prompt, command=command
        )
        return replace(result, notes=(*result.notes, *missing), covered=not missing)

    def redo(self, *, paths: Sequence[bytes] | None = None, command: str = "") -> FilesUndone:
        """Reverse the newest undo that can still be reversed, at least in part.

        If a redo had been interrupted, only that one is completed. Raises UndoError if there is
        nothing to redo. Arguments and other errors are the same as for `undo`.
        """
        left_alone = None
        for undo in () if self.completed(REDO) else reversed(self.store.undos()):
            if undo.redoes is not None or undo.undone:
                continue
            planned = partial(self._steps_back, undo, paths)
            result = self.change(
                REDO, undo.session, planned, prompt=undo.prompt, redone=undo, command=command
            )
            if result.count:
                return result
            if left_alone is None and result.paths(Action.KEEP):
                left_alone = result
        if left_alone is not None:
            return left_alone
        if not self._completed:
            raise UndoError("nothing to redo in this folder")
        last = self._completed[-1]
        return FilesUndone(
            session=last.session,
            prompt=last.prompt,
            steps=tuple(self._with_completed(())),
            notes=tuple(self._settled),
        )

    def _steps_back(self, undo: Undo, paths: Sequence[bytes] | None) -> list[Step]:
        return self._steps(_chosen(self._rest_of(undo), paths))

    def _rest_of(self, undo: Undo) -> Histories:
        """Return the changes of an undo that no redo has reversed."""
        undos = self.store.undos()
        redos = {redo.call for redo in undos if redo.redoes == undo.id and redo.plan is None}
        changes = chain(self.store.changes(by_calls=True), self.store.folder_changes())
        redone = {change.path for _, change in changes if change.call in redos}
        all_changes = histories(self.store, lambda call: call.id == undo.call)
        return {path: deltas for path, deltas in all_changes.items() if path not in redone}

    def _steps(self, changes: Histories) -> list[Step]:
        steps = plan_steps(self.store, self.store.states_around(changes), changes)
        with ProjectFiles(self.root) as files:
            return [
                step if step.path in self.taker.foreseen else _unless_blocked(files, step, steps)
                for step in steps
            ]

    def completed(self, tool: str) -> bool:
        """Return whether an interrupted change of this kind was completed by this object."""
        return any(completed.kind == _KINDS[tool] for completed in self._completed)

    def change(
        self,
        tool: str,
        session: str,
        planned: Callable[[], list[Step]],
        *,
        also: Mapping[bytes, Before] | None = None,
        prompt: int = 0,
        redone: Undo | None = None,
        command: str = "",
    ) -> FilesUndone:
        """Take a checkpoint, then carry out the planned steps, which `redo` can reverse.

        If there is nothing to do, nothing is recorded.

        * `tool`: the tool name under which to record the change.
        * `planned`: returns the steps; called after the checkpoint has been taken.
        * `also`: files to include although git ignores them, with their former states.
        * `prompt`: the number of the prompt to go back to; 0 if there is none.
        * `redone`: the undo that this change reverses.
        * `command`: the shell command that finishes the change if it is interrupted.

        Raises OSError, CheckpointsUnreadable, UndoInterrupted.
        """
        with self.store.attempt() as keep:
            taken = self.taker.take(
                Reason.UNDO, session=session, also=also or {}, renews_index=False
            )
            assert taken is not None
            steps = planned()
            tasks = _tasks_of(steps)
            steps = [step for step in steps if not step.implied]
            planned_only = FilesUndone(
                session=session,
                prompt=prompt,
                steps=tuple(self._with_completed(steps)),
                notes=(*self._settled, *taken.notes),
                count=len(tasks),
            )
            if self.is_preview or not tasks:
                return replace(planned_only, contents=self.store.added_contents(_digests_of(steps)))
            now = time.time()
            call = WritingCall(
                run="",
                session=session,
                use=f"{tool} {taken.id}",
                tool=tool,
                command=command or None,
                began=now,
                ended=now,
            )
            id = self.store.begin_undo(
                taken.time,
                session,
                prompt,
                taken.id,
                self.store.save_call(call),
                _encode_tasks(tasks),
                None if redone is None else redone.id,
            )
            self._stop.begin_changes()
            keep()
        (undo,) = (undo for undo in self.store.undos() if undo.id == id)
        planned_files = replace(planned_only, undo=id, checkpoint=taken.id)
        return _as_applied(planned_files, self._finish(undo, planned_files))

    def _with_completed(self, steps: Iterable[Step]) -> list[Step]:
        """Return the steps together with those that completed an interrupted change before them.

        Files that end up as they are now are left out.
        """
        earlier = {step.path: step for change in self._completed for step in change.steps}
        joined = list[Step]()
        for step in steps:
            if step.action is not Action.KEEP and step.path in earlier:
                first = earlier.pop(step.path)
                if first.now == step.result:
                    continue
                step = replace(first, action=step.action, result=step.result, why="")
            joined.append(step)
        return sorted([*earlier.values(), *joined], key=lambda step: step.path)

    def _finish(self, undo: Undo, files: FilesUndone, *, note: str = "") -> _Applied:
        """Carry out an undo's tasks, take a checkpoint and mark the undo as complete.

        `files`: the planned result. `note`: a note for the checkpoint if the undo had been
        interrupted. Raises UndoInterrupted.
        """
        tasks = _decode_tasks(undo.plan or "[]")
        self._stop.begin_changes()
        with ProjectFiles(self.root) as opened:
            applied = _apply(self.store, opened, tasks, undo.id, self._stop)
        left = len(applied.left)
        if left:
            interrupted = Interruption(len(tasks) - left, left, _command_of(self.store, undo))
            self._stop.report = interrupted.words
            raise UndoInterrupted(replace(_as_applied(files, applied), interrupted=interrupted))
        owned = dict.fromkeys(applied.paths, undo.call)
        also = dict.fromkeys(applied.paths, GONE)
        notes = []
        if note:
            notes = [note, *_left_alone(_kind_of(self.store, undo), applied.failed.items())]
        self.taker.take(Reason.UNDO, session=undo.session, owned=owned, also=also, notes=notes)
        with self.store.transaction():
            self._end(undo)
        return applied

    def _end(self, undo: Undo) -> None:
        self.store.end_undo(undo, redone=False)
        for redone in self.store.undos():
            if redone.id == undo.redoes:
                steps = self._steps(self._rest_of(redone))
                self.store.end_undo(undo, redone=all(step.implied for step in steps))

    # --- interrupted changes -------------------------------------------------------------------

    def finish_interrupted(self) -> tuple[str, ...]:
        """Complete interrupted changes, or plan to; return notes about them.

        Notes about changes that this object completed earlier are included. The next change's
        result contains the notes and steps as well. Raises OSError, UndoInterrupted.
        """
        for undo in self.store.undos():
            if undo.plan is None:
                continue
            kind = _kind_of(self.store, undo)
            steps = _steps_left(self.root, undo)
            note = f"First, an interrupted {kind} in this folder was completed."
            files = FilesUndone(
                session=undo.session, prompt=undo.prompt, steps=steps, notes=tuple(self._settled)
            )
            if self.is_preview:
                note = f"First, an interrupted {kind} in this folder will be completed."
                self._foresee(undo, steps)
            else:
                files = _as_applied(files, self._finish(undo, files, note=note))
            self._completed.append(_Completed(kind, undo.session, undo.prompt, files.steps))
            self._settled.append(note)
            self._settled += _left_alone(
                kind, ((step.path, step.why) for step in files.steps if step.action is Action.KEEP)
            )
        return tuple(self._settled)

    def _foresee(self, undo: Undo, steps: Iterable[Step]) -> None:
        """Record in the store, for a preview, the states of files after completing an undo."""
        paths = [task.path for task in _decode_tasks(undo.plan or "[]")]
        kept = {step.path for step in steps if step.action is Action.KEEP}
        owned = {path: undo.call for path in paths if path not in kept}
        self.taker.take(
            Reason.UNDO,
            session=undo.session,
            owned=owned,
            also=dict.fromkeys(paths, GONE),
            renews_index=False,
        )
        files: Tree = {}
        folders: dict[bytes, int | None] = {}
        changes = []
        for step in steps:
            if step.action is Action.KEEP:
                continue
            path, result = step.path, step.result
            if is_folder_name(path):
                folders[path] = result.mode
            else:
                files[path] = result, UNTRUSTED
            changes.append(FileChange(path=path, before=step.now, after=result, call=undo.call))
        self.store.set_tree(files, files)
        self.store.set_folders(folders)
        self.taker.foreseen |= files.keys() | folders.keys()
        self.store.add_checkpoint(time.time(), Reason.UNDO, "", undo.session, (), changes)
        self._end(undo)


def uncovered_notes_of(
    store: CheckpointStore,
    taker: Taker,
    calls: Iterable[WritingCall],
    paths: Sequence[bytes] | None = None,
) -> list[str]:
    """Return notes about what some calls may have changed although checkpoints don't cover it.

    Only calls that may write any file count. `paths`: as in `Project.undo`.
    """
    starts = [call.began for call in calls if call.path is None and not made_by_user(call)]
    if not starts:
        return []
    began = min(starts)
    notes = set[str]()
    for checkpoint in store.checkpoints():
        if checkpoint.time >= began:
            notes.update(checkpoint.notes)
    limits = sorted(notes & {TOO_MANY, TRACKED})
    recorded = store.uncovered_before(began)
    if recorded is None:
        return [*limits, _NOT_RECORDED]
    before = decode_uncovered(recorded)
    now = taker.uncovered()
    if now is None:
        return sorted({*limits, TOO_MANY})
    return [*limits, *uncovered_notes(_chosen(before, paths), _chosen(now, paths))]


_NOT_RECORDED = (
    "It is unknown whether commands changed what checkpoints don't cover, such as ignored files: "
    "they ran before this was recorded."
)


@contextmanager
def open_project(
    folder: Path,
    root: Path,
    without: tuple[Path, ...] = (),
    *,
    dry_run: bool = False,
    stop: StopRequest | None = None,
) -> Iterator[Project]:
    """Lock a project's checkpoints, complete interrupted changes and yield a Project.

    `folder`: the folder of the checkpoints. `root`: the project's folder. `without`: folders that
    are never included. `dry_run`: yield a Project that only plans changes; nothing is written.
    `stop`: says when to stop between two files. Raises OSError, CheckpointsUnreadable,
    UndoInterrupted.
    """
    if dry_run:
        with _preview(folder, root, without) as project:
            yield project
        return
    with only_one(folder), open_taker(folder, root, without) as (store, taker):
        project = Project(root, store, taker, stop=stop)
        project.finish_interrupted()
        yield project


@contextmanager
def _preview(folder: Path, root: Path, without: tuple[Path, ...]) -> Iterator[Project]:
    """Yield a Project for a dry run, which leaves the store and all files as they are.

    If there are no checkpoints yet, or a killed process left changes that opening the store would
    write into it, a temporary store is used.
    """
    is_there = has_checkpoints(folder)
    with ExitStack() as opened:
        if is_there:
            opened.enter_context(only_one(folder))
        copy = folder
        if not is_there or is_unfinished(folder):
            _remove_previews()
            copy = Path(opened.enter_context(TemporaryDirectory(prefix=_PREVIEW)))
            opened.enter_context(only_one(copy))
            copy_store(folder, copy)
        store, taker = opened.enter_context(open_taker(copy, root, without))
        opened.enter_context(store.attempt())
        project = Project(root, store, taker, is_preview=True)
        project.finish_interrupted()
        yield project


def _remove_previews() -> None:
    """Remove the temporary checkpoints of previews that were killed."""
    for preview in Path(gettempdir()).glob(f"{_PREVIEW}*"):
        with suppress(OSError):
            is_ours = is_private(preview) and preview.stat().st_uid == system.user()
            if is_ours and has_checkpoints(preview) and not is_in_use(preview):
                shutil.rmtree(preview)


class InterruptedUndo(NamedTuple):
    """A change to a project's files that was interrupted and never completed.

    `kind`: "undo", "redo", "revert", or "apply". `when`: when it began, in seconds since 1970.
    `done`, `left`: how many files are as planned, and how many are not yet; None if the project
    can't be read. `finish`: the command that completes it.
    """

    kind: str
    project: Path
    session: str
    prompt: int
    when: float
    done: int | None
    left: int | None
    finish: str

    def to_dict(self) -> dict[str, object]:
        """Return the change as JSON values."""
        names = ("kind", "project", "done", "left", "finish")
        unknown = {"session": self.session or None, "prompt": self.prompt or None}
        return fields(self, *names) | unknown

    @property
    def words(self) -> str:
        """A sentence for the user about it."""
        article = "An" if self.kind[0] in "au" else "A"
        number = ""
        if self.done is not None and self.left is not None:
            number = f" after {self.done:,} of {self.done + self.left:,} files"
        return f"{article} {self.kind} in {self.project} was interrupted{number}."

    @property
    def advice(self) -> str:
        """Sentences for the user about it and how to finish it."""
        command = self.finish
        if self.kind not in ("undo", "revert"):
            command = f"cd {shlex.quote(str(self.project))} && {command}"
        return f"{self.words} To finish it, run: {command}"


def interrupted_undos(checkpoints: Path) -> list[InterruptedUndo]:
    """Return the interrupted changes in all projects. Never raises.

    `checkpoints`: the folder that contains the checkpoints of all projects. Projects whose
    checkpoints can't be read are skipped.
    """
    interrupted = list[InterruptedUndo | None]()
    with suppress(OSError):
        for folder in sorted(checkpoints.iterdir()):
            with suppress(OSError, CheckpointsUnreadable, ValueError):
                interrupted.append(interrupted_undo(folder))
    return [undo for undo in interrupted if undo is not None]


def interrupted_undo(folder: Path) -> InterruptedUndo | None:
    """Return the newest change to a project's files that was interrupted and never completed.

    None if there is none, or if another process holds the lock and may be completing it. `folder`:
    the folder of a project's checkpoints; it may not exist. Raises OSError, CheckpointsUnreadable.
    """
    if not has_checkpoints(folder):
        return None
    with open_store(folder) as store:
        unfinished = [undo for undo in store.undos() if undo.plan is not None]
        if not unfinished or is_in_use(folder):
            return None
        undo = unfinished[-1]
        root = Path(os.fsdecode(store.root()))
        count = len(_decode_tasks(undo.plan or "[]"))
        left = len(_steps_left(root, undo)) if root.is_dir() else None
        return InterruptedUndo(
            kind=_kind_of(store, undo),
            project=root,
            session=undo.session,
            prompt=undo.prompt,
            when=undo.time,
            done=None if left is None else count - left,
            left=left,
            finish=_command_of(store, undo),
        )


def _chosen(entries: Mapping[bytes, ValueT], paths: Sequence[bytes] | None) -> dict[bytes, ValueT]:
    """Return the entries of the files that `paths` selects, as in `Project.undo`."""
    if paths is None or b"" in paths:
        return dict(entries)
    folders = tuple(path + b"/" for path in paths)
    return {name: entries[name] for name in entries if (name + b"/").startswith(folders)}


def _with_records(
    store: CheckpointStore, changes: dict[bytes, list[Delta]], recorded: Sequence[RecordedChange]
) -> Histories:
    """Merge changes from the session's record into those from checkpoints, by time.

    `changes`: those from checkpoints; this mapping is modified and returned. If it and `recorded`
    share a file, those of its changes in it that lack a former state are dropped.
    """
    for path in {record.path for record in recorded} & changes.keys():
        changes[path] = [delta for delta in changes[path] if delta.before != UNKNOWN]
    for record in recorded:
        before, after = (
            recorded_state(store, content) for content in (record.before, record.after)
        )
        deltas = changes.setdefault(record.path, [])
        deltas.append(Delta(record.when, before, after, undo=True))
        deltas.sort(key=lambda delta: delta.when)
    return changes


def _command_of(store: CheckpointStore, undo: Undo) -> str:
    """Return the shell command that completes an interrupted change."""
    call = store.calls().get(undo.call)
    command = None if call is None else call.command
    return command or f"gemtui {_COMMANDS[_kind_of(store, undo)]}"


def _kind_of(store: CheckpointStore, undo: Undo) -> str:
    call = store.calls().get(undo.call)
    return _KINDS.get(UNDO if call is None else call.tool, UNDO)


def _steps_left(root: Path, undo: Undo) -> tuple[Step, ...]:
    """Return what is left to do of an interrupted change.

    Files that somebody has changed since are left alone. Raises OSError.
    """
    steps = list[Step]()
    with ProjectFiles(root) as files:
        for path, expected, result in _decode_tasks(undo.plan or "[]"):
            is_folder = is_folder_name(path)
            now = files.folder_state(path) if is_folder else files.state(path)[0]
            if now == result or (is_folder and now == GONE):
                continue
            action = Action.REMOVE if result == GONE else Action.RESTORE
            step = Step(path=path, action=action, target=result, left=now, now=now, result=result)
            steps.append(step if now == expected else step.left_alone(_MEANWHILE))
    return tuple(steps)


def _left_alone(kind: str, files: Iterable[tuple[bytes, str]]) -> list[str]:
    return [f"That {kind} left {os.fsdecode(path)} alone: {why}" for path, why in files]


def _unless_blocked(files: ProjectFiles, step: Step, steps: Sequence[Step]) -> Step:
    """Return the step, with KEEP and the reason if something on the disk prevents it.

    `steps`: all steps of the plan.
    """
    if is_folder_name(step.path) or step.now.kind not in (ABSENT, FILE, LINK):
        return step
    if step.action is Action.KEEP and step.why != DELETED:
        return step
    above = {folder + b"/" for folder in folders_of(step.path)} | {TOP}
    is_opened = any(other.path in above and _opens(other) for other in steps)
    if not is_opened and files.is_closed(step.path):
        return step.left_alone(_CLOSED)
    if step.now.kind == ABSENT and files.holds_folder(step.path):
        removed = {other.path for other in steps if other.action is Action.REMOVE}
        if not files.is_emptied(step.path, removed):
            return step.left_alone(_FOLDER_THERE)
    return step


def _digests_of(steps: Iterable[Step]) -> set[str]:
    return {
        state.content for step in steps for state in (step.target, step.left, step.now, step.result)
    }


def _as_applied(files: FilesUndone, applied: _Applied) -> FilesUndone:
    """Return the planned result, changed to what has really been done."""
    steps = list[Step]()
    for step in files.steps:
        if step.path in applied.failed and step.action is not Action.KEEP:
            step = step.left_alone(applied.failed[step.path])
        if step.path not in applied.left:
            steps.append(step)
    return replace(files, steps=tuple(steps))


# --- carrying out a plan --------------------------------------------------------------------------

_MEANWHILE = "has just changed"
_FOLDER_THERE = "a folder is now in its place"
_CLOSED = f"its folder can't be read: {os.strerror(EACCES)}"
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

    `paths`: the files that are now as planned. `failed`: maps files that could not be changed to
    the reason. `left`: the files that were not reached because a signal stopped the work.
    """

    paths: frozenset[bytes]
    failed: dict[bytes, str]
    left: frozenset[bytes] = frozenset()


def _tasks_of(steps: Iterable[Step]) -> list[_Task]:
    """Return a plan's tasks, sorted so that they can be carried out in this order.

    Folders are made writable first and read-only last.
    """
    opened, removed, restored, closed = (list[Step]() for _ in range(4))
    for step in steps:
        if step.action is Action.KEEP:
            continue
        if step.result.kind == FOLDER:
            (opened if _opens(step) else closed).append(step)
        else:
            (removed if step.result.kind == ABSENT else restored).append(step)
    opened.sort(key=_top_first)
    closed.sort(key=_top_first, reverse=True)
    removed.sort(key=lambda step: step.path, reverse=True)
    ordered = (*opened, *removed, *restored, *closed)
    return [_Task(step.path, step.now, step.result) for step in ordered]


def _top_first(step: Step) -> tuple[bool, bytes]:
    return step.path != TOP, step.path


def _opens(step: Step) -> bool:
    """Return whether a step gives a folder the permissions to change files in it."""
    return step.now.kind == FOLDER and bool(step.result.mode & ~step.now.mode & _WRITABLE)


def _encode_tasks(tasks: Iterable[_Task]) -> str:
    """Serialise tasks to a string, which `_decode_tasks` parses."""
    return orjson.dumps(
        [[task.path.hex(), task.now.encode(), task.result.encode()] for task in tasks]
    ).decode()


def _decode_tasks(text: str) -> list[_Task]:
    """Parse the tasks that `_encode_tasks` serialised. Raises ValueError."""
    return [
        _Task(bytes.fromhex(path), decode(now), decode(result))
        for path, now, result in orjson.loads(text)
    ]


def _apply(
    store: CheckpointStore,
    files: ProjectFiles,
    tasks: Sequence[_Task],
    undo: int,
    stop: StopRequest,
) -> _Applied:
    """Carry out the tasks of an undo and return which ones succeeded.

    An interrupted undo is completed by calling this again with the same tasks. Files that have
    changed since the plan was made are left alone. `undo`: the undo's id, which makes the names of
    temporary files unique. `stop`: says when to stop between two files.
    """
    done = set[bytes]()
    failed = dict[bytes, str]()
    for at, task in enumerate(tasks):
        if stop.is_due:
            left = frozenset(task.path for task in tasks[at:])
            return _Applied(frozenset(done), failed, left)
        spare = b".gemtui-undo-%d-%d" % (undo, at)
        files.remove_spare(task.path, spare)
        try:
            _do(store, files, task, spare)
        except KeyError:
            failed[task.path] = "its earlier contents are corrupt"
        except _ChangedMeanwhile:
            failed[task.path] = _MEANWHILE
        except IsADirectoryError:
            failed[task.path] = _FOLDER_THERE
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
    state, facts = files.state(task.path)
    if state == task.result:
        if state.kind == ABSENT:  # an interrupted undo may have left empty folders
            files.remove_empty(task.path)
        return
    if state.kind == UNKEPT and facts is None:
        raise OSError(EACCES, _CLOSED)
    if state == GONE and files.holds_folder(task.path):
        raise IsADirectoryError
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
_KINDS = {UNDO: "undo", REDO: "redo", REVIEW: "revert", APPLY: "apply"}
"""The words for such a change in messages, by the name of its tool."""
_COMMANDS = {"undo": "undo", "redo": "redo", "revert": "redo", "apply": "redo"}
"""The commands that complete an interrupted change whose own command is unknown."""
