"""The current state of Gemini CLI's sessions, in all terminals.

gemtui's hooks write a small file for each CLI process (assets/gemini-cli.md#hooks). Its name is the
process id, and its contents are the JSON of the latest hook, which shows whether the session is
working, is idle, or is waiting for the user's answer. Four cases have no hook and are detected
here: a killed process, a question answered with no, an allowed call that is running, and a question
that remains unanswered when a parallel call ends. The last two are detected from the terminal: the
CLI animates a spinner while it is working, and prints nothing while it is asking.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from gemtui.files import open_regular, read_small, stat_if_possible
from gemtui.jsonfile import object_of
from gemtui.jsonin import loads
from gemtui.jsonout import fields
from gemtui.paths import live_dir
from gemtui.transcript.parts import Part, mapping, string

if TYPE_CHECKING:
    from gemtui.transcript.model import DiffDisplay

LARGEST = 4_000_000
"""Maximum number of bytes to parse.

Of a larger file, only the first fields are read, which include everything but the question.
"""
MOST_FILES = 1_000
KEPT_ENDED, KEPT = 60.0, 86_400.0
"""Seconds to keep a process's file: after a normal end, and after the process vanished."""
_HEAD = 64_000
_LONGEST = 4_000
"""Maximum number of characters in an id, a path, a tool's name, or a message."""
_SLACK = 2.0
"""Seconds of tolerance between a process's start time and a file's timestamp."""
_ANSWERED = 0.05
"""Seconds after a question in which changes of the session's file are ignored.

The CLI may still be logging what led to the question.
"""
_DRAWN, _STEPS = 4.0, 10.0
"""Seconds until a question is rendered, and until terminal output can be detected.

Linux updates the time of the last output to a terminal in steps of eight seconds.
"""
_RUN_ASKS = "gemtui_asks"
"""The first key of a live file while a gemtui run is asking the user.

`gemtui/extension/files/ask.py` writes it.
"""


class LiveState(StrEnum):
    """The state of a session.

    The values are the names in `gemtui sessions --live --json`.
    """

    WAITING = "waiting"
    """The session is waiting for the user's answer to a question."""
    WORKING = "working"
    ACTIVE = "active"
    """The session's file grew in the last minute, or a run is writing it.

    Without hooks, nothing more is known.
    """
    IDLE = "idle"
    """The session is waiting for the next prompt."""
    KILLED = "killed"
    """The session's process vanished without ending the session."""
    ENDED = "ended"


GONE = frozenset({LiveState.KILLED, LiveState.ENDED})
"""The states of sessions that no process has open any more."""
AT_WORK = frozenset({LiveState.WAITING, LiveState.WORKING})
"""The states of sessions in the middle of a turn, so that their files may be about to change."""


class LiveQuestion(Struct, frozen=True, kw_only=True):
    """A question from the CLI to the user, as raw, untrusted strings.

    `kind`: edit, exec, mcp, info, or any other value from the CLI. `about`: the command, file,
    tool, or page the question concerns. `diff`: the proposed change; None if the call is not an
    edit. `run`: whether a gemtui run is asking the question, which must then be answered in that
    run.
    """

    message: str
    kind: str = ""
    about: str = ""
    diff: DiffDisplay | None = None
    run: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the question as JSON values."""
        diff = None if self.diff is None else self.diff.diff
        return fields(self, "message", "kind", "about") | {"diff": diff}


class LiveSession(Struct, frozen=True, kw_only=True):
    """A session that a CLI process has open, or had open when the process was killed.

    `session`: the session's id; "" if unknown. `since`: when the session began to wait, became
    idle, or ended; for a working session, when its last step began; otherwise, when the process was
    last known to be alive. `project`: the CLI's working directory; None if unknown. `name`: the
    path of the session's file. `tool`: the tool that is running.
    """

    pid: int
    session: str
    state: LiveState
    since: datetime
    project: str | None = None
    name: str | None = None
    tool: str | None = None
    question: LiveQuestion | None = None


class _LiveRecord(Struct, frozen=True, kw_only=True):
    """The contents of the small file that gemtui's hooks write for one CLI process."""

    event: str
    session: str
    project: str | None
    name: str | None
    tool: str | None
    question: LiveQuestion | None


class LiveFolder:
    """Reads the files that gemtui's hooks write, one for each CLI process.

    Unchanged files are not read again.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = live_dir() if folder is None else folder
        self._records: dict[int, tuple[tuple[int, ...], _LiveRecord | None]] = {}

    def read(self) -> tuple[LiveSession, ...]:
        """Return one entry for each session: waiting ones first, then the newest.

        `_urgency` defines the order of all states. Invalid and unreadable files are left out. Never
        raises.
        """
        files = dict(_files(self.folder))
        self._records = {pid: self._read(pid, facts) for pid, facts in files.items()}
        sessions = (
            _session(pid, files[pid].st_mtime, record, self._asked(pid))
            for pid, (_, record) in self._records.items()
            if record is not None
        )
        return tuple(sorted(_of_each(sessions), key=_urgency))

    def _asked(self, pid: int) -> bool:
        """Return whether a CLI process has asked the user anything since the last prompt."""
        return os.path.lexists(self.folder / f"{pid}.asked")

    def _read(self, pid: int, facts: os.stat_result) -> tuple[tuple[int, ...], _LiveRecord | None]:
        stamp = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
        cached = self._records.get(pid)
        if cached is not None and cached[0] == stamp:
            return cached
        return stamp, _read_record(self.folder / str(pid), facts.st_size)

    def claim(self, live: LiveSession) -> bool:
        """Claim the right to notify the user of a session's state.

        When several programs follow sessions, only one of them should notify the user. Returns
        False if another program has already claimed the state. Returns True if that can't be
        determined, because a duplicate notification is better than none.
        """
        path = self.folder / f".{live.pid}.{live.since.timestamp():.3f}.told"
        with suppress(OSError):
            try:
                path.touch(mode=0o600, exist_ok=False)
            except FileExistsError:
                return False
            for old in self.folder.glob(f".{live.pid}.*.told"):
                if old != path:
                    old.unlink()
        return True

    def clear(self) -> None:
        """Delete the files of CLI processes that ended long ago. Never raises."""
        now = time.time()
        for pid, facts in _files(self.folder):
            _, record = self._read(pid, facts)
            ended = record is not None and record.event == "SessionEnd"
            old = now - facts.st_mtime > (KEPT_ENDED if ended else KEPT)
            if old and not _is_running(pid, facts.st_mtime):
                with suppress(OSError):
                    (self.folder / str(pid)).unlink()
        with suppress(OSError):
            for path in (*self.folder.glob(".[1-9]*.[1-9]*"), *self.folder.glob("[1-9]*.asked")):
                if now - path.lstat().st_mtime > KEPT:
                    path.unlink()


def _files(folder: Path) -> Iterator[tuple[int, os.stat_result]]:
    """Yield the process id and `stat` of each live file.

    Links and files with other names are skipped.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in islice(entries, MOST_FILES):
            if re.fullmatch("[1-9][0-9]{0,9}", entry.name, re.ASCII):
                with suppress(OSError):
                    facts = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(facts.st_mode):
                        yield int(entry.name), facts


# --- live files ------------------------------------------------------------------------------


def _read_record(path: Path, size: int) -> _LiveRecord | None:
    try:
        if size > LARGEST:
            return _record_of(_beginning(path))
        data = read_small(path, LARGEST)
    except OSError:
        return None
    try:
        return _record_of(object_of(data, path))
    except OSError:
        return _record_of(_fields(data[:_HEAD]))


def _beginning(path: Path) -> Part:
    with open_regular(path) as stream:
        return _fields(stream.read(_HEAD))


_FIELD = re.compile(rb'"([a-z_]{1,20})"\s*:\s*("(?:[^"\\]|\\.){0,4000}")')


def _fields(data: bytes) -> Part:
    """Return the string fields at the beginning of truncated JSON.

    If a field occurs twice, the first one counts, which is the hook's own: hooks write their fields
    before those of the CLI.
    """
    values: dict[str, object] = {}
    for name, value in _FIELD.findall(data):
        with suppress(ValueError):
            values.setdefault(name.decode(), loads(value))
    return values


def _record_of(value: Part) -> _LiveRecord | None:
    event = string(value.get("hook_event_name"))
    if not event:
        return None
    asked = _question
    if event == "BeforeTool" and next(iter(value)) == _RUN_ASKS:
        event, asked = "Notification", _question_of_run
    return _LiveRecord(
        event=event,
        session=_short(value.get("session_id")) or "",
        project=_path(value.get("cwd")),
        name=_path(value.get("transcript_path")),
        tool=_short(value.get("tool_name")),
        question=asked(value) if event == "Notification" else None,
    )


def _question_of_run(value: Part) -> LiveQuestion:
    from gemtui.transcript.tools import ToolKind, kind_of, target, tool_call

    name = _short(value.get("tool_name")) or "a tool"
    call = tool_call({"name": name, "args": value.get("tool_input")})
    return LiveQuestion(
        message=f"A gemtui run needs approval for {name}.",
        kind="exec" if kind_of(name) is ToolKind.SHELL else "",
        about=target(call),
        run=True,
    )


def _short(value: object) -> str | None:
    return string(value)[:_LONGEST] or None


def _path(value: object) -> str | None:
    text = _short(value)
    return text if text is not None and text.startswith("/") and "\0" not in text else None


def _question(value: Part) -> LiveQuestion:
    from gemtui.transcript.displays import display_of
    from gemtui.transcript.model import DiffDisplay

    details = mapping(value.get("details"))
    shown = display_of(details)
    return LiveQuestion(
        message=_short(value.get("message")) or "Waiting for your answer.",
        kind=_short(details.get("type")) or "",
        about=_subject(details),
        diff=shown if isinstance(shown, DiffDisplay) else None,
    )


def _subject(details: Part) -> str:
    """Return what a question concerns, such as a command or a file."""
    match details:
        case {"command": str(command)}:
            return command
        case {"filePath": str(path)}:
            return path
        case {"serverName": str(server), "toolName": str(tool)}:
            return f"{tool} of {server}"
        case {"prompt": str(prompt)}:
            return prompt
        case _:
            return string(details.get("title"))


# --- states ----------------------------------------------------------------------------------

_STATES = {
    "SessionStart": LiveState.IDLE,
    "AfterAgent": LiveState.IDLE,
    "Notification": LiveState.WAITING,
    "SessionEnd": LiveState.ENDED,
}


def _session(pid: int, heard: float, told: _LiveRecord, asked: bool) -> LiveSession:
    state, question = _state(pid, heard, told, asked), told.question
    works, waits = state is LiveState.WORKING, state is LiveState.WAITING
    return LiveSession(
        pid=pid,
        session=told.session,
        state=state,
        since=datetime.fromtimestamp(heard, UTC),
        project=told.project,
        name=told.name,
        tool=told.tool if works else None,
        question=(question or _STILL_ASKS) if waits else None,
    )


_STILL_ASKS = LiveQuestion(message="Waiting for your answer in the session's own terminal.")


def _state(pid: int, heard: float, told: _LiveRecord, asked: bool) -> LiveState:
    state = _STATES.get(told.event, LiveState.WORKING)
    if state is LiveState.ENDED:
        return state
    if not _is_running(pid, heard):
        return LiveState.KILLED
    if told.question is not None:
        return LiveState.WAITING if told.question.run else _after(told.question, pid, heard, told)
    if state is LiveState.WORKING and asked and _stands_still(pid):
        return LiveState.WAITING
    return state


def _after(question: LiveQuestion, pid: int, heard: float, told: _LiveRecord) -> LiveState:
    """Return a session's state after a question, judging by indirect signs.

    No hook reports the answer. After a “no”, no hook is called, but the session's file changes.
    After a “yes”, no hook is called until the call ends. `heard`: when a hook reported the
    question. `told`: what the hooks last reported about the process.
    """
    session = stat_if_possible(told.name, follow=True) if told.name is not None else None
    if session is not None and session.st_mtime > heard + _ANSWERED:
        return LiveState.IDLE
    if question.kind == "exec" and _began_something(pid, heard):
        return LiveState.WORKING
    return LiveState.WORKING if _keeps_drawing(pid, heard) else LiveState.WAITING


def _keeps_drawing(pid: int, heard: float) -> bool:
    """Return whether the CLI is still printing after its question has been drawn.

    If so, the question has been answered, because the CLI prints nothing while it is asking. Output
    right after a key press doesn't count, because it may be an echo. `heard`: when a hook reported
    the question.
    """
    typed, written = _terminal_times(pid)
    fresh = time.time() - written < _STEPS
    return fresh and written > heard + _DRAWN and written - typed > 1


def _stands_still(pid: int) -> bool:
    _, written = _terminal_times(pid)
    return 0 < written < time.time() - _STEPS


def _terminal_times(pid: int) -> tuple[float, float]:
    """Return when a process's terminal last had input and output; 0 if unknown."""
    with suppress(OSError):
        tty = terminal_of(pid)
        if tty is not None:
            facts = Path(tty).stat()
            return facts.st_atime, facts.st_mtime
    return 0, 0


def _is_running(pid: int, heard: float) -> bool:
    """Return whether a process that started before `heard` is still running.

    The start time is checked because process ids are reused.
    """
    import psutil

    try:
        process = psutil.Process(pid)
        gone = process.status() == psutil.STATUS_ZOMBIE
        return not gone and process.create_time() <= heard + _SLACK
    except psutil.NoSuchProcess:
        return False
    except (psutil.Error, OSError):
        return True


def terminal_of(pid: int) -> str | None:
    """Return a process's terminal, such as `/dev/pts/3`; None if it has none."""
    import psutil

    with suppress(OSError):  # psutil only knows terminals opened before its first query
        name = os.readlink(f"/proc/{pid}/fd/0")  # noqa: PTH115
        if name.startswith(("/dev/pts/", "/dev/tty")):
            return name
    if sys.platform != "win32":
        with suppress(psutil.Error, OSError):
            return psutil.Process(pid).terminal()
    return None


def _began_something(pid: int, since: float) -> bool:
    """Return whether a process has started a child process since the time `since`."""
    import psutil

    with suppress(psutil.Error, OSError):
        return any(child.create_time() > since for child in psutil.Process(pid).children())
    return False


def _of_each(found: Iterable[LiveSession]) -> Iterable[LiveSession]:
    """Return one entry per session: that of a living process, or else the latest one."""
    best: dict[str, LiveSession] = {}
    for live in found:
        key = live.session or str(live.pid)
        if key not in best or _standing(best[key]) < _standing(live):
            best[key] = live
    return best.values()


def _standing(live: LiveSession) -> tuple[bool, datetime]:
    return live.state not in GONE, live.since


def _urgency(live: LiveSession) -> tuple[int, float]:
    return list(LiveState).index(live.state), -live.since.timestamp()
