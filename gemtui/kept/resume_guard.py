"""Protect a session's files while a run resumes it, and afterwards.

With `--resume`, the CLI first creates a new file under the session's id, and then continues in the
old file. Unless both were created in the same minute, the new file remains as a ghost: a second,
empty file with this id. The next start of the CLI in the same project would then delete every file
with that id (assets/gemini-cli.md#ghosts).

So the session is copied before the run. The ghost is removed when the CLI has written its first
output: it is complete by then, and the CLI never writes to it again. When the run has ended, the
session's files are compared with the copies: what is missing is restored, and the copies are
brought up to date. In between, nothing is watched.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import orjson
from msgspec.structs import replace

from gemtui.agent import process_tree
from gemtui.agent.run_folder import Request, RunFolder
from gemtui.agents import Agent
from gemtui.errors import reason_of
from gemtui.files import changed_at, size_of
from gemtui.kept import run_copies
from gemtui.kept.files import copy_file, restore_file
from gemtui.kept.run_copies import Aftermath, KeptSession
from gemtui.paths import gemini_home
from gemtui.sessions.read.versions import begins_with
from gemtui.sessions.store.store import SessionKind, Store
from gemtui.transcript.parts import string

_BEFORE_OUTPUT, _AFTER_OUTPUT = 0.02, 1.0
"""Seconds between two calls to `SessionKeeper.check`, until the CLI's first output and later."""
_COMPLETE = 1.0
"""Seconds after its last change until a ghost is complete, if the CLI waits for its prompt."""
_HEAD = 64 * 1024


class SessionKeeper:
    """Protects one session's files: removes the ghost, and restores what is missing at the end.

    Implements the RunKeeper interface, which the run's supervisor uses.
    """

    def __init__(self, folder: RunFolder, kept: KeptSession) -> None:
        self._folder, self._kept = folder, kept
        self._has_looked = self._is_rid_of_ghost = False
        self._looked = 0.0

    def check(self) -> float:
        """Remove the ghost after the CLI's first output; return the seconds until the next call.

        A CLI that waits for its prompt has no output, so its ghost is removed once it is complete.
        Problems are recorded when the run has ended.
        """
        if self._has_looked:
            return _AFTER_OUTPUT
        if self._folder.is_waiting:
            if not self._is_rid_of_ghost and time.monotonic() - self._looked >= _COMPLETE:
                self._looked = time.monotonic()
                self._remove_complete_ghosts()
            return _COMPLETE
        if not size_of(self._folder.stdout):
            return _BEFORE_OUTPUT
        self._has_looked = True
        self._remove_ghosts()
        return _AFTER_OUTPUT

    def _remove_complete_ghosts(self) -> None:
        newest = [changed_at(path) for path in _ghosts(self._kept)]
        if newest and time.time() - max(newest) >= _COMPLETE:
            self._remove_ghosts()
            self._is_rid_of_ghost = True

    def close(self) -> Aftermath:
        """Compare the session's files with their copies, and restore what is missing.

        Records and returns what happened to the session. Raises OSError if the result can't be
        recorded, but only after everything else has been done.
        """
        before = self._kept.files
        restored: list[Path] = []
        problems: list[str] = []
        for path, copy in before.items():
            try:
                if _restore_missing(path, copy):
                    restored.append(path)
            except OSError as error:
                problems.append(f"{path} could not be restored: {reason_of(error)}")
        problems += self._remove_ghosts()
        changed = [path for path, copy in before.items() if _was_rewritten(path, copy)]
        run_copies.update_copies(self._folder, self._kept)
        aftermath = replace(
            run_copies.newest_aftermath(self._folder),
            restored=tuple(restored),
            lost=tuple(path for path in before if not os.path.lexists(path)),
            changed=tuple(changed),
            problems=tuple(problems),
        )
        run_copies.write_aftermath(self._folder, aftermath)
        return aftermath

    def _remove_ghosts(self) -> list[str]:
        """Remove the ghosts that the run has created, and record that; return problems.

        The record, which `close` completes, is needed if gemtui is killed. It is left out if the
        disk is full.
        """
        problems = []
        aftermath = run_copies.newest_aftermath(self._folder)
        for path in list(_ghosts(self._kept)):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                problems.append(f"{path} could not be removed: {reason_of(error)}")
                continue
            aftermath = replace(aftermath, ghosts=(*aftermath.ghosts, path))
            with suppress(OSError):
                run_copies.write_newest(self._folder, self._kept.newest, aftermath)
        return problems


def _ghosts(kept: KeptSession) -> Iterator[Path]:
    """Yield the empty files that appeared under a session's id since it was copied.

    A file is only a ghost if another file of the session has content.
    """
    has_content: dict[Path, bool | None] = {}
    for file in run_copies.session_files(Store(kept.home), kept.session_id):
        if file.kind is SessionKind.MAIN:
            has_content[file.path] = run_copies.has_content(file.path, kept.session_id)
    if any(has_content.values()):
        for path, content in has_content.items():
            if path not in kept.seen and content is False:
                yield path


def _restore_missing(path: Path, copy: Path) -> bool:
    """Restore a session file that was deleted during the run; return whether this was done.

    The CLI opens a log by its name for each record. If the log was deleted meanwhile, the rest was
    written to a new log, which has no header: it is appended to what is restored. Raises OSError.
    """
    if not os.path.lexists(path):
        return restore_file(copy, path)
    if path.suffix != ".jsonl" or _has_header(path):
        return False

    def write_both(copy: Path, new: Path) -> None:
        copy_file(copy, new)
        with new.open("ab") as log:
            log.write(path.read_bytes())

    return restore_file(copy, path, write=write_both, over=path.lstat())


def _was_rewritten(path: Path, copy: Path) -> bool:
    """Return whether a log no longer begins with the contents of its copy.

    False for files in the legacy format, which the CLI always rewrites.
    """
    try:
        return path.suffix == ".jsonl" and not begins_with(path, copy)
    except OSError:
        return False


def _has_header(path: Path) -> bool:
    """Return whether a log begins with a header; True if that can't be determined."""
    try:
        with path.open("rb") as file:
            first_line = file.read(_HEAD).partition(b"\n")[0]
        value = orjson.loads(first_line)
        return not isinstance(value, dict) or "sessionId" in value
    except (OSError, orjson.JSONDecodeError):
        return True


# --- before and after a run ---------------------------------------------------------------------


class ResumeGuard:
    """Protects the sessions that an adapter's runs resume.

    Use it as `GeminiAdapter(guard=ResumeGuard())`. A `SessionKeeper` in the run's supervisor does
    the work, so the protection lasts as long as the run, no matter which process follows the run.
    If the supervisor was killed, the next gemtui process does the final work
    (`SessionKeeper.close`).
    """

    supervisor = "gemtui.runs.supervisor"

    def before(self, folder: RunFolder, request: Request, environ: Mapping[str, str]) -> None:
        """Copy the session that the run will resume.

        The final work for earlier runs is done first, because the CLI's clean-up at the start might
        delete their sessions. Raises OSError, which keeps the run from starting.
        """
        settle_abandoned(folder.path.parent)
        resumed = string(request.about.get("resume"))
        if resumed and request.agent is Agent.GEMINI:
            home = gemini_home({**environ, **request.environ})
            run_copies.keep_before(folder, home, resumed)

    def after(self, folder: RunFolder) -> None:
        """Do the final work for the session a run resumed, unless that has been done.

        Does nothing if the run resumed none. If the disk is full, the result is not recorded.
        """
        kept = run_copies.backup_of(folder)
        if kept is not None and run_copies.aftermath_of(folder) is None:
            with suppress(OSError):
                SessionKeeper(folder, kept).close()


def remove_empty_session(home: Path, session_id: str) -> None:
    """Remove the files of a new session without content, which a CLI made that got no prompt.

    Files that can't be removed are left to Gemini CLI's own clean-up.
    """
    for file in run_copies.session_files(Store(home), session_id):
        if run_copies.has_content(file.path, session_id) is False:
            with suppress(OSError):
                file.path.unlink()


def settle_abandoned(runs: Path) -> tuple[RunFolder, ...]:
    """Do the final work for sessions of runs whose supervisors were killed.

    Returns these runs. This is quick if there is nothing to do. While processes of such a run
    remain, only the ghost is removed, and the final work is done later.
    """
    abandoned = []
    for folder in run_copies.unsettled(runs):
        has_ended, owner = folder.exit() is not None, folder.owner()
        if not has_ended and (owner is None or process_tree.owner_lives(owner)):
            continue
        abandoned.append(folder)
        if has_ended or not process_tree.tagged(folder.id):
            ResumeGuard().after(folder)
            continue
        kept = run_copies.backup_of(folder)
        if kept is not None:
            with suppress(OSError):
                SessionKeeper(folder, kept).check()
    return tuple(abandoned)
