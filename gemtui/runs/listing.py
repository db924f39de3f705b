"""List past and present runs from their folders, end them, and limit their disk usage.

A run's folder is kept after the run as the record of its prompt and output. If there are too many
folders, or they use too much space, the oldest are removed, but never those of runs that are still
working.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import stat
from collections.abc import Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from gemtui.agent import process_tree
from gemtui.agent.agent_run import AgentRun
from gemtui.agent.approval import GateFolder
from gemtui.agent.driver import EventStream
from gemtui.agent.drivers import driver_of
from gemtui.agent.events import Done, DoneStatus
from gemtui.agent.output import NdjsonReader, Parsed
from gemtui.agent.prompt_queue import PromptQueue, settle
from gemtui.agent.run_folder import GRACE, Exit, RunFolder
from gemtui.agent.stream import Ending
from gemtui.agents import Agent
from gemtui.errors import RunAmbiguous, RunNotFound
from gemtui.files import (
    files_below,
    is_folder,
    open_regular,
    path_exists,
    resolved,
    stat_if_possible,
)
from gemtui.jsonout import fields, iso
from gemtui.kept.resume_guard import ResumeGuard, remove_empty_session
from gemtui.kept.run_copies import backup_is_damaged, last_copies
from gemtui.paths import current_folder, gemini_home
from gemtui.policy.model.tool_catalog import is_known
from gemtui.runs.ending import RunState, Status, state_of, status_of
from gemtui.runs.limits import MOST_BYTES, MOST_RUNS
from gemtui.runs.outcome import KeptOutcome, kept_outcome, read_outcome
from gemtui.sessions.store.projects import ProjectFolders
from gemtui.text import counted
from gemtui.transcript.model import excerpt

_ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Matches the folder names that gemtui gives to runs, which are UUIDs."""
_EDGE = 64 * 1024
"""How many bytes at each end of a run's output are read to find its status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run, as recorded in its folder.

    * `status`, `exit`: how the run ended. `complete`: whether the CLI reported a result. All three
      are None if the run has not ended, or if its end was not recorded.
    * `outcome`: how the run ended in detail; None if not determined yet (see `with_outcome`).
    * `prompt`: the first line of the prompt.
    * `session`: the id of the session to resume; None if unknown.
    * `size`: how many bytes would be freed by removing the folder.
    * `pids`: the run's processes that are alive without a supervisor.
    * `agent`: the agent that ran. `kept_until`: until when it waits for another prompt; None if it
      works or has ended.
    * `asks`: how many of the run's questions to the user are unanswered.
    * `undelivered`: how many messages and prompts have not reached the agent.
    * `policies`: the policy files that were chosen for the run.
    * `worktree`: the branch of the git worktree the run works in; None if it works in none.
    """

    folder: RunFolder
    state: RunState
    started: datetime
    ended: datetime | None
    status: DoneStatus | None
    complete: bool | None
    exit: Exit | None
    outcome: KeptOutcome | None
    prompt: str
    model: str | None
    cwd: str
    session: str | None
    size: int
    pids: tuple[int, ...] = ()
    asks: int = 0
    undelivered: int = 0
    worktree: str | None = None
    policies: tuple[Path, ...] = ()
    agent: Agent = Agent.GEMINI
    kept_until: datetime | None = None

    @property
    def id(self) -> str:
        """The run's id, which is its folder's name."""
        return self.folder.id

    @property
    def alive(self) -> bool:
        """Whether any of the run's processes is alive, so that its folder must be kept."""
        return self.state is RunState.RUNNING or bool(self.pids)

    @property
    def end(self) -> Status | None:
        """How a finished run ended; None if unknown.

        Until its outcome has been determined, only the end of its output is considered.
        """
        if self.status is None or self.outcome is not None:
            return None if self.outcome is None else self.outcome.status
        limit = None if self.exit is None else self.exit.limit
        return status_of(self.status, complete=bool(self.complete), limit=limit)

    @property
    def word(self) -> str:
        """The run's state or ending in a few words, such as `done, 2 denied`."""
        if self.state is RunState.ORPHANED:
            return self.state.value
        refused, failed = (self.outcome.refused, self.outcome.failed) if self.outcome else (0, 0)
        if self.end is Status.REFUSED:
            return f"done, {refused} denied"
        if self.end is Status.WARNING:
            return f"done, {failed} failed" if failed else Status.WARNING.words
        if self.asks:
            return "asks"
        if self.kept_until is not None:
            return "waits"
        return self.state.value if self.end is None else self.end.words

    def to_dict(self) -> dict[str, Any]:
        """Return the run as an entry of `gemtui runs --json`; null means unknown."""
        outcome = dict.fromkeys(("outcome", "refused", "failed", "denials", "warnings"))
        if self.outcome is not None:
            names = ("refused", "failed", "denials", "warnings")
            outcome = fields(self.outcome, *names, outcome="status")
        exit = dict.fromkeys(("exit_code", "limit"))
        if self.exit is not None:
            exit = fields(self.exit, "limit", exit_code="code")
        folder = {"folder": str(self.folder.path)}
        return fields(self, *_JSON_FIELDS) | outcome | exit | folder


_JSON_FIELDS = (
    "id",
    "state",
    "status",
    "complete",
    "started",
    "ended",
    "prompt",
    "model",
    "cwd",
    "session",
    "size",
    "pids",
    "asks",
    "undelivered",
    "worktree",
    "policies",
    "agent",
    "kept_until",
)
"""The facts about a run that have the same name in its JSON."""


def list_runs(place: Path) -> tuple[Run, ...]:
    """Return the runs in the folder `place`, newest first, skipping broken folders."""
    runs = [run for run in map(_run, run_folders(place)) if run is not None]
    living = {}
    if any(run.state is not RunState.RUNNING for run in runs):
        living = process_tree.by_run()
    runs = [_with_processes(run, living.get(run.id, set())) for run in runs]
    return tuple(sorted(runs, key=lambda run: run.started, reverse=True))


def with_outcome(run: Run) -> Run:
    """Return a run with its outcome, which `list_runs` adds only if it is cached.

    If the outcome is not cached, all of the run's output is read.
    """
    if run.exit is None or run.outcome is not None:
        return run
    request = run.folder.request()
    if request is None:
        return run
    outcome = read_outcome(run.folder, request)
    return replace(run, outcome=outcome, size=size_of_run(run.folder.path))


def _with_processes(run: Run, tagged: Set[psutil.Process]) -> Run:
    """Return a run with those of its processes that are alive without a supervisor.

    `tagged`: processes that have the run's id in their environment.
    """
    if run.state is RunState.RUNNING:
        return run
    living = tagged | process_tree.still_running(run.exit.left if run.exit is not None else ())
    if not living:
        return run
    pids = tuple(sorted(process.pid for process in living))
    return replace(run, pids=pids, state=RunState.ORPHANED)


def waiting_words(count: int, id: str) -> str:
    """Return a message saying that a run has `count` queued prompts."""
    waits = counted(count, "queued prompt", "queued prompts")
    return f"{waits} for run {id[:8]}: see gemtui runs show {id[:8]}"


LATEST = "latest"
"""The word that users enter for the newest run instead of an id."""
_SHORTEST = 2
_CANDIDATES = 20


def find_run(place: Path, wanted: str) -> Run:
    """Return the run in the folder `place` that `wanted` names.

    `wanted`: the run's id, the id of the session the run stored, a unique prefix of either, or
    `latest`: the newest run of the current folder's project, or of all folders if it has none.
    Blanks around it are ignored. Raises RunNotFound, and RunAmbiguous with a note for
    each candidate.
    """
    wanted = wanted.strip()
    runs = list_runs(place)
    matches = _newest(runs) if wanted == LATEST else _named(runs, wanted)
    if not matches:
        raise RunNotFound(f"no run has the id {wanted!r}: list the runs with gemtui runs")
    if len(matches) > 1:
        error = RunAmbiguous(
            f"{len(matches)} runs match {wanted!r}: give more characters of the id",
            candidates=tuple(run.id for run in matches),
        )
        for run in matches[:_CANDIDATES]:
            error.add_note(f"{run.id}  {iso(run.started)}  {run.prompt}")
        raise error
    return matches[0]


def _newest(runs: Sequence[Run]) -> Sequence[Run]:
    """Return the run that `latest` means, as `find_session` means sessions; () if there is none."""
    own = ProjectFolders(current_folder())
    for run in runs:
        if run.cwd in own:
            return (run,)
    return runs[:1]


def asking_words(place: Path) -> str | None:
    """Return a note about runs that are waiting for the user's answer; None if there are none."""
    asking = [run for run in list_runs(place) if run.asks]
    if not asking:
        return None
    runs = "a run is" if len(asking) == 1 else f"{len(asking)} runs are"
    return f"{runs} waiting for your answer: see gemtui runs questions"


def _named(runs: Sequence[Run], wanted: str) -> Sequence[Run]:
    """Return the runs whose id or session id equals or starts with `wanted`.

    Run ids take precedence over session ids, and exact matches over prefixes.
    """
    if len(wanted) < _SHORTEST:
        return ()
    by_id = [(run.id, run) for run in runs]
    by_session = [(run.session or "", run) for run in runs]
    for pairs in (by_id, by_session):
        matches = [run for id, run in pairs if id == wanted]
        matches = matches or [run for id, run in pairs if id.startswith(wanted)]
        if matches:
            return matches
    return ()


def broken_runs(place: Path) -> tuple[Path, ...]:
    """Return the folders in `place` that contain no readable run.

    Folders that have just been created are left out.
    """
    return tuple(folder.path for folder in run_folders(place) if _is_broken(folder))


def _is_broken(folder: RunFolder) -> bool:
    if not is_folder(folder.path) or (folder.request() and _made(folder)):
        return False
    has_old_prompt = path_exists(folder.prompt) and not folder.is_recent("prompt.txt")
    return has_old_prompt or not folder.is_recent()


def prune_runs(place: Path, *, runs: int = MOST_RUNS, size: int = MOST_BYTES) -> int:
    """Remove the oldest finished runs that exceed these limits; return how many.

    `runs`: the most runs to keep. `size`: the most bytes they may use together. The newest run,
    runs that hold the only copy of a session, and runs with queued prompts are never removed. The
    secrets and temporary files of the other finished runs are removed, and their queues repaired.
    """
    kept, bytes_kept, doomed = 0, 0, []
    for run in list_runs(place):
        if not run.alive:
            run.folder.clean(run.folder.request())
            with suppress(OSError):
                settle(run.folder)
        too_much = kept >= runs or bytes_kept + run.size > size
        if too_much and kept and not run.alive and not run.undelivered:
            doomed.append(run.folder)
        else:
            kept, bytes_kept = kept + 1, bytes_kept + run.size
    for folder in _abandoned(place):
        folder.clean(None)
    remove_dead_waiting(place)
    return _remove(place, doomed)


def clear_runs(place: Path) -> int:
    """Remove the folders of all finished runs and failed starts; return how many.

    Runs that hold the only copy of a session are kept.
    """
    ended = [run.folder for run in list_runs(place) if not run.alive]
    remove_dead_waiting(place)
    return _remove(place, [*ended, *_abandoned(place)])


def remove_dead_waiting(place: Path) -> None:
    """Remove what CLIs have left behind that got no prompt, because their supervisor was killed."""
    for folder in _all_folders(place):
        is_supervised = folder.is_recent() or process_tree.owner_lives(folder.owner())
        if folder.is_waiting and not is_supervised:
            process_tree.end_tagged(folder.id)
            remove_unsent(folder)


def remove_unsent(folder: RunFolder) -> None:
    """Remove the folder and the empty session of a CLI that was ended before it got a prompt.

    Its processes must have ended. The folder is kept if it has the only copy of a session.
    """
    waiting = folder.waiting()
    ResumeGuard().after(folder)
    if waiting is not None and not waiting.request.about.get("resume"):
        home = gemini_home({**os.environ, **waiting.request.environ})
        remove_empty_session(home, waiting.request.about.get("session_id") or "")
    _remove(folder.path.parent, [folder])


def _abandoned(place: Path) -> tuple[RunFolder, ...]:
    """Return the folders of broken runs that have no processes.

    Only folders that are named like a run's are returned.
    """
    broken = [RunFolder(path) for path in broken_runs(place) if _ID.fullmatch(path.name)]
    living = process_tree.by_run() if broken else {}
    return tuple(folder for folder in broken if folder.id not in living)


def _remove(place: Path, folders: Sequence[RunFolder]) -> int:
    """Remove runs' folders, except those with the only copy of a session.

    Returns how many were removed. All removals of runs go through this function. A folder that
    can't be read completely is kept as well, because it may contain such a copy.
    """
    last = {copy.folder for copy in last_copies(place)} if folders else set()
    removed = 0
    for folder in folders:
        folder.clean(folder.request())
        if folder in last or backup_is_damaged(folder) or not _is_readable(folder):
            continue
        shutil.rmtree(folder.path, ignore_errors=True)
        removed += not path_exists(folder.path)
    return removed


def _is_readable(folder: RunFolder) -> bool:
    """Return whether every file in a run's folder is readable.

    An unreadable file may be a copy of a session.
    """
    try:
        with os.scandir(folder.path) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    open_regular(Path(entry.path)).close()
    except OSError:
        return False
    return True


def run_folders(place: Path) -> Iterator[RunFolder]:
    """Yield the folders of all runs; a CLI that waits for its prompt isn't one yet."""
    return (folder for folder in _all_folders(place) if not folder.is_waiting)


def agents_used(place: Path) -> tuple[Agent, ...]:
    """Return the agents of the runs in the folder `place`, each once, the one used last first."""
    folders = sorted(run_folders(place), key=RunFolder.requested_at, reverse=True)
    requests = (folder.request() for folder in folders)
    return tuple(dict.fromkeys(request.agent for request in requests if request is not None))


def _all_folders(place: Path) -> Iterator[RunFolder]:
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    yield RunFolder(Path(entry.path))


def size_of_run(folder: Path) -> int:
    """Return how many bytes would be freed by removing a folder.

    Files with other hard links aren't counted.
    """
    size = 0
    for entry in files_below(str(folder)):
        facts = stat_if_possible(entry.path)
        if facts is not None and stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1:
            size += facts.st_size
    return size


def _run(folder: RunFolder) -> Run | None:
    request, exit, made = folder.request(), folder.exit(), _made(folder)
    if request is None or made is None:
        return None
    about = request.about
    stream = driver_of(request.agent).stream(request, is_known)
    state = state_of(folder) if exit is None else RunState.ENDED
    started, ended, status, complete, outcome = made, None, None, None, None
    if exit is not None:
        started, ended = exit.started or made, exit.ended
        status, complete = _last(stream, folder, exit)
        outcome = kept_outcome(folder)
    return Run(
        folder=folder,
        state=state,
        started=started,
        ended=ended,
        status=status,
        complete=complete,
        exit=exit,
        outcome=outcome,
        prompt=excerpt(str(about.get("prompt") or "")),
        model=about.get("model"),
        cwd=request.cwd,
        session=stream.session_id,
        size=size_of_run(folder.path),
        asks=len(GateFolder.of(folder).waiting()) if state is RunState.RUNNING else 0,
        undelivered=PromptQueue.of(folder).undelivered(),
        worktree=(about.get("worktree") or {}).get("branch"),
        policies=tuple(map(Path, about.get("policies") or ())),
        agent=request.agent,
        kept_until=folder.kept_until(),
    )


def _made(folder: RunFolder) -> datetime | None:
    """Return when a run was requested; None if unknown."""
    at = folder.requested_at()
    return datetime.fromtimestamp(at / 1e9, UTC) if at else None


def _last(stream: EventStream, folder: RunFolder, ended: Exit) -> tuple[DoneStatus, bool]:
    """Return a finished run's status, and whether the CLI reported a result.

    Only the first and last objects of the run's output are read. `stream`: interprets them.
    `ended`: the run's exit record.
    """
    for line in _edges(folder.stdout):
        for _ in stream.feed(line):
            pass
    ending = Ending(
        code=ended.code, aborted=ended.aborted, limit=ended.limit, problem=ended.problem
    )
    *_, done = stream.finish(ending)
    assert isinstance(done.payload, Done)
    return done.payload.status, bool((done.metadata or {}).get("complete"))


def _edges(path: Path) -> Iterator[Parsed]:
    """Yield the first and the last objects near either end of a run's output."""
    reader = NdjsonReader()
    for line in (*reader.feed(_both_ends(path)), *reader.close()):
        if not isinstance(line, Parsed) or not isinstance(line.data, dict):
            continue
        if line.data.get("type") in ("init", "result", "system"):
            yield line


def _both_ends(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            rest = os.fstat(file.fileno()).st_size - 2 * _EDGE
            if rest <= 0:
                return file.read(2 * _EDGE)
            head = file.read(_EDGE)
            file.seek(rest, os.SEEK_CUR)
            return head + b"\n" + file.read(_EDGE)
    except OSError:
        return b""


def last_policies(place: Path, folder: Path) -> tuple[Path, ...]:
    """Return the policy files passed to the newest run in `folder` with `--policy`.

    Returns () if there are none. `place`: the folder that contains all runs' folders.
    """
    wanted = resolved(folder)
    for run in list_runs(place):
        request = run.folder.request() if resolved(Path(run.cwd)) == wanted else None
        if request is not None:
            policies = list[Path]()
            for word in request.argv:
                option, _, value = word.partition("=")
                if option == "--policy":
                    policies += map(Path, value.split(","))
            return tuple(policies)
    return ()


# --- ending a run ---------------------------------------------------------------------------------


def stop_run(run: Run) -> bool:
    """End all of a run's processes; return whether none is left.

    Blocks for some seconds. A living supervisor ends the processes and records the exit; if the
    supervisor is dead, this function does both. Raises OSError if the record can't be written.
    """
    request = run.folder.request()
    if run.state is RunState.RUNNING and request is not None:
        running = AgentRun(run.folder, request)
        running.abort()
        asyncio.run(running.wait())
    process_tree.end_processes(
        partial(_left, run), grace=GRACE if request is None else request.grace
    )
    if run.folder.exit() is None:
        now = datetime.now(UTC)
        run.folder.finish(Exit(code=None, started=None, ended=now, aborted=True))
    if _left(run):
        return False
    run.folder.clean(request)
    ResumeGuard().after(run.folder)
    return True


def _left(run: Run) -> set[psutil.Process]:
    ended = run.folder.exit()
    recorded = () if ended is None else ended.left
    return process_tree.tagged(run.id) | process_tree.still_running(recorded)
