"""The private folder of a run: what was asked, what came out, how it ended.

The supervisor of a run and gemtui share nothing but this folder, so that either can die while the
other goes on. The folder is 0700 and every file in it 0600, since they hold prompts, answers and
the contents of the user's files.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypedDict, TypeVar

import msgspec
import orjson

from gemtui.files import read_small, write_whole
from gemtui.jsonfile import read_object
from gemtui.own_folders import make_own_folder
from gemtui.transcript.parts import EARLIEST, LATEST

RUN_TAG = "GEMTUI_RUN"
"""Environment variable that every process of a run inherits; its value is the run's id."""

KILLED = "the supervisor of this run was killed; the run was ended"
"""The problem of a run that was ended because its supervisor had been killed."""

SETTINGS = "settings.json"
"""The file of a run that may hold secrets: the CLI's settings as they are for this run."""

STARTING = 60
"""Seconds that a new folder may be without a supervisor before its run counts as lost."""

RESERVE = 16 * 1024
_TEMPORARY = "tmp"
_REPORTS = "gemini-client-error-*.json"
LARGEST_PROMPT = 16_000_000
"""Bytes of a prompt: the CLI takes 8 MiB of one."""


T = TypeVar("T")


class Abort(StrEnum):
    """How quickly a run is to be ended."""

    TERM = "term"
    """SIGTERM to the whole tree, SIGKILL after the grace period."""
    KILL = "kill"
    """SIGKILL to the whole tree at once."""


class About(TypedDict, total=False):
    """What the list of runs, and a screen that attaches to a run, show of it."""

    prompt: str
    model: str | None
    approval_mode: str | None
    session_id: str | None
    resume: str | None
    notes: list[str]
    tools_in_settings: bool
    ask: bool
    away: str
    wait_for_quota: bool
    capabilities: Mapping[str, Any]
    hidden: Mapping[str, str]
    """Tools that the CLI has and does not offer, each with the rule that hides it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the supervisor is to start.

    `argv`: the whole command, its first item an absolute path. `environ`: added to the supervisor's
    own. `stdin`: the prompt is given by a file on stdin; else stdin is empty. `secrets`: names of
    files in the folder that are removed when the run has ended. Times are in seconds, None = no
    limit. `turn_limit`: number of the model's turns after which the run is ended, where the CLI
    can't be told. `about`: what the list of runs shows.
    """

    id: str
    argv: tuple[str, ...]
    cwd: str
    environ: Mapping[str, str]
    stdin: bool = False
    secrets: tuple[str, ...] = ()
    timeout: float | None = None
    idle_timeout: float | None = None
    turn_limit: int | None = None
    grace: float = 3.0
    about: About | None = None

    def hides(self, tool: str) -> str | None:
        """Return which rule hides a tool that the CLI has, "" = the mode does; None = nothing does.

        Raises KeyError where the run did not write down what it hides.
        """
        hidden = (self.about or {})["hidden"]
        if tool in hidden:
            return hidden[tool]
        return next((words for each, words in hidden.items() if fnmatchcase(tool, each)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessId:
    """One process: its `pid`, and its start time in seconds since the epoch."""

    pid: int
    began: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The supervisor of a run: its `pid`, and its start time, since pids are used again."""

    pid: int
    began: float
    cli: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How the process of a run ended.

    `code`: as `Popen.returncode`, negative = signal; None = it was not started, or nobody saw it
    end, and `problem` says why. `limit`: "timeout", "idle" or "turns" if a limit ended it.
    `ended_others`: number of left-over processes that were ended. `left`: processes that could not
    be ended.
    """

    code: int | None
    started: datetime | None
    ended: datetime | None
    aborted: bool = False
    killed: bool = False
    limit: str | None = None
    problem: str | None = None
    ended_others: int = 0
    left: tuple[ProcessId, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for a time that can't be one, TypeError for one without an offset."""
        for moment in (self.started, self.ended):
            if moment is not None and not EARLIEST <= moment <= LATEST:
                raise ValueError(f"{moment} is no time of a run")


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The files of one run below `path`."""

    path: Path

    @classmethod
    def create(cls, runs: Path, id: str) -> RunFolder:
        """Make a new private folder for the run `id`, which is its name, below `runs`."""
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
        """The file that the CLI reads the prompt from."""
        return self.path / "prompt.txt"

    @property
    def stdout(self) -> Path:
        """All that the CLI wrote to stdout, byte for byte."""
        return self.path / "stdout.ndjson"

    @property
    def stderr(self) -> Path:
        """All that the CLI wrote to stderr."""
        return self.path / "stderr.txt"

    def write(self, name: str, text: str) -> Path:
        """Write a private file of the run (a policy, settings, the prompt)."""
        path = self.path / name
        write_whole(path, (text.encode("utf-8", "surrogatepass"),))
        return path

    # --- temporary files -----------------------------------------------------------------------

    def make_temporary(self, parent: str | None = None) -> Path:
        """Make a private folder for temporary files, below `parent` or where the system has them.

        It is not in the run's folder because sockets are made in it, whose paths may have no more
        than about 100 bytes. Raises OSError.
        """
        place = Path(tempfile.mkdtemp(prefix=self._prefix, dir=parent))
        (self.path / _TEMPORARY).symlink_to(place)
        return place

    def remove_temporary(self) -> None:
        """Remove the temporary files of a run, once none of its processes runs.

        The reports that the CLI has written about its errors are kept, in the run's folder.
        """
        link = self.path / _TEMPORARY
        with suppress(OSError):
            place = link.readlink()
            if self._is_ours(place):
                for report in place.glob(_REPORTS):
                    self._keep(report)
                shutil.rmtree(place, ignore_errors=True)
            link.unlink()

    @property
    def _prefix(self) -> str:
        return f"gemtui-{self.id[:8]}-"

    def _is_ours(self, place: Path) -> bool:
        """Whether this is the folder that was made, and not what somebody else has put there."""
        try:
            facts = place.lstat()
        except OSError:
            return False
        private = stat.S_ISDIR(facts.st_mode) and not facts.st_mode & 0o077
        return private and facts.st_uid == os.geteuid() and place.name.startswith(self._prefix)

    def _keep(self, report: Path) -> None:
        with suppress(OSError):
            if stat.S_ISREG(report.lstat().st_mode):
                report.chmod(0o600)
                shutil.move(report, self.path / report.name)

    def clean(self, request: Request | None) -> None:
        """Remove the secrets and temporary files of a run, once none of its processes runs.

        Without a request, every file that may hold secrets.
        """
        self.remove_secrets((SETTINGS,) if request is None else request.secrets)
        self.remove_temporary()

    def remove_secrets(self, names: Iterable[str]) -> None:
        """Remove files of the run that may hold secrets."""
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
        """Write the request, for the supervisor."""
        self._store("request.json", request)

    def request(self) -> Request | None:
        """Return the request; None if the folder holds none that can be read."""
        return self._stored("request.json", Request)

    def write_owner(self, owner: Owner) -> None:
        """Write down who supervises the run."""
        self._store("supervisor.json", owner)

    def asked(self) -> int:
        """Return when the run was asked for, in nanoseconds since the epoch; 0 = unknown."""
        with suppress(OSError):
            return (self.path / "request.json").stat().st_mtime_ns
        return 0

    def is_starting(self) -> bool:
        """Whether the run was asked for so lately that its supervisor may not have said yet who it
        is.
        """
        return self.owner() is None and self.is_young("request.json")

    def is_young(self, name: str = "") -> bool:
        """Whether a file of the folder, or the folder itself, was written less than
        `STARTING` ago."""
        with suppress(OSError):
            return time.time() - (self.path / name).stat().st_mtime < STARTING
        return False

    def owner(self) -> Owner | None:
        """Return who supervises the run, or did; None before it has started."""
        return self._stored("supervisor.json", Owner)

    def abort(self, how: Abort) -> None:
        """Ask the supervisor to end the run; a later call can only make it quicker."""
        write_whole(self.path / "abort", (how.value.encode(),))

    def aborted(self) -> Abort | None:
        """Return how the run was asked to end; None = it was not."""
        try:
            return Abort(read_small(self.path / "abort").decode("ascii"))
        except (OSError, ValueError):
            return None

    def reserve(self) -> None:
        """Reserve space for the exit record: the run may fill the disk."""
        write_whole(self.path / "reserve", (bytes(RESERVE),))

    def tell_full(self) -> None:
        """If the disk is full, say so at the end of stderr: a part of the output was not kept.

        Writing a little more is the only way to ask that knows of quotas, too.
        """
        reserve = self.path / "reserve"
        try:
            with reserve.open("ab", buffering=0) as more:
                more.write(bytes(4096))
        except OSError as error:
            reserve.unlink(missing_ok=True)
            words = f"\ngemtui: {error.strerror}: the end of this run's output was not kept\n"
            with suppress(OSError), os.fdopen(open_private(self.stderr), "ab") as said:
                said.write(words.encode())

    def finish(self, ended: Exit) -> None:
        """Write the exit record."""
        (self.path / "reserve").unlink(missing_ok=True)
        self._store("exit.json", ended)

    def exit(self) -> Exit | None:
        """How it ended; None while it runs."""
        return self._stored("exit.json", Exit)

    def _store(self, name: str, value: Request | Owner | Exit) -> None:
        write_whole(self.path / name, (orjson.dumps(value, option=orjson.OPT_INDENT_2),))

    def _stored(self, name: str, kind: type[T]) -> T | None:
        with suppress(OSError, msgspec.ValidationError):
            return msgspec.convert(read_object(self.path / name), kind)
        return None


def open_private(path: Path) -> int:
    """A descriptor for a new private file to append to."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
