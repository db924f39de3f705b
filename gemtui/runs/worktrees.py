"""Create git worktrees for runs, list their changes, and apply or remove them.

A worktree's initial state is stored as a checkpoint, so that all later changes are known exactly,
whatever its git repository contains by then. Applying the changes to the repository works like an
undo in reverse: if the file in the repository is unchanged, the new state is copied exactly; if the
user has edited other lines, the changes are merged; otherwise the file is left alone.
"""

from __future__ import annotations

import os
import re
import secrets
import shlex
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from gemtui.agent.options import AgentOptions
from gemtui.agent.trust import FolderTrust, forget, remember, trust_of
from gemtui.checkpoints.plan import Action, Delta, Step, plan_steps
from gemtui.checkpoints.store import (
    ABSENT,
    FILE,
    LINK,
    UNKNOWN,
    CheckpointStore,
    FileState,
    Reason,
    open_store,
)
from gemtui.checkpoints.undo import APPLY, Interruption, UndoInterrupted, open_project
from gemtui.errors import CheckpointsUnreadable, GemtuiError, OptionError, UndoError, WorktreeError
from gemtui.files import resolved
from gemtui.interrupts import StopRequest
from gemtui.jsonout import fields, iso, json_value
from gemtui.paths import current_folder, make_own_folder, runs_dir, worktrees_dir
from gemtui.runs.before_run import before_run_report
from gemtui.runs.git_worktree import GitRepository, copy_settings
from gemtui.runs.listing import Run, list_runs
from gemtui.runs.undo.checkpointing import project_of
from gemtui.runs.undo.undo import require_idle, state_text
from gemtui.system import Unported, why_not
from gemtui.text import counted
from gemtui.transcript.diffs import NoPatch, file_patch
from gemtui.transcript.displays import content_diff
from gemtui.transcript.model import excerpt
from gemtui.worktree_records import Worktree, remove_unrecorded, worktree_of

BRANCHES = "gemtui/"
"""The prefix of the branch names of gemtui's worktrees."""
_WORDS = re.compile("[a-z0-9]+")
_LONGEST_NAME = 20


# --- create ---------------------------------------------------------------------------------------


class EnteredWorktree(NamedTuple):
    """The worktree where a run will work, and the run's options.

    `is_new`: whether the worktree was created for this run. `notes`: what the user should know.
    """

    worktree: Worktree
    options: AgentOptions
    is_new: bool
    notes: tuple[str, ...] = ()


def enter_worktree(prompt: str, options: AgentOptions) -> EnteredWorktree | None:
    """Return the worktree where a run should work, creating one if requested.

    Returns None if the run works in none of gemtui's worktrees. Blocking, possibly for seconds.
    Raises OptionError for a session that belongs to another folder, WorktreeError, OSError.
    """
    folder = options.cwd or current_folder()
    existing = worktree_of(folder)
    wanted = replace(options, worktree=False)
    if existing is not None:
        return EnteredWorktree(existing, wanted, is_new=False)
    if not options.worktree:
        return None
    require_new(options)
    if reason := why_not(Unported.WORKTREES):
        raise WorktreeError(reason)
    made, notes = make_worktree(folder, prompt)
    more = _take_trust(made, resolved(folder))
    entered = replace(wanted, cwd=made.folder, trust=wanted.trust or bool(more))
    with suppress(OSError):  # if this fails, the report is shown again
        # the user has already agreed to the same settings
        if not before_run_report(options).is_news:
            before_run_report(entered).remember()
    return EnteredWorktree(
        made,
        entered,
        is_new=True,
        notes=(f"working in the new worktree {made.name}, on branch {made.branch}", *notes, *more),
    )


def require_new(options: AgentOptions) -> None:
    """Raise OptionError if a session is to be resumed in a worktree yet to be created.

    A session can be continued only in its own folder.
    """
    folder = options.cwd or current_folder()
    if options.worktree and options.resume and worktree_of(folder) is None:
        words = (
            "worktree: a session can be continued only in its own folder: leave out "
            "--worktree or --resume"
        )
        raise OptionError(words, option="worktree")


def _take_trust(worktree: Worktree, folder: Path) -> tuple[str, ...]:
    """Let Gemini CLI trust a new worktree if it trusts the original folder.

    `folder`: the original folder. Returns notes for the user.
    """
    if trust_of(worktree.folder) is FolderTrust.CLI or not trust_of(folder).is_trusted:
        return ()
    with suppress(OSError, OptionError):  # if this fails, the CLI refuses to work there
        remember(worktree.folder)
    if not trust_of(worktree.folder).is_trusted:
        return ()
    return (f"the worktree is trusted until it is removed, because {folder} is trusted",)


def make_worktree(folder: Path, prompt: str) -> tuple[Worktree, tuple[str, ...]]:
    """Create a worktree of a folder's repository, at the current commit.

    `prompt`: the run's prompt, which determines the worktree's name. Returns the worktree, with
    notes for the user. No program named by the repository is run. Raises WorktreeError and OSError;
    in that case nothing is left behind.
    """
    repository = GitRepository.of(folder)
    commit, name = repository.head(), _name(prompt)
    inside = resolved(folder).relative_to(resolved(repository.top))
    tree = resolved(worktrees_dir()) / name / (repository.top.name or "tree")
    made = Worktree(
        name=name,
        branch=BRANCHES + name,
        repository=repository.top,
        tree=tree,
        folder=tree / inside,
        commit=commit,
        base=None,
        made=iso(datetime.now(UTC)),
        prompt=excerpt(prompt),
    )
    remove_unrecorded()
    make_own_folder(tree.parent)
    try:
        made.save()
        repository.add(tree, made.branch, commit)
        notes = repository.check_out(tree, commit, made.private)
        if not made.folder.is_dir():
            raise WorktreeError(f"{inside} is not in the commit: run in a folder that is")
        copy_settings(repository.top, tree, inside)
        with open_project(*project_of(tree)) as project:
            base = project.taker.take(Reason.MANUAL)
        assert base is not None
        made = replace(made, base=base.id)
        made.save()
    except CheckpointsUnreadable as error:
        _discard(made)
        raise WorktreeError(str(error)) from None
    except BaseException:
        _discard(made)
        raise
    uncommitted = repository.uncommitted(commit, made.private)
    if uncommitted:
        files = counted(uncommitted, "uncommitted file")
        verb = "is" if uncommitted == 1 else "are"
        notes = (*notes, f"{files} of {repository.top} {verb} not in the worktree")
    return made, notes


def _name(prompt: str) -> str:
    words = "-".join(_WORDS.findall(excerpt(prompt).lower()))[:_LONGEST_NAME].strip("-")
    return f"{words or 'run'}-{secrets.token_hex(2)}"


def leave_worktree(entered: EnteredWorktree) -> None:
    """Remove a worktree that was created for a run that then did not start.

    Does nothing for other worktrees. Never raises.
    """
    if entered.is_new:
        _discard(entered.worktree)


def _discard(worktree: Worktree) -> None:
    with suppress(GemtuiError, OSError):
        remove_worktree(worktree)
    shutil.rmtree(worktrees_dir() / worktree.name, ignore_errors=True)


# --- changes in a worktree ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class WorktreeChange:
    """The change to one file since the worktree was created.

    * `when`: the time of the file's last change, in seconds since 1970.
    * `before`, `after`: the file's initial and current state.
    * `old`, `new`: the contents in these states; None if there is no file or no text.
    * `why`: why there is no text; "" otherwise.
    * `is_applied`: whether the change has been applied to the repository.
    """

    path: bytes
    when: float
    before: FileState
    after: FileState
    old: str | None
    new: str | None
    why: str = ""
    is_applied: bool = False

    @property
    def name(self) -> str:
        """The file's path as a string."""
        return os.fsdecode(self.path)

    @property
    def change(self) -> str:
        """The kind of change: added, deleted or modified."""
        if self.before.kind == ABSENT:
            return "added"
        return "deleted" if self.after.kind == ABSENT else "modified"

    @property
    def lines(self) -> tuple[int | None, int | None]:
        """The numbers of added and removed lines; None if unknown."""
        if self.why:
            return None, None
        diff = content_diff("", self.old or "", self.new or "")
        return diff.added, diff.removed

    def patch(self) -> str:
        """Return the change in git's patch format.

        Raises NoPatch if a state has no text.
        """
        if self.why:
            raise NoPatch(self.why)
        return file_patch(self.name, self.old, self.new)

    def to_dict(self) -> dict[str, Any]:
        """Return the file's entry in the output of `gemtui worktrees diff --json`."""
        added, removed = self.lines
        counts = {"added": added, "removed": removed, "why": self.why or None}
        return fields(self, "change", path="name", applied="is_applied") | counts


def worktree_changes(worktree: Worktree) -> tuple[WorktreeChange, ...]:
    """Return the files that differ from the worktree's initial state, sorted by path.

    While a run is working in the worktree, the state after its last checkpoint is used. Raises
    WorktreeError, OSError, CheckpointsUnreadable.
    """
    _require_whole(worktree)
    with _store_of(worktree) as store:
        return tuple(_changes(worktree, store))


@contextmanager
def _store_of(worktree: Worktree) -> Iterator[CheckpointStore]:
    """Yield a worktree's checkpoints, including the current state of its files if no run works
    there.

    That state is not stored. Raises OSError, CheckpointsUnreadable.
    """
    place, root, own = project_of(worktree.tree)
    if is_worked_in(worktree) is None:
        with open_project(place, root, own, dry_run=True) as project:
            project.taker.take(Reason.MANUAL, always=False, renews_index=False)
            yield project.store
    else:
        with open_store(place) as store:
            yield store


def _require_whole(worktree: Worktree) -> None:
    if not worktree.exists:
        raise WorktreeError(
            f"the files of worktree {worktree.name} have been deleted: remove the worktree"
        )
    if worktree.base is None:
        raise WorktreeError(f"worktree {worktree.name} is incomplete: remove it")


def _changes(worktree: Worktree, store: CheckpointStore) -> Iterator[WorktreeChange]:
    assert worktree.base is not None
    times = store.times()
    first, last = dict[bytes, FileState](), dict[bytes, tuple[FileState, float]]()
    for id, change in store.changes(after=worktree.base):
        first.setdefault(change.path, change.before)
        last[change.path] = change.after, times.get(id, 0.0)
    for path, (after, when) in sorted(last.items()):
        before = first[path]
        if before == after:
            continue
        old, why = _text(store, before)
        new, reason = _text(store, after)
        yield WorktreeChange(
            path=path,
            when=when,
            before=before,
            after=after,
            old=old,
            new=new,
            why=why or reason,
            is_applied=worktree.taken.get(path.hex()) == after.encode(),
        )


def _text(store: CheckpointStore, state: FileState) -> tuple[str | None, str]:
    """Return a file's contents and "", or None and the reason why there is no text."""
    if state.kind == ABSENT:
        return None, ""
    if not state.kept:
        return None, state.why
    text, why = state_text(store, state)
    if state.kind == LINK and text is not None:
        target = text.removesuffix("\n")
        return None, f"a link to {target}"
    return text, why


def runs_of(worktree: Worktree, runs: Iterable[Run]) -> tuple[Run, ...]:
    """Return those runs that work or worked in a worktree, in the same order."""
    return tuple(run for run in runs if resolved(Path(run.cwd)).is_relative_to(worktree.tree))


def is_worked_in(worktree: Worktree) -> Run | None:
    """Return the run that is working in a worktree; None if there is none."""
    return next((run for run in runs_of(worktree, list_runs(runs_dir())) if run.alive), None)


# --- apply ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedWorktree:
    """The changes that were, or would be, made to the repository's files.

    `checkpoint`: the id of the checkpoint taken beforehand; None for a dry run. `interrupted`: how
    far it came if a signal stopped it.
    """

    worktree: Worktree
    steps: tuple[Step, ...]
    checkpoint: int | None = None
    interrupted: Interruption | None = None

    def paths(self, action: Action) -> list[str]:
        """Return the files to which this action was applied."""
        return [os.fsdecode(step.path) for step in self.steps if step.action is action]

    @property
    def kept(self) -> list[tuple[str, str]]:
        """The files that were left alone, each with the reason."""
        kept = (step for step in self.steps if step.action is Action.KEEP)
        return [(os.fsdecode(step.path), _WHY.get(step.why, step.why)) for step in kept]

    def to_dict(self) -> dict[str, Any]:
        """Return the value that `gemtui worktrees apply --json` prints."""
        return {
            "version": 1,
            "worktree": self.worktree.name,
            "repository": str(self.worktree.repository),
            "written": self.paths(Action.RESTORE),
            "removed": self.paths(Action.REMOVE),
            "merged": self.paths(Action.MERGE),
            "kept": [{"path": path, "why": why} for path, why in self.kept],
            "checkpoint": self.checkpoint,
            "interrupted": json_value(self.interrupted),
        }


_WHY = {
    "deleted since": "deleted in the repository",
    "recreated since": "also created in the repository",
    "edited since it was created": "edited in the repository",
    "the same lines have been edited since": "the same lines were edited in the repository",
}
"""Maps an undo's reasons for leaving a file alone to the words used for worktrees."""


def apply_worktree(
    worktree: Worktree,
    paths: Collection[str] | None = None,
    *,
    dry_run: bool = False,
    stop: StopRequest | None = None,
) -> AppliedWorktree:
    """Apply a worktree's changes to its repository's working tree.

    Nothing is committed. If a file has been edited in the repository, the changes are merged; if
    they affect the same lines, the file is left alone. A checkpoint is taken first, so that a redo
    can reverse the changes. `paths`: apply only the changes to these files, relative to the root of
    the repository; None means all. `dry_run`: only return what would be done. `stop`: says when to
    stop between two files. Raises UndoError
    while a run is working in the repository's folder or in the worktree, WorktreeError, OSError,
    CheckpointsUnreadable.
    """
    _require_whole(worktree)
    if not dry_run:
        require_idle(worktree.repository)
        if (run := is_worked_in(worktree)) is not None:
            raise UndoError(
                f"a run is working in {worktree.name}: stop it with gemtui runs stop {run.id[:8]}"
            )
    command = ["gemtui", "worktrees", "apply", worktree.name]
    for name in paths or ():
        command += ["--path", name]
    repository = project_of(worktree.repository)
    try:
        with (
            _store_of(worktree) as theirs,
            open_project(*repository, dry_run=dry_run, stop=stop) as project,
        ):
            changes = list(_changes(worktree, theirs))
            if paths is not None:
                changes = [change for change in changes if change.name in paths]
                missing = set(paths) - {change.name for change in changes}
                if missing:
                    raise WorktreeError(f"{min(missing)} has no changes in {worktree.name}")

            def planned() -> list[Step]:
                tree, deltas = project.store.tree(), dict[bytes, list[Delta]]()
                _copy(theirs, project.store, changes)
                for change in changes:
                    now, _ = tree.get(change.path, (None, None))
                    deltas[change.path] = [_backwards(change, now)]
                return plan_steps(project.store, tree, deltas)

            also = {change.path: UNKNOWN for change in changes}
            result = project.change(APPLY, "", planned, also=also, command=shlex.join(command))
    except UndoInterrupted as error:
        return AppliedWorktree(
            worktree=worktree, steps=error.files.steps, interrupted=error.files.interrupted
        )
    if not dry_run:
        left = {step.path for step in result.steps if step.action is Action.KEEP}
        taken = dict(worktree.taken)
        for change in changes:
            if change.path not in left:
                taken[change.path.hex()] = change.after.encode()
        replace(worktree, taken=taken).save()
    return AppliedWorktree(worktree=worktree, steps=result.steps, checkpoint=result.checkpoint)


def _copy(
    source: CheckpointStore, target: CheckpointStore, changes: Iterable[WorktreeChange]
) -> None:
    """Copy the file contents that some changes need into a different store.

    `source`: the worktree's checkpoints. `target`: the repository's.
    """
    for change in changes:
        for state in (change.before, change.after):
            if state.kind in (FILE, LINK):
                with suppress(KeyError):  # if missing, the plan leaves the file alone
                    target.keep(source.content(state.content))


def _backwards(change: WorktreeChange, now: FileState | None) -> Delta:
    """Return a change in reverse, so that an undo of the result applies the change.

    The result leads from the file's current state in the worktree back to its initial state. `now`:
    the file in the repository. Its mode is kept, because the file may have been created with a
    different umask; only a change to the execute permission is applied.
    """
    first, last = change.before, change.after
    if now is None or now.kind != FILE or first.kind != FILE:
        return Delta(change.when, last, first, undo=True)
    if _is_program(first) == _is_program(now):
        changed = last.kind == FILE and _is_program(first) != _is_program(last)
        first = first._replace(mode=now.mode)
        if last.kind == FILE:
            last = last._replace(mode=_with_program(now.mode, last) if changed else now.mode)
    return Delta(change.when, last, first, undo=True)


def _is_program(state: FileState) -> bool:
    return bool(state.mode & 0o111)


def _with_program(mode: int, like: FileState) -> int:
    """Return `mode` with the execute permission set or cleared as in `like`.

    If it is set, everyone who may read the file may execute it.
    """
    return mode | (mode & 0o444) >> 2 if _is_program(like) else mode & ~0o111


# --- remove ---------------------------------------------------------------------------------------


class Losses(NamedTuple):
    """The things that would be lost with a worktree, or remain only on its branch.

    `files`: the files with changes that haven't been applied; None if unknown. `commits`: how many
    commits no other branch has; they are kept with the branch. None if the branch no longer exists.
    """

    files: tuple[str, ...] | None
    commits: int | None

    def lines(self) -> Iterator[str]:
        """Yield a sentence for the user if changes to files would or might be lost."""
        if self.files is None:
            yield "It is unknown which of the worktree's changes have been applied."
        elif self.files:
            names = ", ".join(self.files[:_MOST_NAMES])
            rest = len(self.files) - _MOST_NAMES
            more = f" and {counted(rest, 'more file')}" if rest > 0 else ""
            yield f"These changes have not been applied and would be lost: {names}{more}."


_MOST_NAMES = 10


def losses_of(worktree: Worktree) -> Losses:
    """Return what would be lost if a worktree were removed. Never raises."""
    files = None
    with suppress(GemtuiError, OSError):
        files = tuple(change.name for change in worktree_changes(worktree) if not change.is_applied)
    if worktree.base is None or not worktree.exists:
        files = ()
    with suppress(GemtuiError, OSError):
        found = GitRepository.of(worktree.repository).commits(worktree.branch, worktree.commit)
        return Losses(files, None if found is None else found[1])
    return Losses(files, None)


class Removed(NamedTuple):
    """The result of removing a worktree.

    `branch_left`: whether the branch was kept. `notes`: what the user should know about it.
    """

    branch_left: bool
    notes: tuple[str, ...]


def remove_worktree(worktree: Worktree) -> Removed:
    """Remove a worktree with all its files, and its branch if that loses no commits.

    The branch is kept if it has commits that no other branch has. The checkpoints of the worktree's
    files are removed later, like other old checkpoints. Raises OSError, and WorktreeError while a
    run is working in the worktree.
    """
    run = is_worked_in(worktree)
    if run is not None:
        raise WorktreeError(
            f"a run is working in worktree {worktree.name}: stop it with gemtui runs stop "
            f"{run.id[:8]}"
        )
    if worktree.exists:
        shutil.rmtree(worktree.tree)
    note = ""
    try:
        repository = GitRepository.of(worktree.repository)
        if repository.knows(worktree.tree):
            repository.forget(worktree.tree)
        commits = repository.commits(worktree.branch, worktree.commit)
        if commits is not None and commits[1]:
            own = counted(commits[1], "commit")
            note = f"branch {worktree.branch} was kept, because no other branch has its {own}"
        elif commits is not None:
            repository.delete_branch(worktree.branch)
    except WorktreeError as error:
        note = f"git may still list the worktree in {worktree.repository}: {error}"
    with suppress(OSError):
        forget(worktree.folder)
    worktree.forget()
    return Removed(bool(note), (note,) if note else ())
