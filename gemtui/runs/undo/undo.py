"""Undo and redo a session's changes to files and chat, back to before a prompt.

Files are restored from checkpoints if a run took any; otherwise from what the session recorded
about its file tools. Effects of shell commands without checkpoints can't be undone, but are
reported.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf, nextafter
from pathlib import Path
from typing import Any, NamedTuple

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
from gemtui.errors import CheckpointsUnreadable, UndoError
from gemtui.extension.live import AT_WORK, LiveFolder
from gemtui.files import resolved
from gemtui.interrupts import StopRequest
from gemtui.jsonout import json_value
from gemtui.paths import checkpoints_dir, gemini_home, hooked_dir
from gemtui.runs.ending import RunState
from gemtui.runs.listing import list_runs, runs_dir
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
        found = (each for each in outlines if each.prompt)
        return [Prompt(at, each.excerpt) for at, each in enumerate(found, 1)]


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
    * `chat`: whether to fork the session at this point; the original session is kept.
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
    notes: list[str] = []
    complete, done = True, None
    if files:
        command = [
            "gemtui",
            "undo",
            session.id,
            "--to",
            str(number),
            *([] if chat else ["--files"]),
        ]
        try:
            done, complete, notes = _undo_files(
                session, number, paths, command, dry_run=dry_run, stop=stop
            )
        except UndoInterrupted as error:
            return _interrupted(error.files)
    fork = None
    if chat and not dry_run:
        undo = None if done is None else done.undo
        home = gemini_home() if home is None else home
        fork = fork_session(session, home, before=number, undo=undo)
        if fork.session_id is None:
            notes.append("Nothing would be left of the chat, so start a new one.")
    return Undone(
        to=number,
        session=session.id,
        files=done,
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
            done = project.redo(paths=_names(root, paths), command=command)
    except UndoInterrupted as error:
        return _interrupted(error.files)
    return Undone(
        to=done.prompt,
        session=done.session,
        files=done,
        fork=done.session or None,
        complete=done.complete,
        notes=done.notes,
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
        record = SessionRecord(root)
        covered = covered_calls(project.store)
        for each in placed:
            if each.prompt >= number and each.use not in covered:
                record.add(each.call)
        target = UndoTarget(
            session=session.id,
            prompt=number,
            since=_since(project.store, placed, number),
            uses=frozenset(each.use for each in placed if each.prompt >= number and each.use),
            recorded=record.changes,
        )
        done = project.undo(
            target, paths=names, command=shlex.join([*command, *_path_options(paths)])
        )
    return done, done.complete and not record.left, [*done.notes, *record.notes()]


def _since(store: CheckpointStore, placed: Sequence[PlacedCall], number: int) -> float:
    """Return a time between the calls before a prompt and those after it.

    The time is in seconds since 1970 and is derived from the calls in checkpoints, because a
    session's own times change when it is resumed. `placed`: the session's calls. `number`: the
    prompt's number.
    """
    numbers = {each.use: each.prompt for each in placed}
    known = [
        (each.began, numbers[each.use]) for each in store.calls().values() if each.use in numbers
    ]
    earlier = [began for began, prompt in known if prompt < number]
    if number == 1:
        return 0.0
    later = min((began for began, prompt in known if prompt >= number), default=inf)
    return min(later, nextafter(max(earlier), inf)) if earlier else later


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
    found = []
    for path in paths:
        full = os.path.abspath(path)  # noqa: PTH100  (`..` counts before links, as in a shell)
        name = b"" if os.path.realpath(full) == str(root) else name_in(root, full)
        if name is None:
            raise UndoError(f"{path} is not in {root}")
        found.append(name)
    return found


# --- the list of checkpoints ----------------------------------------------------------------------


def checkpoint_list(session: Summary) -> list[dict[str, Any]]:
    """Return a session's checkpoints as `gemtui checkpoints --json` prints them.

    Raises OSError, CheckpointsUnreadable.
    """
    with _store_of(session) as store:
        if store is None:
            return []
        placed = with_uses(placed_calls(session), store)
        return [_row(store, each) for each in _numbered_of(session, store, placed)]


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
        found = _numbered_of(session, store, placed, by_calls=True)
        calls = store.calls()
    owners = {change.call for each in found for change in each.files} - {None}
    uses = {calls[each].use for each in owners if each in calls}
    before = (each for each in found if each.checkpoint.reason is Reason.PROMPT)
    newest = max((each.checkpoint.time for each in found), default=None)
    return Checkpointed(
        total=len(found),
        newest=None if newest is None else datetime.fromtimestamp(newest, UTC),
        prompts=frozenset(each.prompt for each in before if each.prompt is not None),
        calls=frozenset(each.call.id for each in placed if each.use in uses),
    )


def sessions_with_checkpoints() -> frozenset[str]:
    """Return the ids of all sessions that have checkpoints, and of all their forks.

    Projects whose checkpoints can't be read are skipped. Raises OSError.
    """
    place, found = checkpoints_dir(), set[str]()
    for folder in [each for each in place.iterdir() if each.is_dir()] if place.is_dir() else ():
        with suppress(CheckpointsUnreadable), open_store(folder) as store:
            found |= store.sessions()
    return frozenset(found)


@contextmanager
def _store_of(session: Summary) -> Iterator[CheckpointStore | None]:
    """Open the checkpoints of a session's project; yield None if there are none."""
    with opened_checkpoints(
        None if session.folder is None else project_of(session.folder)[0]
    ) as store:
        yield store


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
    numbers = {each.use: each.prompt for each in placed}
    prompts, changes = len(prompts_of(session)), store.changes(by_calls=by_calls)
    return _numbered(store, changes, store.lineage(session.id), numbers, prompts)


# --- the texts of one file -----------------------------------------------------------------------


class StateText(NamedTuple):
    """A file's contents in one of its states.

    `text`: None if there is none, or it isn't text. `why`: the reason for that, or a note.
    """

    text: str | None
    why: str = ""


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
        known = PassingContents(store)
        for data in contents.values():
            known.keep(data)
        return StepTexts(*(_state_text(known, each) for each in states))


def _state_text(store: Contents, state: FileState) -> StateText:
    if state.kind == ABSENT:
        return StateText(None, "the file does not exist")
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


def _numbered(
    store: CheckpointStore,
    changed: Iterable[tuple[int, FileChange]],
    sessions: frozenset[str],
    numbers: Mapping[str, int],
    prompts: int,
) -> list[_Numbered]:
    """Return the checkpoints of `sessions`, oldest first, each with the number of its prompt.

    `changed`: pairs of a checkpoint's id and a change. `numbers`: maps the ids of calls to the
    numbers of their prompts. `prompts`: how many prompts the session has.
    """
    changes: dict[int, list[FileChange]] = {}
    for id, change in changed:
        changes.setdefault(id, []).append(change)
    calls = store.calls()
    mine = [each for each in store.checkpoints() if each.session in sessions]
    found, prompt = list[_Numbered](), prompts
    for each in reversed(mine):
        files = changes.get(each.id, [])
        owners = [calls[f.call] for f in files if f.call is not None and f.call in calls]
        known = [numbers[call.use] for call in owners if call.use in numbers]
        prompt = min(known, default=prompt)
        number = prompt if prompt > 0 and each.reason is not Reason.UNDO else None
        found.append(_Numbered(each, files, owners[-1] if owners else None, number))
        prompt -= each.reason is Reason.PROMPT
    return found[::-1]


def _row(store: CheckpointStore, each: _Numbered) -> dict[str, Any]:
    time = datetime.fromtimestamp(each.checkpoint.time, UTC)
    return {
        "id": each.checkpoint.id,
        "time": time.isoformat().replace("+00:00", "Z"),
        "prompt": each.prompt,
        "reason": each.checkpoint.reason.value,
        "tool": None if each.owner is None else each.owner.tool,
        "command": None if each.owner is None or made_by_user(each.owner) else each.owner.command,
        "files": [_file(store, change) for change in each.files],
        "notes": list(each.checkpoint.notes),
    }


def _file(store: CheckpointStore, change: FileChange) -> dict[str, Any]:
    before, after = _text(store, change.before.content), _text(store, change.after.content)
    kinds = change.before.kind == "absent", change.after.kind == "absent"
    what = {(True, False): "added", (False, True): "deleted"}.get(kinds, "modified")
    added, removed = _numbers(before, after)
    return {
        "path": os.fsdecode(change.path),
        "change": what,
        "added": added,
        "removed": removed,
        "sure": change.sure,
    }


def _text(store: Contents, digest: str) -> bytes | None:
    try:
        return store.content(digest) if digest else b""
    except KeyError:
        return None


def _numbers(before: bytes | None, after: bytes | None) -> tuple[int | None, int | None]:
    if before is None or after is None or b"\0" in before or b"\0" in after:
        return None, None
    from gemtui.transcript.displays import content_diff

    diff = content_diff("", before.decode("utf-8", "replace"), after.decode("utf-8", "replace"))
    return diff.added, diff.removed
