"""Undo and redo a session's changes to files and chat, back to before a prompt.

Files are restored from checkpoints if a run took any; otherwise from what the session recorded
about its file tools. Effects of shell commands without checkpoints can't be undone, but are
reported.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf, nextafter
from pathlib import Path
from typing import Any, NamedTuple

from gemtui.agents import Can, why_not
from gemtui.checkpoints.plan import Action, Step
from gemtui.checkpoints.review import Contents, PassingContents
from gemtui.checkpoints.store import (
    ABSENT,
    FOLDER,
    LINK,
    UNKEPT,
    Checkpoint,
    CheckpointStore,
    FileChange,
    FileState,
    Reason,
    WritingCall,
    has_checkpoints,
    open_store,
)
from gemtui.checkpoints.undo import (
    FilesUndone,
    InterruptedUndo,
    Interruption,
    UndoInterrupted,
    UndoTarget,
    covered_calls,
    interrupted_undo,
    made_by_user,
    open_project,
)
from gemtui.errors import CheckpointsUnreadable, ForkFailed, UndoError
from gemtui.extension.live import AT_WORK, LiveFolder
from gemtui.files import resolved
from gemtui.interrupts import StopRequest
from gemtui.jsonout import json_value
from gemtui.paths import checkpoints_dir, gemini_home, hooked_dir, runs_dir
from gemtui.runs.ending import RunState
from gemtui.runs.listing import list_runs
from gemtui.runs.undo.checkpointing import name_in, project_of
from gemtui.runs.undo.fork import Fork, fork_session
from gemtui.runs.undo.hooked_checkpoints import take_hooked_checkpoints
from gemtui.runs.undo.session_record import PlacedCall, SessionRecord, placed_calls, with_uses
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.text import counted


class Prompt(NamedTuple):
    """A prompt of a session.

    `number`: counted from 1. `text`: its first line, shortened.
    """

    number: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """The result of an undo or redo that was carried out or, for a dry run, planned.

    * `to`: the number of a prompt; everything from it onwards was undone or redone.
    * `session`: the session that was undone.
    * `files`: the changes to files; None if the files were left alone.
    * `fork`: the session to continue in; None if there is none.
    * `chat`: the new chat that an undo created.
    * `complete`: whether, as far as is known, everything that was asked for has been done.
    * `notes`: what the user should know, one sentence each.
    * `interrupted`: how far it came if a signal stopped it; the chat is then left alone.
    """

    to: int
    session: str
    files: FilesUndone | None
    fork: str | None = None
    chat: Fork | None = None
    complete: bool = True
    notes: tuple[str, ...] = ()
    interrupted: Interruption | None = None

    def paths(self, action: Action) -> list[str]:
        """Return the files to which this action was applied, relative to the project."""
        return [] if self.files is None else [os.fsdecode(p) for p in self.files.paths(action)]

    @property
    def kept(self) -> list[Step]:
        """The steps for the files that were left alone."""
        steps = () if self.files is None else self.files.steps
        return [step for step in steps if step.action is Action.KEEP]

    @property
    def count(self) -> int:
        """How many files were changed."""
        steps = () if self.files is None else self.files.steps
        return len(steps) - len(self.kept)

    def to_dict(self) -> dict[str, Any]:
        """Return the value that `gemtui undo --json` prints."""
        return {
            "version": 1,
            "to": self.to,
            "restored": self.paths(Action.RESTORE),
            "removed": self.paths(Action.REMOVE),
            "merged": self.paths(Action.MERGE),
            "kept": [{"path": os.fsdecode(each.path), "why": each.why} for each in self.kept],
            "session": self.fork,
            "checkpoint": None if self.files is None else self.files.checkpoint,
            "complete": self.complete,
            "notes": list(self.notes),
            "interrupted": json_value(self.interrupted),
        }


def existing_folder(folder: Path | None) -> Path:
    """Return the folder of a session or run, whose files are to be undone or reviewed.

    Raises UndoError, with a sentence, if it is unknown (None) or gone.
    """
    if folder is None:
        raise UndoError("The folder of this session is unknown, so its files can't be undone.")
    if not folder.is_dir():
        raise UndoError(
            f"The folder of this session is gone, so its files can't be undone: {folder}"
        )
    return folder


def prompts_of(session: Summary) -> list[Prompt]:
    """Return the prompts in a session's current conversation.

    Raises OSError.
    """
    with SessionLog.read(session.path) as log:
        outlines = transcript_of(log, in_flight=False).outlines
        texts = [outline.excerpt for outline in outlines if outline.prompt]
        return [Prompt(number, text) for number, text in enumerate(texts, 1)]


def undo_session(
    session: Summary,
    number: int | None = None,
    *,
    files: bool = True,
    chat: bool = True,
    paths: Sequence[str] | None = None,
    dry_run: bool = False,
    home: Path | None = None,
    stop: StopRequest | None = None,
) -> Undone:
    """Restore a session's files and chat to the state right before a prompt.

    * `number`: the number of the prompt, counted from 1; None means the last one.
    * `files`: whether to restore the files.
    * `chat`: whether to fork the session at this point; the original session is kept. The chat of
      an agent whose sessions can't be forked stays, if the files are restored.
    * `paths`: restore only these files, and files under these folders.
    * `dry_run`: only return what would be done; nothing is written.
    * `home`: the CLI's folder that contains the session; None means the user's.
    * `stop`: says when to stop between two files.

    Blocking, possibly for seconds. Raises UndoError, ForkFailed, OSError, CheckpointsUnreadable.
    """
    prompts = prompts_of(session)
    if not prompts:
        raise UndoError("this session has no prompts")
    number = len(prompts) if number is None else number
    if not 1 <= number <= len(prompts):
        raise UndoError(
            f"there is no prompt {number}: the session has {counted(len(prompts), 'prompt')}"
        )
    if files and not dry_run and session.folder is not None:
        require_idle(session.folder)
    reason = why_not(session.agent, Can.FORK) if chat else ""
    if reason and not files:
        raise ForkFailed(reason)
    chat = chat and not reason
    notes: list[str] = []
    complete, undone = True, None
    if files:
        command = ["gemtui", "undo", session.id, "--to", str(number)]
        if not chat:
            command.append("--files")
        try:
            undone, complete, notes = _undo_files(
                session, number, paths, command, dry_run=dry_run, stop=stop
            )
        except UndoInterrupted as error:
            return _interrupted(error.files)
    if reason:
        notes.append(f"The chat does not change. {reason}")
    fork = None
    if chat and not dry_run:
        undo = None if undone is None else undone.undo
        try:
            fork = fork_session(session, home or gemini_home(), before=number, undo=undo)
        except ForkFailed as error:
            if undone is None:
                raise
            notes.append(f"The chat does not change. {error}")
        else:
            if fork.session_id is None:
                notes.append(NOTHING_LEFT)
    return Undone(
        to=number,
        session=session.id,
        files=undone,
        fork=None if fork is None else fork.session_id,
        chat=fork,
        complete=complete,
        notes=tuple(dict.fromkeys(notes)),
    )


def redo_project(
    folder: Path,
    *,
    paths: Sequence[str] | None = None,
    dry_run: bool = False,
    stop: StopRequest | None = None,
) -> Undone:
    """Reverse the newest undo in a project's folder, or what is left of it.

    `paths`, `dry_run`, `stop`: as in `undo_session`. Raises UndoError, OSError,
    CheckpointsUnreadable.
    """
    place, root, own = project_of(folder)
    if not place.is_dir():
        raise UndoError("nothing to redo in this folder")
    if not dry_run:
        require_idle(folder)
    command = shlex.join(["gemtui", "redo", *_path_options(paths)])
    try:
        with open_project(place, root, own, dry_run=dry_run, stop=stop) as project:
            redone = project.redo(paths=_names(root, paths), command=command)
    except UndoInterrupted as error:
        return _interrupted(error.files)
    return Undone(
        to=redone.prompt,
        session=redone.session,
        files=redone,
        fork=redone.session or None,
        complete=redone.complete,
        notes=redone.notes,
    )


def _path_options(paths: Sequence[str] | None) -> list[str]:
    return [word for path in paths or () for word in ("--path", os.path.abspath(path))]  # noqa: PTH100  (as typed)


def _interrupted(files: FilesUndone) -> Undone:
    return Undone(
        to=files.prompt,
        session=files.session,
        files=files,
        complete=False,
        notes=files.notes,
        interrupted=files.interrupted,
    )


def interrupted_change(folder: Path) -> InterruptedUndo | None:
    """Return the interrupted change to a folder's files; None if there is none. Never raises.

    If the checkpoints can't be read, whatever opens them next will report why.
    """
    with suppress(OSError, CheckpointsUnreadable, ValueError):
        return interrupted_undo(project_of(folder)[0])
    return None


def _undo_files(
    session: Summary,
    number: int,
    paths: Sequence[str] | None,
    command: Sequence[str],
    *,
    dry_run: bool,
    stop: StopRequest | None,
) -> tuple[FilesUndone | None, bool, list[str]]:
    """Undo a session's files; return the result, whether it is complete, and notes.

    `command`: the words of the shell command that undoes them, without options for paths.
    """
    try:
        folder = existing_folder(session.folder)
    except UndoError as error:
        return None, False, [str(error)]
    place, root, own = project_of(folder)
    names = _names(root, paths)
    with open_project(place, root, own, dry_run=dry_run, stop=stop) as project:
        take_hooked_checkpoints(project, hooked_dir())
        placed = with_uses(placed_calls(session), project.store)
        undone_calls = [placed_call for placed_call in placed if placed_call.prompt >= number]
        record = SessionRecord(root)
        covered = covered_calls(project.store)
        for call, _, use, _ in undone_calls:
            if use not in covered:
                record.add(call)
        target = UndoTarget(
            session=session.id,
            prompt=number,
            since=_since(project.store, placed, number),
            uses=frozenset(call.use for call in undone_calls if call.use),
            recorded=record.changes,
        )
        whole_command = shlex.join([*command, *_path_options(paths)])
        undone = project.undo(target, paths=names, command=whole_command)
    return undone, undone.complete and not record.left, [*undone.notes, *record.notes()]


def _since(store: CheckpointStore, placed: Sequence[PlacedCall], number: int) -> float:
    """Return a time between the calls before a prompt and those after it.

    The time is in seconds since 1970 and is derived from the calls in checkpoints, because a
    session's own times change when it is resumed. `placed`: the session's calls. `number`: the
    prompt's number.
    """
    if number == 1:
        return 0.0
    prompts = {placed_call.use: placed_call.prompt for placed_call in placed}
    last_before, first_after = -inf, inf
    for call in store.calls().values():
        prompt = prompts.get(call.use)
        if prompt is not None and prompt < number:
            last_before = max(last_before, call.began)
        elif prompt is not None:
            first_after = min(first_after, call.began)
    if last_before == -inf:
        return first_after
    return min(first_after, nextafter(last_before, inf))


def require_idle(folder: Path) -> None:
    """Raise UndoError while an agent is working in a folder.

    Changing files could interfere with the agent's work. Both gemtui's runs and sessions started
    outside gemtui count; the latter are known only if the extension's hooks report them.
    """
    place = resolved(folder)
    for run in list_runs(runs_dir()):
        if run.state is RunState.RUNNING and resolved(Path(run.cwd)) == place:
            raise UndoError(
                f"a run is working in {folder}: wait for it, or stop it with gemtui runs stop "
                f"{run.id[:8]}"
            )
    for live in LiveFolder().read():
        if live.state in AT_WORK and live.project and resolved(Path(live.project)) == place:
            raise UndoError(
                f"Gemini CLI is working in {folder} (process {live.pid}): wait until it is idle"
            )


def _names(root: Path, paths: Sequence[str] | None) -> list[bytes] | None:
    """Return paths that the user gave as names relative to the project's root.

    Raises UndoError for a path outside.
    """
    if paths is None:
        return None
    names = []
    for path in paths:
        full = os.path.abspath(path)  # noqa: PTH100  (`..` counts before links, as in a shell)
        name = b"" if os.path.realpath(full) == str(root) else name_in(root, full)
        if name is None:
            raise UndoError(f"{path} is not in {root}")
        names.append(name)
    return names


# --- the list of checkpoints ----------------------------------------------------------------------


def checkpoint_list(session: Summary) -> list[dict[str, Any]]:
    """Return a session's checkpoints as `gemtui checkpoints --json` prints them.

    Raises OSError, CheckpointsUnreadable.
    """
    with _store_of(session) as store:
        if store is None:
            return []
        placed = with_uses(placed_calls(session), store)
        return [_row(store, numbered) for numbered in _numbered_of(session, store, placed)]


class Checkpointed(NamedTuple):
    """A summary of a session's checkpoints.

    `total`: how many there are. `newest`: the time of the newest one. `prompts`: the numbers of the
    prompts before which one was taken. `calls`: Gemini CLI's ids of the calls whose changes are in
    a checkpoint.
    """

    total: int = 0
    newest: datetime | None = None
    prompts: frozenset[int] = frozenset()
    calls: frozenset[str] = frozenset()


def checkpointed(session: Summary) -> Checkpointed:
    """Return a summary of a session's checkpoints.

    Raises OSError, CheckpointsUnreadable.
    """
    with _store_of(session) as store:
        if store is None:
            return Checkpointed()
        placed = with_uses(placed_calls(session), store)
        numbered = _numbered_of(session, store, placed, by_calls=True)
        calls = store.calls()
    newest, prompts, uses = None, set[int](), set[str]()
    for checkpoint, files, _, prompt in numbered:
        newest = checkpoint.time if newest is None else max(newest, checkpoint.time)
        if checkpoint.reason is Reason.PROMPT and prompt is not None:
            prompts.add(prompt)
        uses |= {calls[change.call].use for change in files if change.call in calls}
    return Checkpointed(
        total=len(numbered),
        newest=None if newest is None else datetime.fromtimestamp(newest, UTC),
        prompts=frozenset(prompts),
        calls=frozenset(placed_call.call.id for placed_call in placed if placed_call.use in uses),
    )


def sessions_with_checkpoints() -> frozenset[str]:
    """Return the ids of all sessions that have checkpoints, and of all their forks.

    Projects whose checkpoints can't be read are skipped. Raises OSError.
    """
    place, sessions = checkpoints_dir(), set[str]()
    for folder in place.iterdir() if place.is_dir() else ():
        if folder.is_dir():
            with suppress(CheckpointsUnreadable), open_store(folder) as store:
                sessions |= store.sessions()
    return frozenset(sessions)


def _store_of(session: Summary) -> AbstractContextManager[CheckpointStore | None]:
    """Open the checkpoints of a session's project; the result is None if there are none."""
    return opened_checkpoints(None if session.folder is None else project_of(session.folder)[0])


@contextmanager
def opened_checkpoints(place: Path | None) -> Iterator[CheckpointStore | None]:
    """Open the checkpoints in a folder; yield None if there are none."""
    if place is None or not has_checkpoints(place):
        yield None
        return
    with open_store(place) as store:
        yield store


def _numbered_of(
    session: Summary,
    store: CheckpointStore,
    placed: Sequence[PlacedCall],
    *,
    by_calls: bool = False,
) -> list[_Numbered]:
    """Return a session's checkpoints, oldest first, each with the number of its prompt.

    `placed`: the session's calls, with the ids that checkpoints use. `by_calls`: leave out changes
    to files that no call has changed.
    """
    changes: dict[int, list[FileChange]] = {}
    for id, change in store.changes(by_calls=by_calls):
        changes.setdefault(id, []).append(change)
    prompt_by_use = {placed_call.use: placed_call.prompt for placed_call in placed}
    sessions, calls = store.lineage(session.id), store.calls()
    numbered, prompt = list[_Numbered](), len(prompts_of(session))
    # Backwards: a checkpoint without calls is of the same prompt as the one after it.
    for checkpoint in reversed(store.checkpoints()):
        if checkpoint.session not in sessions:
            continue
        files = changes.get(checkpoint.id, [])
        owners = [calls[change.call] for change in files if change.call in calls]
        prompts = [prompt_by_use[call.use] for call in owners if call.use in prompt_by_use]
        prompt = min(prompts, default=prompt)
        number = prompt if prompt > 0 and checkpoint.reason is not Reason.UNDO else None
        numbered.append(_Numbered(checkpoint, files, owners[-1] if owners else None, number))
        prompt -= checkpoint.reason is Reason.PROMPT
    return numbered[::-1]


# --- the texts of one file -----------------------------------------------------------------------


class StateText(NamedTuple):
    """A file's contents in one of its states.

    `text`: None if there is none, or it isn't text. `why`: the reason for that, or a note.
    """

    text: str | None
    why: str = ""


NO_FILE = StateText(None, "the file does not exist")
"""The state of a file that does not exist."""
NOTHING_LEFT = "Nothing would be left of the chat, so start a new one."
"""The note of an undo to before the first prompt, which stores no new chat."""


class StepTexts(NamedTuple):
    """A file's contents in each of the states that a `Step` names."""

    target: StateText
    left: StateText
    now: StateText
    result: StateText


def step_texts(folder: Path, step: Step, contents: Mapping[str, bytes]) -> StepTexts:
    """Return a file's contents in the four states that a step names.

    `folder`: the project's folder. `contents`: those that only a preview has, by digest. Raises
    CheckpointsUnreadable.
    """
    place, _, _ = project_of(folder)
    states = (step.target, step.left, step.now, step.result)
    with opened_checkpoints(place) as store:
        passing = PassingContents(store)
        for data in contents.values():
            passing.keep(data)
        return StepTexts(*(state_text(passing, state) for state in states))


def state_text(store: Contents, state: FileState) -> StateText:
    """Return a file's contents in one of its states."""
    if state.kind == ABSENT:
        return NO_FILE
    if state.kind == FOLDER:
        return StateText(None, f"a folder with permissions {state.mode:o}")
    if state.kind == UNKEPT:
        return StateText(None, state.why)
    data = _text(store, state.content)
    if data is None:
        return StateText(None, "no longer stored")
    if state.kind == LINK:
        return StateText(f"{os.fsdecode(data)}\n", "a link")
    if b"\0" in data:
        return StateText(None, f"not text, {counted(len(data), 'byte')}")
    return StateText(data.decode("utf-8", "replace"))


class _Numbered(NamedTuple):
    """A checkpoint with the number of its prompt.

    `files`: its changes. `owner`: the call that made the last of them.
    """

    checkpoint: Checkpoint
    files: Sequence[FileChange]
    owner: WritingCall | None
    prompt: int | None


def _row(store: CheckpointStore, numbered: _Numbered) -> dict[str, Any]:
    checkpoint, owner = numbered.checkpoint, numbered.owner
    time = datetime.fromtimestamp(checkpoint.time, UTC)
    return {
        "id": checkpoint.id,
        "time": time.isoformat().replace("+00:00", "Z"),
        "prompt": numbered.prompt,
        "reason": checkpoint.reason.value,
        "tool": None if owner is None else owner.tool,
        "command": None if owner is None or made_by_user(owner) else owner.command,
        "files": [_file(store, change) for change in numbered.files],
        "notes": list(checkpoint.notes),
    }


def _file(store: CheckpointStore, change: FileChange) -> dict[str, Any]:
    kinds = change.before.kind == ABSENT, change.after.kind == ABSENT
    added = removed = None
    before, after = _text(store, change.before.content), _text(store, change.after.content)
    if before is not None and after is not None and b"\0" not in before + after:
        from gemtui.transcript.displays import content_diff

        diff = content_diff("", before.decode("utf-8", "replace"), after.decode("utf-8", "replace"))
        added, removed = diff.added, diff.removed
    return {
        "path": os.fsdecode(change.path),
        "change": {(True, False): "added", (False, True): "deleted"}.get(kinds, "modified"),
        "added": added,
        "removed": removed,
        "sure": change.sure,
    }


def _text(store: Contents, digest: str) -> bytes | None:
    try:
        return store.content(digest) if digest else b""
    except KeyError:
        return None
