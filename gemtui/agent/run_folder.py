"""A run's private folder: the request, the output and the exit record.

A run's supervisor and gemtui share nothing but this folder, so that either process can die without
affecting the other. The folder has mode 0700 and every file in it 0600, because these files hold
prompts, answers and the contents of the user's files.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypedDict, TypeVar

import msgspec
import orjson

from gemtui import system
from gemtui.agents import Agent
from gemtui.errors import reason_of
from gemtui.files import path_exists, read_small, stat_if_possible, write_whole
from gemtui.jsonfile import read_object
from gemtui.paths import make_own_folder
from gemtui.transcript.parts import EARLIEST, LATEST

RUN_TAG = "GEMTUI_RUN"
"""The environment variable with the run's id, inherited by all of its processes."""

KILLED = "the supervisor of this run was killed; the run was ended"
"""The `problem` in the exit record if the supervisor was killed."""

SETTINGS_FILE = "settings.json"
"""The file with the CLI's settings for this run; it may hold secrets."""

GRACE = 3.0
"""How many seconds a run's processes get to exit between SIGTERM and SIGKILL."""

STARTING = 60
"""How many seconds a new run may lack a supervisor before it counts as lost."""

RESERVE = 16 * 1024
_WAITING, _UNSENT = "waiting.json", "unsent.json"
_IDLE, _TEMPORARY = "idle", "tmp"
_REPORTS = "gemini-client-error-*.json"
LARGEST_PROMPT = 8 * 1024 * 1024
"""The largest prompt, in bytes; the CLI would cut a larger one (assets/gemini-cli.md#prompt)."""
PROMPT_TOO_LARGE = (
    "the prompt is larger than 8 MiB, which is more than Gemini CLI reads: put the text into "
    "files and name them in the prompt"
)


def is_too_large(prompt: str) -> bool:
    """Return whether a prompt is larger than `LARGEST_PROMPT`."""
    return len(prompt.encode("utf-8", "surrogatepass")) > LARGEST_PROMPT


T = TypeVar("T")


class Abort(StrEnum):
    """The ways to end a run: gently at first, or immediately."""

    TERM = "term"
    """SIGTERM to the whole tree, and SIGKILL after the grace period."""
    KILL = "kill"
    """SIGKILL to the whole tree at once."""


class Limit(StrEnum):
    """gemtui's own limits that can end a run, as exit records name them."""

    TIMEOUT = "timeout"
    IDLE = "idle"
    """The run printed nothing for too long."""
    TURNS = "turns"
    """The turn limit, which gemtui enforces if the CLI won't do so itself."""
    BUDGET = "budget"
    """The run's or the day's budget is used up."""

    @property
    def code(self) -> str:
        """The code of the error event that reports the limit."""
        return _CODES[self]


_CODES = {
    Limit.TIMEOUT: "GEMINI_TIMEOUT",
    Limit.IDLE: "GEMINI_IDLE_TIMEOUT",
    Limit.TURNS: "GEMINI_MAX_TURNS",
    Limit.BUDGET: "GEMINI_BUDGET",
}


class About(TypedDict, total=False):
    """Facts about a run, for the list of runs and for screens that attach to the run."""

    agent: str
    """The name of the agent (`Agent`); Gemini CLI if missing."""
    keep: float
    """How many seconds the agent waits for a prompt after an answer, if it can."""
    prompt: str
    model: str | None
    policies: list[str]
    approval_mode: str | None
    session_id: str | None
    resume: str | None
    notes: list[str]
    ask: bool
    answerer: Mapping[str, Any]
    """The process (`ProcessId`) that alone answers the run's questions; missing if any gemtui may.
    """
    answer_within: int
    """How many seconds a question waits before the run is ended."""
    away: str
    wait_for_quota: bool
    budget: float | None
    """The most the run may cost, in US dollars."""
    day_budget: float
    """The most that a day's sessions may cost, in US dollars; no limit if missing."""
    capabilities: Mapping[str, Any]
    worktree: Mapping[str, str]
    """The name, branch and repository of the git worktree where the run works."""
    hidden: Mapping[str, str]
    """Tools the CLI has but doesn't offer, each with the rule that hides it.

    "" instead of a rule means that the approval mode hides the tool.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Everything the supervisor needs to start a run.

    * `argv`: the whole command; its first item is an absolute path.
    * `environ`: variables to add to the supervisor's own environment.
    * `stdin`: whether the prompt is passed on stdin, from a file; if not, stdin is empty.
    * `pipe`: whether stdin is a pipe instead, through which the run's gate speaks with the agent.
    * `secrets`: names of files in the folder to remove when the run has ended.
    * `timeout`: the seconds the run may take. `idle_timeout`: the seconds it may print nothing.
      None means no limit.
    * `turn_limit`: the number of model turns after which the supervisor ends the run, for a CLI
      that can't limit its turns itself.
    * `grace`: seconds between SIGTERM and SIGKILL when the run is ended.
    * `about`: facts for the list of runs.
    """

    id: str
    argv: tuple[str, ...]
    cwd: str
    environ: Mapping[str, str]
    stdin: bool = False
    pipe: bool = False
    secrets: tuple[str, ...] = ()
    timeout: float | None = None
    idle_timeout: float | None = None
    turn_limit: int | None = None
    grace: float = GRACE
    about: About = field(default_factory=About)

    @property
    def agent(self) -> Agent:
        """The run's agent; Gemini CLI if the request names none that gemtui knows."""
        name = self.about.get("agent")
        return next((agent for agent in Agent if agent == name), Agent.GEMINI)

    def hides(self, tool: str) -> str | None:
        """Return the rule that hides one of the CLI's tools; None if it isn't hidden.

        "" means that the approval mode hides the tool. Raises KeyError if the run did not record
        which tools it hides.
        """
        hidden = self.about["hidden"]
        if tool in hidden:
            return hidden[tool]
        for pattern, message in hidden.items():
            if fnmatchcase(tool, pattern):
                return message
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessId:
    """A process: its `pid`, and its start time in seconds since the epoch."""

    pid: int
    began: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What the supervisor needs to start a CLI that waits for its prompt.

    * `request`: the request, without the prompt.
    * `first`: the first character of the prompt. The CLI waits for the rest once it has read it.
    * `sender`: the process that may send the prompt; the CLI doesn't outlive it.
    * `until`: when the CLI is ended, in seconds since the epoch.
    """

    request: Request
    first: str
    sender: ProcessId
    until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The supervisor of a run: its `pid` and its start time, because pids are reused.

    `cli`: the CLI's pid, once the CLI has started.
    """

    pid: int
    began: float
    cli: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """The exit record of a run's process.

    * `code`: as in `Popen.returncode`, where a negative number is a signal. None if the process was
      not started or its end was not observed; then `problem` says why.
    * `aborted`: whether the run was asked to end. `killed`: whether SIGKILL was needed.
    * `limit`: the limit that ended the run, if any.
    * `limit_words`: for a budget, what was used up, as text for the user.
    * `ended_others`: the number of left-over processes that were ended.
    * `left`: the processes that could not be ended.
    """

    code: int | None
    started: datetime | None
    ended: datetime | None
    aborted: bool = False
    killed: bool = False
    limit: Limit | None = None
    limit_words: str = ""
    problem: str | None = None
    ended_others: int = 0
    left: tuple[ProcessId, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for a time out of range, TypeError for a missing UTC offset."""
        for moment in (self.started, self.ended):
            if moment is not None and not EARLIEST <= moment <= LATEST:
                raise ValueError(f"{moment} is not a valid time for a run")


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The files of one run, under `path`."""

    path: Path

    @classmethod
    def create(cls, runs: Path, id: str) -> RunFolder:
        """Create a private folder named `id` under `runs`."""
        make_own_folder(runs)
        path = runs / id
        path.mkdir(mode=0o700)
        return cls(path)

    @property
    def id(self) -> str:
        """The run's id."""
        return self.path.name

    @property
    def prompt(self) -> Path:
        """The file from which the CLI reads the prompt."""
        return self.path / "prompt.txt"

    @property
    def stdout(self) -> Path:
        """The file that contains everything the CLI wrote to stdout, byte for byte."""
        return self.path / "stdout.ndjson"

    @property
    def stderr(self) -> Path:
        """The file that contains everything the CLI wrote to stderr."""
        return self.path / "stderr.txt"

    def write(self, name: str, text: str) -> Path:
        """Write a private file of the run, such as a policy; return its path."""
        path = self.path / name
        write_whole(path, (text.encode("utf-8", "surrogatepass"),))
        return path

    # --- temporary files -----------------------------------------------------------------------

    def make_temporary(self, parent: str | None = None) -> Path:
        """Create a private folder for temporary files, under `parent` if given.

        The default parent is the system's temporary folder. The new folder is outside the run's
        folder because sockets are created in it, and a socket's path can't exceed about 100 bytes.
        Raises OSError.
        """
        if sys.platform == "win32":  # where links need a privilege, and sockets have no path
            (self.path / _TEMPORARY).mkdir()
            return self.path / _TEMPORARY
        folder = Path(tempfile.mkdtemp(prefix=self._prefix, dir=parent))
        (self.path / _TEMPORARY).symlink_to(folder)
        return folder

    def remove_temporary(self) -> None:
        """Remove a run's temporary files after all of its processes have ended.

        The CLI's error reports are moved into the run's folder.
        """
        link = self.path / _TEMPORARY
        with suppress(OSError):
            folder = link if sys.platform == "win32" else link.readlink()
            if sys.platform == "win32" or self._is_ours(folder):
                for report in folder.glob(_REPORTS):
                    self._keep(report)
                shutil.rmtree(folder, ignore_errors=True)
            if sys.platform != "win32":
                link.unlink()

    @property
    def _prefix(self) -> str:
        return f"gemtui-{self.id[:8]}-"

    def _is_ours(self, folder: Path) -> bool:
        """Return whether `folder` is still the folder that `make_temporary` created.

        A replacement is recognised by its mode, its owner or its name.
        """
        facts = stat_if_possible(folder)
        if facts is None:
            return False
        private = stat.S_ISDIR(facts.st_mode) and not facts.st_mode & 0o077
        return private and facts.st_uid == system.user() and folder.name.startswith(self._prefix)

    def _keep(self, report: Path) -> None:
        with suppress(OSError):
            if stat.S_ISREG(report.lstat().st_mode):
                report.chmod(0o600)
                shutil.move(report, self.path / report.name)

    def clean(self, request: Request | None) -> None:
        """Remove the secrets and temporary files of a run whose supervisor was killed.

        `request`: names the files with secrets; if it is None, the settings file is removed.
        """
        self.remove_secrets((SETTINGS_FILE,) if request is None else request.secrets)
        self.remove_temporary()

    def remove_secrets(self, names: Iterable[str]) -> None:
        """Remove the files with these names, which may hold secrets."""
        for name in names:
            with suppress(OSError):
                (self.path / Path(name).name).unlink(missing_ok=True)

    def prompt_text(self) -> str:
        """Return the prompt; "" if it can't be read."""
        with suppress(OSError):
            return read_small(self.prompt, LARGEST_PROMPT).decode("utf-8", "replace")
        return ""

    # --- request, owner, abort, exit -----------------------------------------------------------

    def write_request(self, request: Request) -> None:
        """Write the request, which the supervisor reads."""
        self._store("request.json", request)

    def request(self) -> Request | None:
        """Return the request; None if it is missing or can't be read."""
        return self._stored("request.json", Request)

    # A CLI that waits for its prompt has no request yet, so its folder is not a run. Removing the
    # first of these files decides, once, whether it becomes one.

    def write_waiting(self, waiting: Waiting) -> None:
        """Write what the supervisor of a CLI that waits for its prompt reads."""
        self._store(_WAITING, waiting)

    def waiting(self) -> Waiting | None:
        """Return what `write_waiting` wrote; None if the prompt has been sent."""
        return self._stored(_WAITING, Waiting) or self._stored(_UNSENT, Waiting)

    @property
    def accepts_prompt(self) -> bool:
        """Whether the prompt can still be sent to a CLI that waits for it."""
        return path_exists(self.path / _WAITING)

    @property
    def is_waiting(self) -> bool:
        """Whether the CLI waits for its prompt, or was ended before there was one."""
        return path_exists(self.path / _WAITING) or path_exists(self.path / _UNSENT)

    def claim(self) -> bool:
        """Make the folder that of a run; return False if the CLI doesn't wait any more.

        The prompt and then the request must be written next. Raises OSError.
        """
        try:
            (self.path / _WAITING).unlink()
        except FileNotFoundError:
            return False
        return True

    def withdraw(self) -> bool:
        """Make sure that no prompt can be sent to the CLI any more; return False if one was."""
        try:
            (self.path / _WAITING).rename(self.path / _UNSENT)
        except OSError:
            return False
        return True

    def write_owner(self, owner: Owner) -> None:
        """Record who supervises the run."""
        self._store("supervisor.json", owner)

    def requested_at(self) -> int:
        """Return when the run was requested, in nanoseconds since the epoch; 0 if unknown."""
        facts = stat_if_possible(self.path / "request.json", follow=True)
        return 0 if facts is None else facts.st_mtime_ns

    def is_starting(self) -> bool:
        """Return whether the run is so new that its supervisor may not be recorded yet."""
        return self.owner() is None and self.is_recent("request.json")

    def is_recent(self, name: str = "") -> bool:
        """Return whether a file of the run was written less than `STARTING` seconds ago.

        `name`: the file's name; "" means the folder itself.
        """
        facts = stat_if_possible(self.path / name, follow=True)
        return facts is not None and time.time() - facts.st_mtime < STARTING

    def owner(self) -> Owner | None:
        """Return the run's supervisor, past or present; None if it hasn't started yet."""
        return self._stored("supervisor.json", Owner)

    def abort(self, how: Abort) -> None:
        """Ask the supervisor to end the run, gently or immediately.

        After a request to end it immediately, a request to end it gently has no effect.
        """
        write_whole(self.path / "abort", (how.value.encode(),))

    def abort_request(self) -> Abort | None:
        """Return the request to end the run; None if there is none."""
        try:
            return Abort(read_small(self.path / "abort").decode("ascii"))
        except (OSError, ValueError):
            return None

    # --- an agent that is kept ------------------------------------------------------------------

    def keep_until(self, moment: float | None) -> None:
        """Record that the agent has nothing to do and ends at a moment; None if it works.

        `moment`: in seconds since 1970. Raises OSError.
        """
        if moment is None:
            (self.path / _IDLE).unlink(missing_ok=True)
        else:
            write_whole(self.path / _IDLE, (str(moment).encode(),))

    def kept_until(self) -> datetime | None:
        """Return until when the agent waits for another prompt; None if it works or has ended."""
        if self.exit() is not None:
            return None
        try:
            return datetime.fromtimestamp(float(read_small(self.path / _IDLE)), UTC)
        except (OSError, ValueError, OverflowError):
            return None

    def reserve_space(self) -> None:
        """Reserve disk space for the exit record, because the run may fill the disk."""
        write_whole(self.path / "reserve", (bytes(RESERVE),))

    def note_full_disk(self) -> None:
        """If the disk is full, append a note to stderr that output is missing.

        A trial write detects this, because free disk space alone says nothing about quotas.
        """
        reserve = self.path / "reserve"
        try:
            with reserve.open("ab", buffering=0) as more:
                more.write(bytes(4096))
        except OSError as error:
            reserve.unlink(missing_ok=True)
            message = (
                f"\ngemtui: {reason_of(error)}: the rest of this run's output could not be saved\n"
            )
            with suppress(OSError), os.fdopen(open_private(self.stderr), "ab") as file:
                file.write(message.encode())

    def finish(self, ended: Exit) -> None:
        """Write the exit record."""
        (self.path / "reserve").unlink(missing_ok=True)
        self._store("exit.json", ended)

    def exit(self) -> Exit | None:
        """Return the exit record; None if there is none yet."""
        return self._stored("exit.json", Exit)

    def _store(self, name: str, value: Request | Waiting | Owner | Exit) -> None:
        write_whole(self.path / name, (orjson.dumps(value, option=orjson.OPT_INDENT_2),))

    def _stored(self, name: str, kind: type[T]) -> T | None:
        with suppress(OSError, msgspec.ValidationError):
            return msgspec.convert(read_object(self.path / name), kind)
        return None


def open_private(path: Path) -> int:
    """Open a private file for appending; return its file descriptor."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | system.NO_LINK, 0o600)
