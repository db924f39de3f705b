"""Take checkpoints of a run's project: before its prompts, and after its writes.

This happens on a background thread of the run's supervisor (the process that starts and watches
Gemini CLI), so that it delays neither the run nor the enforcement of its limits. Only the first
checkpoint delays the run: Gemini CLI is started after it. If there is something to report, the
supervisor writes it into a file in the run's folder (`CheckpointState`): a first checkpoint that
takes longer than a second or was complete only after Gemini CLI had started, an interrupted undo
that was completed, or a failure.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from math import inf
from pathlib import Path
from threading import Condition, Lock, Thread
from typing import Any

import msgspec
import orjson

from gemtui.agent import wire
from gemtui.agent.claude_stream import CALL_LINES, calls_of
from gemtui.agent.output import NewEvents
from gemtui.agent.run_folder import Request, RunFolder
from gemtui.agents import Agent
from gemtui.calls.paths import asked_path, tool_path
from gemtui.checkpoints.project_files import LARGEST, ProjectFiles
from gemtui.checkpoints.prune import remove_old_checkpoints
from gemtui.checkpoints.store import GONE, UNKNOWN, Reason, WritingCall, folder_of, only_one
from gemtui.checkpoints.take import Before, Progress, Taker, open_taker
from gemtui.checkpoints.tree import is_tracked_name
from gemtui.checkpoints.undo import Project
from gemtui.checkpoints.usage import CheckpointsUsage
from gemtui.config import Checkpoints, load_config
from gemtui.errors import ConfigError, GemtuiError
from gemtui.files import make_private, read_if_present, resolved, stat_if_present, write_whole
from gemtui.jsonfile import read_object
from gemtui.paths import cache_dir, checkpoints_dir, config_file, data_dir, gemini_home, state_dir
from gemtui.system import Unported, why_not
from gemtui.transcript.parts import string
from gemtui.transcript.seal import unsealed
from gemtui.transcript.tools import WRITING, kind_of, may_write
from gemtui.worktree_records import list_worktrees

_FILE = "checkpoints.json"


class CheckpointPhase(StrEnum):
    """Whether a run's first checkpoint has been taken."""

    FIRST = "first"
    """The first checkpoint is being taken, and Gemini CLI has not started yet."""
    READY = "ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointState:
    """The state of a run's checkpoints.

    * `done`, `files`: how many files the first checkpoint has checked, and how many it will check;
      0 if not known yet.
    * `late`: whether Gemini CLI was started before the first checkpoint was complete.
    * `problem`: why a checkpoint could not be taken; "" if none failed.
    * `settled`: notes about interrupted undos that the run's supervisor completed.
    """

    phase: CheckpointPhase
    done: int = 0
    files: int = 0
    late: bool = False
    problem: str = ""
    settled: tuple[str, ...] = ()

    @property
    def progress(self) -> str:
        """The first checkpoint's progress, as text for users."""
        words = "taking the first checkpoint"
        return f"{words}: {self.done:,} of {self.files:,} files" if self.files else words

    def notes(self) -> list[str]:
        """Return what users should know about the checkpoints, one sentence each."""
        notes = [*self.settled]
        if self.problem:
            notes.append(f"a checkpoint failed, so undo may be incomplete: {self.problem}")
        if self.late:
            notes.append(
                "the first checkpoint took too long, so undo may miss changes made in the meantime"
            )
        return notes

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        return asdict(self)


def checkpoint_state(folder: RunFolder) -> CheckpointState | None:
    """Return the state of a run's checkpoints; None if there is nothing to report."""
    with suppress(OSError, msgspec.ValidationError):
        return msgspec.convert(read_object(folder.path / _FILE), CheckpointState)
    return None


def write_checkpoint_state(folder: RunFolder, state: CheckpointState) -> None:
    """Write the state of a run's checkpoints. Raises OSError."""
    write_whole(folder.path / _FILE, [orjson.dumps(state)])


_STEP, _SLOW = 0.05, 1.0
"""Seconds between checks; seconds until a first checkpoint is reported as slow."""
_LONGEST = 120.0
"""How long, in seconds, a run's start waits for the first checkpoint.

The run's end waits equally long for the last one.
"""
_TICK = 0.02
"""Seconds by which the times of files may lag behind the clock."""
_PRUNED, _DAY = "pruned", 86_400
"""A file whose modification time records when old checkpoints were last removed.

`_DAY` is the number of seconds per day.
"""


def project_of(cwd: Path) -> tuple[Path, Path, tuple[Path, ...]]:
    """Return the arguments to pass to `open_project` for a folder's checkpoints.

    These are the folder of the checkpoints, the project's real path, and the folders that
    checkpoints never include.
    """
    root = resolved(cwd)
    own = (data_dir(), state_dir(), cache_dir(), config_file({}).parent, gemini_home())
    return folder_of(checkpoints_dir(), root), root, own


def name_in(root: Path, path: str) -> bytes | None:
    """Return a file's name relative to the project, as used in checkpoints.

    `path`: the file itself. Links in the folders of the path are followed. Returns None if the file
    is outside the project or in a `.git` folder.
    """
    try:
        place = root / path
        real = resolved(place.parent) / place.name
        with ProjectFiles(root) as files:
            name = files.spelled(os.fsencode(real.relative_to(root)))
    except (ValueError, OSError):
        return None
    return name if is_tracked_name(name) else None


def written_name(root: Path, arguments: Mapping[str, Any]) -> bytes | None:
    """Return the name, as used in checkpoints, of the file that a file tool's call writes.

    `root`: the project's real path. `arguments`: those of the call, from which Gemini CLI decides
    on the file (assets/gemini-cli.md#effects). Returns None if the arguments name no file in the
    project, and if the CLI can't resolve the path.
    """
    try:
        return name_in(root, tool_path(asked_path(arguments), str(root)))
    except (OSError, ValueError):
        return None


def checkpoints_of(folder: RunFolder, request: Request) -> RunCheckpoints | None:
    """Return the object that takes a run's checkpoints; None if they are disabled or impossible.

    If the settings can't be read, checkpoints are taken.
    """
    if why_not(Unported.UNDO):
        return None
    try:
        config = load_config(config_file())
    except ConfigError:
        return RunCheckpoints(folder, request)
    return None if config.checkpoints is Checkpoints.OFF else RunCheckpoints(folder, request)


class RunCheckpoints:
    """Takes one run's checkpoints.

    Implements the RunKeeper interface, which the run's supervisor uses.
    """

    def __init__(self, folder: RunFolder, request: Request) -> None:
        about = request.about
        self._run, self._asks = request.id, bool(about.get("ask"))
        self._session = string(about.get("resume")) or string(about.get("session_id"))
        self._place, self._root, self._without = project_of(Path(request.cwd))
        self._is_other = request.agent is not Agent.GEMINI
        types = CALL_LINES if self._is_other else ("init", "tool_use", "tool_result")
        self._output = NewEvents(folder.stdout, *types)
        self._folder = folder
        self._sent = 0
        self._calls: dict[str, WritingCall] = {}
        self._also: dict[bytes, Before] = {}
        self._wanted: Reason | None = None
        self._ends = self._ready = False
        self._error: Exception | None = None
        self._settled: tuple[str, ...] = ()
        self._state = CheckpointState(phase=CheckpointPhase.FIRST)
        self._taker: Taker | None = None
        self._ready_at = inf
        self._changed = Condition()
        self._reading = Lock()
        self._thread: Thread | None = None

    def check(self) -> float:
        """Process the run's new output; return the seconds until the next call.

        The first call waits for the checkpoint before the prompt, but no longer than `_LONGEST`.
        While Gemini CLI waits for its prompt, no checkpoint is taken.
        Raises any error that has occurred on the background thread since the last call.
        """
        if self._folder.is_waiting:
            return _STEP
        if self._thread is None:
            self._start(Reason.PROMPT)
            self._wait()
        self._read()
        self._report()
        return _STEP

    def close(self) -> None:
        """Take the run's last checkpoint, then remove old checkpoints if that is due.

        Raises any error that `check` has not raised yet.
        """
        if self._folder.is_waiting:
            return
        if self._thread is None:
            self._start(None)
        self._read()
        with self._changed:
            self._ends = True
            self._changed.notify_all()
        assert self._thread is not None
        self._thread.join(_LONGEST)
        self._report()
        prune_if_due()

    def _start(self, first: Reason | None) -> None:
        self._wanted = first
        self._thread = Thread(target=self._work, name="checkpoints", daemon=True)
        self._thread.start()

    def _wait(self) -> None:
        began = time.monotonic()
        until, told = began + _LONGEST, began + _SLOW
        with self._changed:
            while not self._ready and time.monotonic() < until and not self._folder.abort_request():
                self._changed.wait(_STEP)
                if time.monotonic() > told:
                    told += _SLOW / 2
                    now = Progress() if self._taker is None else self._taker.progress
                    self._tell(done=now.done, files=now.files)
        if not self._ready:
            self._tell(late=True, phase=CheckpointPhase.READY)
        elif told > began + _SLOW:
            self._tell(phase=CheckpointPhase.READY)

    def _tell(self, **what: Any) -> None:
        self._state = replace(self._state, **what)
        write_checkpoint_state(self._folder, self._state)

    def _report(self) -> None:
        """Write the background thread's report into the run's folder.

        If an error has occurred on that thread, this method raises it.
        """
        with self._changed:
            settled = self._settled
        if settled != self._state.settled:
            self._tell(settled=settled, phase=CheckpointPhase.READY)
        error, self._error = self._error, None
        if error is not None:
            self._tell(problem=str(error), phase=CheckpointPhase.READY)
            raise error

    # --- activity of the run -------------------------------------------------------------------

    def _read(self) -> None:
        """Process the run's new output. Both threads do this."""
        with self._reading:
            before = self._output.size
            for line in self._output.read():
                for event in calls_of(line) if self._is_other else (line,):
                    self._take_in(event)
            if self._asks and self._output.size > before:
                self._look_at_prompts()

    def _calls_so_far(self) -> list[WritingCall]:
        """Return the calls that may have changed files until now.

        The CLI reports a call before it makes it, so the run's output names them all.
        """
        self._read()
        with self._changed:
            return [*self._calls.values()]

    def _look_at_prompts(self) -> None:
        """Request a checkpoint if another prompt has been sent to the same CLI process.

        Only runs that ask the user for approval can receive another prompt in this way.
        """
        from gemtui.agent.prompt_queue import PromptQueue  # not needed by most runs

        sent = sum(not each.run for each in PromptQueue.of(self._folder).sent())
        if sent > self._sent:
            self._sent = sent
            self._want(Reason.PROMPT)

    def _take_in(self, event: Mapping[str, Any]) -> None:
        kind, ms = event.get("type"), wire.time_ms(event)
        when = time.time() if ms is None else ms / 1000
        if kind == "init":
            self._session = string(event.get("session_id")) or self._session
        elif kind == "tool_use":
            self._begins(wire.tool_use(event), when)
        elif kind == "tool_result":
            self._has_ended(wire.tool_result(event).id, when)

    def _begins(self, use: wire.WireUse, when: float) -> None:
        if not may_write(use.name):
            return
        arguments, path = unsealed(use.input), None
        if kind_of(use.name) in WRITING:
            named = asked_path(arguments)
            of_other = self._is_other and named
            path = name_in(self._root, named) if of_other else written_name(self._root, arguments)
            if path is None:
                return
        call = WritingCall(
            run=self._run,
            session=self._session,
            use=use.id,
            tool=use.name,
            path=path,
            began=when,
            command=string(arguments.get("command")) or None,
            sure=when >= self._ready_at,
        )
        before = None if path is None else _before(self._root, path, when)
        with self._changed:
            self._calls[use.id] = call
            if path is not None and before is not None:
                self._also.setdefault(path, before)

    def _has_ended(self, use: str, when: float) -> None:
        with self._changed:
            call = self._calls.get(use)
            if call is not None:
                self._calls[use] = replace(call, ended=when)
        if call is not None:
            self._want(Reason.CALL)

    def _want(self, reason: Reason) -> None:
        with self._changed:
            if self._wanted is not Reason.PROMPT:
                self._wanted = reason
            self._changed.notify_all()

    # --- the thread ----------------------------------------------------------------------------

    def _work(self) -> None:
        """Take checkpoints until the run has ended, including a last one at the end."""
        try:
            with open_taker(self._place, self._root, self._without) as (store, taker):
                project, self._taker = Project(self._root, store, taker), taker
                while self._take_or_fail(project):
                    pass
        except Exception as error:
            self._error = error
        finally:
            with self._changed:
                self._ready = True
                self._changed.notify_all()

    def _take_or_fail(self, project: Project) -> bool:
        """Wait until a checkpoint is needed, and take it.

        Returns False if this was the last checkpoint. If the checkpoint fails, the error is saved
        for `_report` to raise, and the next checkpoint also covers the calls of the failed one.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._wanted is not None or self._ends)
            reason, ends = self._wanted or Reason.CALL, self._ends
            self._wanted = None
        try:
            self._take(project, reason)
        except (OSError, GemtuiError) as error:
            self._error = error
        with self._changed:
            self._ready = True
            self._changed.notify_all()
        return not ends

    def _take(self, project: Project, reason: Reason) -> None:
        with self._changed:
            also, session = {**self._also}, self._session
        began = time.time()
        with only_one(self._place):
            settled = project.finish_interrupted()
            project.taker.take(
                reason,
                run=self._run,
                session=session,
                calls=self._calls_so_far,
                also=also,
                always=reason is Reason.PROMPT,
            )
        with self._changed:
            self._settled = settled
            self._ready_at = min(self._ready_at, time.time())
            self._calls = {
                id: call
                for id, call in self._calls.items()
                if call.ended is None or call.ended > began - _TICK
            }


def prune_if_due() -> None:
    """Remove old checkpoints unless that was done within the last day.

    Raises ConfigError if the settings can't be read.
    """
    if _is_due(checkpoints_dir() / _PRUNED):
        prune_checkpoints()


def _is_due(stamp: Path) -> bool:
    """Return whether old checkpoints were last removed more than a day ago.

    If so, the current time is recorded. `stamp`: the file whose modification time is that record.
    """
    with suppress(OSError):
        if time.time() - stamp.stat().st_mtime < _DAY:
            return False
    with suppress(OSError):
        make_private(stamp)
        os.utime(stamp)
    return True


def _before(root: Path, name: bytes, when: float) -> Before:
    """Return a file's state before a call writes it.

    Returns UNKNOWN if the call may already have written the file. `name`: relative to `root`.
    `when`: the start of the call, in seconds since 1970.
    """
    path = root / os.fsdecode(name)
    try:
        if (seen := stat_if_present(path)) is None:
            return GONE
        if seen.st_ctime >= when - _TICK:
            return UNKNOWN
        data = read_if_present(path, LARGEST)
        return GONE if data is None else (seen.st_mode & 0o777, data)
    except OSError:
        return UNKNOWN


def prune_checkpoints() -> CheckpointsUsage:
    """Remove checkpoints that exceed the age or size allowed by the settings.

    Returns what was removed. Checkpoints of worktrees and of runs that are still working are kept.
    Raises ConfigError.
    """
    config = load_config(config_file())
    return remove_old_checkpoints(
        checkpoints_dir(),
        before=time.time() - config.checkpoint_days * 86400,
        most_bytes=config.checkpoint_bytes,
        goes_on=_goes_on,
        needed={folder_of(checkpoints_dir(), each.tree) for each in list_worktrees()},
    )


def _goes_on(run: str) -> bool:
    """Return whether the run with this id is still working.

    The modules that know this are imported here, because a supervisor needs them only to remove old
    checkpoints, and they would double the number of its imports.
    """
    from gemtui.agent.process_tree import is_supervised
    from gemtui.paths import runs_dir

    folder = RunFolder(runs_dir() / run)
    return folder.exit() is None and is_supervised(folder)
