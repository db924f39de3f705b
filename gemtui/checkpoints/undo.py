"""Restore a project's files to their state before a prompt, and redo."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gemtui.checkpoints.apply import Applied, apply, decoded, encode, tasks_of
from gemtui.checkpoints.plan import Action, Delta, Histories, Step, histories, plan
from gemtui.checkpoints.project_files import ProjectFiles
from gemtui.checkpoints.states import FILE, GONE, UNKNOWN, FileState
from gemtui.checkpoints.store import CheckpointStore, Reason, Undo, WritingCall, only_one
from gemtui.checkpoints.take import Before, Taker, taker_of
from gemtui.checkpoints.tree import countable
from gemtui.errors import UndoError

UNDO, REDO, REVIEW, APPLY = "undo", "redo", "review", "worktree"
"""The tools that undos, redos, reviews and applied worktrees are recorded as, to be undone, too."""


def by_person(call: WritingCall) -> bool:
    """Return whether a call is a person's undo, redo, review or applied worktree, not a run's."""
    return call.tool in (UNDO, REDO, REVIEW, APPLY) and not call.run


class RecordedChange(NamedTuple):
    """A change by a file tool that only the session's record contains.

    `when`: seconds since 1970. `before`, `after`: contents; None = the file did not exist. `tool`,
    `use`: of the call, as Gemini CLI names them.
    """

    path: bytes
    when: float
    before: bytes | None
    after: bytes | None
    tool: str = ""
    use: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoTarget:
    """The point to go back to: before prompt number `prompt` of a session.

    `since`: when the prompt was given, in seconds since 1970. `uses`: the ids, as Gemini CLI gives
    them, of this session's calls since then; a fork includes those of its parent session.
    `recorded`: changes without checkpoints.
    """

    session: str
    prompt: int
    since: float
    uses: frozenset[str] = frozenset()
    recorded: Sequence[RecordedChange] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesUndone:
    """The steps of an undo or redo, done or (for a dry run) planned.

    `undo`: the id of the undo or redo; None = there was nothing to do. `checkpoint`: the one that
    was taken before.
    """

    session: str
    prompt: int
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()
    undo: int | None = None
    checkpoint: int | None = None

    def paths(self, action: Action) -> list[bytes]:
        """Return the files with this action."""
        return [step.path for step in self.steps if step.action is action]


def covered_calls(store: CheckpointStore) -> frozenset[str]:
    """Return Gemini CLI's ids of the calls whose changes are all known."""
    calls = store.calls()
    unknown = {each.call for _, each in store.changes(by_calls=True) if each.before == UNKNOWN}
    return frozenset(call.use for id, call in calls.items() if call.sure and id not in unknown)


class Project:
    """The checkpoints of one project, while `only_one` holds its lock.

    Made by `open_project`.
    """

    def __init__(self, root: Path, store: CheckpointStore, taker: Taker) -> None:
        self.root, self.store, self.taker = root, store, taker
        self._settled: list[str] = []

    def undo(
        self, target: UndoTarget, *, paths: Sequence[bytes] | None = None, dry_run: bool = False
    ) -> FilesUndone:
        """Undo the changes since `target`.

        `paths`: only these, and everything below them; None = all. `dry_run`: only return the
        steps. Raises OSError, CheckpointsUnreadable.
        """
        lineage = self.store.lineage(target.session)
        recorded = [each for each in target.recorded if countable(each.path)]

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
        """Reverse the newest undo that is still in effect.

        Raises UndoError if there is none; otherwise like `undo`.
        """
        undo = self.newest_undo()
        if undo is None:
            raise UndoError("nothing to redo in this folder")

        def changes() -> Histories:
            return histories(self.store, lambda call: call.id == undo.call)

        return self.change(
            REDO, undo.session, self._planned(changes, paths), prompt=undo.prompt, dry_run=dry_run,
            redone=undo,
        )  # fmt: skip

    def newest_undo(self) -> Undo | None:
        """Return the undo that `redo` would reverse."""
        open_ones = (u for u in self.store.undos() if u.redoes is None and not u.undone)
        return max(open_ones, key=lambda undo: undo.id, default=None)

    def _planned(
        self, changes: Callable[[], Histories], paths: Sequence[bytes] | None
    ) -> Callable[[], list[Step]]:
        def planned() -> list[Step]:
            chosen = _chosen(changes(), paths)
            return plan(self.store, self.store.around(chosen), chosen)

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
        """Take a checkpoint, then carry out the planned steps; `redo` can reverse them.

        * `tool`: the tool that the change is recorded as.
        * `planned`: returns the steps, once the checkpoint is taken.
        * `also`: files that count although git ignores them.
        * `prompt`: the number of the prompt to go back to; 0 = none.
        * `redone`: the undo that this reverses.
        * `dry_run`: only return the steps.

        Raises OSError, CheckpointsUnreadable.
        """
        reason = Reason.MANUAL if dry_run else Reason.UNDO
        taken = self.taker.take(reason, session=session, also=also or {}, always=not dry_run)
        with self.store.transaction():
            steps = planned()
            tasks = tasks_of(steps)
            notes = (*self._settled, *(() if taken is None else taken.notes))
            told = FilesUndone(session=session, prompt=prompt, steps=tuple(steps), notes=notes)
            if dry_run or taken is None:
                return told
            call = self._call(session, tool, taken.id)
            id = self.store.begin_undo(
                taken.time,
                session,
                prompt,
                taken.id,
                call,
                encode(tasks),
                None if redone is None else redone.id,
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
        """Store the call that an undo or redo counts as; return its id."""
        now = time.time()
        call = WritingCall(
            run="", session=session, use=f"{tool} {number}", tool=tool, began=now, ended=now
        )
        return self.store.save_call(call)

    def _finish(self, undo: Undo) -> Applied:
        tasks = decoded(undo.plan or "[]")
        with ProjectFiles(self.root) as files:
            done = apply(self.store, files, tasks, undo.id)
        owned = dict.fromkeys(done.paths, undo.call)
        also = dict.fromkeys(done.paths, GONE)
        self.taker.take(Reason.UNDO, session=undo.session, owned=owned, also=also)
        with self.store.transaction():
            self.store.end_undo(undo)
        return done

    def settle(self) -> None:
        """Finish interrupted undos, and note that for the next one. Raises OSError."""
        for undo in [each for each in self.store.undos() if each.plan is not None]:
            self._settled += _settled_words(undo, self._finish(undo))


@contextmanager
def open_project(folder: Path, root: Path, without: tuple[Path, ...] = ()) -> Iterator[Project]:
    """Open and lock the checkpoints of `root` in `folder`; finish interrupted undos.

    `without`: folders that never count. Raises OSError, CheckpointsUnreadable.
    """
    with only_one(folder), taker_of(folder, root, without) as (store, taker):
        project = Project(root, store, taker)
        project.settle()
        yield project


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
    """Return the changes of checkpoints and of the session's record, in order of time."""
    for path in {each.path for each in recorded} & known.keys():
        known[path] = [delta for delta in known[path] if delta.before != UNKNOWN]
    for each in recorded:
        delta = Delta(each.when, _state(store, each.before), _state(store, each.after), undo=True)
        known.setdefault(each.path, []).append(delta)
        known[each.path].sort(key=lambda delta: delta.when)
    return known


def _state(store: CheckpointStore, content: bytes | None) -> FileState:
    """Return the state of a recorded content; records don't contain the mode."""
    return GONE if content is None else FileState(FILE, -1, store.keep(content))


def _settled_words(undo: Undo, done: Applied) -> Iterator[str]:
    """Yield the notes on an interrupted undo, redo or review that was finished."""
    what = "redo" if undo.redoes is not None else "undo" if undo.prompt else "revert"
    yield f"An interrupted {what} of this folder was finished first."
    for path, why in done.failed.items():
        yield f"It left {os.fsdecode(path)} alone: {why}"


def _after(step: Step, done: Applied) -> Step:
    why = done.failed.get(step.path)
    if why is None or step.action is Action.KEEP:
        return step
    return Step(
        path=step.path, action=Action.KEEP, why=why, target=step.target, left=step.left,
        now=step.now, result=step.now,
    )  # fmt: skip
