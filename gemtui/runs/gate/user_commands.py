"""Run the user's own commands for unanswered questions and finished runs.

A run's supervisor starts these commands, each in a separate process. Therefore each question is
reported once, however many gemtui processes watch it, and nothing waits for the command. A command
gets JSON on stdin, and the environment in which gemtui was started, without what gemtui added for
the run. The commands are read from the settings when a run starts, so that the run can't change
them.

This module is started as `python -m gemtui.runs.gate.user_commands FOLDER SETTING NUMBER PROGRAM…`,
where NUMBER is the number of a question, or 0 if the run has ended.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gemtui import system
from gemtui.agent.run_folder import RunFolder
from gemtui.errors import reason_of
from gemtui.files import is_folder
from gemtui.jsonfile import read_as, write_again
from gemtui.paths import failed_commands_dir, make_own_folder
from gemtui.processes import FOLDER, IndependentProcess, find_program, python
from gemtui.system import DETACHED
from gemtui.text import clean_line

ON_ASK, ON_END = "on_ask", "on_end"
SETTINGS_FAILURE = "settings"
"""The name under which a failure to read the settings is stored."""
LIMIT = 30.0
"""The time limit of a user's command, in seconds."""
NOT_FOUND = "was not found: name a program on PATH, or give its full path"
FILE = "user-commands.json"
_LARGEST = 1_000_000
_LEAVES, _STEP = 5.0, 0.05
"""Seconds to wait for a run's supervisor to end; seconds between checks.

The run's exit is recorded shortly before the supervisor ends.
"""
_MOST_STDERR = 10_000
"""How many bytes of stderr are read; their last line explains a failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserCommands:
    """The commands that the user wants to be started for a run.

    Each is a list of words, or () if there is none. `on_ask`: for a question that has been waiting
    for `on_ask_after` seconds. `on_end`: for the end of the run.
    """

    on_ask: tuple[str, ...] = ()
    on_ask_after: float = 0
    on_end: tuple[str, ...] = ()

    @classmethod
    def of(cls, run: RunFolder) -> UserCommands:
        """Return the commands that `keep` stored for a run."""
        return read_as(run.path / FILE, cls, _LARGEST) or cls()

    def keep(self, run: RunFolder) -> None:
        """Store the commands in a run's folder, for its supervisor. Raises OSError."""
        if self.on_ask or self.on_end:
            write_again(run.path / FILE, self, _LARGEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFailure:
    """A failure of one of the user's commands.

    `setting`: `on_ask`, `on_end`, or `settings`. `words`: the command and its arguments. `why`: the
    reason, as a clause. `reported`: whether the user has been notified.
    """

    setting: str
    words: tuple[str, ...]
    why: str
    reported: bool = False

    @property
    def text(self) -> str:
        """The notification for the user, on one line."""
        if self.setting == SETTINGS_FAILURE:
            return f"on_ask and on_end can't be started: {self.why}"
        return f"{self.setting}: {self.words[0]} {self.why}"


def start_command(
    run: RunFolder, setting: str, program: tuple[str, ...], number: int = 0
) -> IndependentProcess:
    """Start a process that runs one of the user's commands. Raises OSError.

    `setting`: the setting that contains the command, such as `on_ask`. `program`: the command and
    its arguments. `number`: the number of the question; 0 if the run has ended.
    """
    arguments = (str(run.path), setting, str(number), *program)
    words = python("-m", "gemtui.runs.gate.user_commands", *arguments)
    return IndependentProcess(words, cwd=FOLDER, stdin=subprocess.DEVNULL, **DETACHED)


# --- failures ------------------------------------------------------------------------------------


def _failure_file(setting: str) -> Path:
    return failed_commands_dir() / f"{setting}.json"


def keep_failure(failure: CommandFailure) -> None:
    """Store a failure, so that the user will be notified. Raises OSError.

    The same failure is stored only once.
    """
    path = _failure_file(failure.setting)
    stored = read_as(path, CommandFailure, _LARGEST)
    if stored is None or (stored.words, stored.why) != (failure.words, failure.why):
        make_own_folder(path.parent)
        write_again(path, failure, _LARGEST)


def forget_failure(setting: str) -> None:
    """Remove the stored failure of a setting, because its command works again."""
    with suppress(OSError):
        _failure_file(setting).unlink(missing_ok=True)


def failures() -> Iterator[CommandFailure]:
    """Yield the last failure of each command that hasn't worked since."""
    for setting in (ON_ASK, ON_END, SETTINGS_FAILURE):
        failure = read_as(_failure_file(setting), CommandFailure, _LARGEST)
        if failure is not None:
            yield failure


def report_failures() -> tuple[str, ...]:
    """Return notifications about failures that the user has not been told about yet."""
    unreported = [failure for failure in failures() if not failure.reported]
    for failure in unreported:
        with suppress(OSError):
            path = _failure_file(failure.setting)
            write_again(path, replace(failure, reported=True), _LARGEST)
    return tuple(clean_line(failure.text) for failure in unreported)


# --- one program ---------------------------------------------------------------------------------


def _program(words: tuple[str, ...]) -> str | None:
    """Return the path of a command's program; None if it is missing or relative."""
    if os.sep not in words[0]:
        return find_program(words[0])
    path = Path(words[0]).expanduser()
    return str(path) if path.is_absolute() and os.access(path, os.X_OK) else None


def look_for_programs(commands: UserCommands) -> None:
    """Store a failure for each command whose program is missing.

    Stored failures of settings without a command are removed. Raises OSError.
    """
    for setting, words in ((ON_ASK, commands.on_ask), (ON_END, commands.on_end)):
        if words and _program(words) is None:
            keep_failure(CommandFailure(setting=setting, words=words, why=NOT_FOUND))
        elif not words:
            forget_failure(setting)


def run_program(words: tuple[str, ...], given: bytes, *, limit: float = LIMIT) -> str | None:
    """Run a program with `given` on stdin; return why it failed, as a clause, or None.

    The program's process group is killed after `limit` seconds.
    """
    program = _program(words)
    if program is None:
        return NOT_FOUND
    home = Path.home()
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stderr:
        stdin.write(given)
        stdin.seek(0)
        try:
            process = subprocess.Popen(
                [program, *words[1:]],
                cwd=home if is_folder(home) else FOLDER,
                stdin=stdin,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                **DETACHED,
            )
        except OSError as error:
            return f"can't be started: {reason_of(error)}"
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            return f"took longer than {limit:g} s and was killed"
        finally:
            if process.poll() is None:
                with suppress(ProcessLookupError, PermissionError):
                    system.kill_group(process.pid)
                process.wait()
        stderr.seek(0)
        lines = stderr.read(_MOST_STDERR).decode("utf-8", "replace").split("\n")
    if code == 0:
        return None
    why = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f"failed with exit code {code}" + (f": {why}" if why else "")


def _question(run: RunFolder, number: int) -> dict[str, Any] | None:
    """Return a command's input about a question; None if it has been answered."""
    from gemtui.runs.gate.questions import waiting_questions
    from gemtui.runs.listing import find_run

    for waiting in waiting_questions([find_run(run.path.parent, run.id)]):
        if waiting.asked.question.number == number:
            return {"version": 1, "event": "question", "question": waiting.to_dict()}
    return None


def _end(run: RunFolder) -> dict[str, Any]:
    """Return a command's input about a run that has ended."""
    from gemtui.agent.process_tree import owner_lives
    from gemtui.runs.listing import find_run, with_outcome

    until = time.monotonic() + _LEAVES
    while owner_lives(run.owner()) and time.monotonic() < until:
        time.sleep(_STEP)
    ended = with_outcome(find_run(run.path.parent, run.id))
    return {"version": 1, "event": "end", "run": ended.to_dict()}


def main(words: list[str]) -> int:
    """Run a command for the event that the arguments name; return the exit code."""
    from gemtui.jsonout import encode

    folder, setting, number, *program = words
    run = RunFolder(Path(folder))
    value = _question(run, int(number)) if setting == ON_ASK else _end(run)
    if value is None:
        return 0
    why = run_program(tuple(program), encode(value) + b"\n")
    if why is None:
        forget_failure(setting)
        return 0
    keep_failure(CommandFailure(setting=setting, words=tuple(program), why=why))
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
