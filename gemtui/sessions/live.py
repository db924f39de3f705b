"""What sessions of Gemini CLI do right now, in whatever terminal.

gemtui's hooks write a small file for each CLI process (assets/gemini-cli.md#hooks): its name is the
process's id, its content the JSON that the last hook got. That says whether the session works, is
idle, or waits for an answer of the person. What no hook tells is looked at here: a process that was
killed, a question that was answered with no, a call that was allowed and goes on, and a question
that still stands when a parallel call has ended. The last two are known by the terminal: while the
CLI works something turns there, while it asks all stands still.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from gemtui.files import open_regular, read_small
from gemtui.jsonfile import object_of
from gemtui.jsonin import loads
from gemtui.paths import live_dir
from gemtui.transcript.display_model import DiffDisplay
from gemtui.transcript.displays import display_of
from gemtui.transcript.parts import Part, mapping, string
from gemtui.transcript.tools import ToolKind, kind_of, target, tool_call

LARGEST = 4_000_000
"""Bytes; of a larger file only the beginning is read, which says all but the question."""
MOST_FILES = 1_000
KEPT_ENDED, KEPT = 60.0, 86_400.0
"""Seconds for which the file of a process that is gone is kept: one that ended, and any other."""
_HEAD = 64_000
_LONGEST = 4_000
"""Characters of an id, a path, a tool's name or a message."""
_SLACK = 2.0
"""Seconds by which the clocks of files and processes may differ."""
_ANSWERED = 0.05
"""Seconds after a question in which the CLI may still write down how it came to ask."""
_DRAWN, _STEPS = 4.0, 10.0
"""Seconds after a question in which it is drawn; and within which one sees whether a terminal is
written to: Linux notes that in steps of eight."""
_RUN_ASKS = "gemtui_asks"
"""The first name in a live file while a run of gemtui asks (`gemtui/extension/files/ask.py`)."""


class LiveState(StrEnum):
    """What a session does; the names are those of `gemtui sessions --live --json`."""

    WAITING = "waiting"
    """For the person's answer to a question."""
    WORKING = "working"
    ACTIVE = "active"
    """Its file grew in the last minute, or a run writes it: without hooks that is all we know."""
    IDLE = "idle"
    """For the next prompt."""
    KILLED = "killed"
    """Its process is gone without a last word."""
    ENDED = "ended"


GONE = frozenset({LiveState.KILLED, LiveState.ENDED})
"""The states of sessions that no process has open any more."""


class LiveQuestion(Struct, frozen=True, kw_only=True):
    """What the CLI asks the person: raw and foreign text.

    `kind`: edit, exec, mcp, info, or whatever else a CLI says. `about`: the command, the file, the
    tool or the page. `diff`: the change that is asked about, None = no edit. `run`: a run of gemtui
    asks it, which is answered in gemtui.
    """

    message: str
    kind: str = ""
    about: str = ""
    diff: DiffDisplay | None = None
    run: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        diff = None if self.diff is None else self.diff.diff
        return {"message": self.message, "kind": self.kind, "about": self.about, "diff": diff}


class LiveSession(Struct, frozen=True, kw_only=True):
    """A session that a CLI process has open, or had open when it was killed.

    `session`: its id, "" = unknown. `since`: when it began to wait, got idle or ended; of one that
    works, when its last step began; else when it was last heard of. `project`: the CLI's working
    folder, None = unknown. `name`: the path of the session's file. `tool`: the one that works.
    """

    pid: int
    session: str
    state: LiveState
    since: datetime
    project: str | None = None
    name: str | None = None
    tool: str | None = None
    question: LiveQuestion | None = None


class _Told(Struct, frozen=True, kw_only=True):
    """What one live file says."""

    event: str
    session: str
    project: str | None
    name: str | None
    tool: str | None
    question: LiveQuestion | None


class LiveFolder:
    """The live files of one folder; a file that did not change is not read again."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = live_dir() if folder is None else folder
        self._told: dict[int, tuple[tuple[int, ...], _Told | None]] = {}

    def look(self) -> tuple[LiveSession, ...]:
        """Return one entry for each session: waiting ones first, then the newest.

        What is no live file, or can't be read, is left out. Raises nothing.
        """
        files = dict(_files(self.folder))
        self._told = {pid: self._read(pid, facts) for pid, facts in files.items()}
        found = (
            _session(pid, files[pid].st_mtime, told, self._asked(pid))
            for pid, (_, told) in self._told.items()
            if told is not None
        )
        return tuple(sorted(_of_each(found), key=_urgency))

    def _asked(self, pid: int) -> bool:
        """Whether the CLI has asked something since its last prompt."""
        return os.path.lexists(self.folder / f"{pid}.asked")

    def _read(self, pid: int, facts: os.stat_result) -> tuple[tuple[int, ...], _Told | None]:
        stamp = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
        known = self._told.get(pid)
        if known is not None and known[0] == stamp:
            return known
        return stamp, _told(self.folder / str(pid), facts.st_size)

    def claim(self, live: LiveSession) -> bool:
        """Return whether nobody has claimed before to tell of what a session does now.

        Of several programs that follow sessions one tells. True as well where that can't be
        settled: twice is better than never.
        """
        place = self.folder / f".{live.pid}.{live.since.timestamp():.3f}.told"
        with suppress(OSError):
            try:
                place.touch(mode=0o600, exist_ok=False)
            except FileExistsError:
                return False
            for old in self.folder.glob(f".{live.pid}.*.told"):
                if old != place:
                    old.unlink()
        return True

    def clear(self) -> None:
        """Remove what processes have left that are long gone. Raises nothing."""
        now = time.time()
        for pid, facts in _files(self.folder):
            _, told = self._read(pid, facts)
            ended = told is not None and told.event == "SessionEnd"
            old = now - facts.st_mtime > (KEPT_ENDED if ended else KEPT)
            if old and not _lives(pid, facts.st_mtime):
                with suppress(OSError):
                    (self.folder / str(pid)).unlink()
        with suppress(OSError):
            for path in (*self.folder.glob(".[1-9]*.[1-9]*"), *self.folder.glob("[1-9]*.asked")):
                if now - path.lstat().st_mtime > KEPT:
                    path.unlink()


def _files(folder: Path) -> Iterator[tuple[int, os.stat_result]]:
    """The live files by process id: links and what has another name are none."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in islice(entries, MOST_FILES):
            if re.fullmatch("[1-9][0-9]{0,9}", entry.name, re.ASCII):
                with suppress(OSError):
                    facts = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(facts.st_mode):
                        yield int(entry.name), facts


# --- what a file says ------------------------------------------------------------------------


def _told(path: Path, size: int) -> _Told | None:
    try:
        if size > LARGEST:
            return _told_by(_beginning(path))
        data = read_small(path, LARGEST)
    except OSError:
        return None
    try:
        return _told_by(object_of(data, path))
    except OSError:
        return _told_by(_fields(data[:_HEAD]))


def _beginning(path: Path) -> Part:
    with open_regular(path) as stream:
        return _fields(stream.read(_HEAD))


_FIELD = re.compile(rb'"([a-z_]{1,20})"\s*:\s*("(?:[^"\\]|\\.){0,4000}")')


def _fields(data: bytes) -> Part:
    """The first texts of an object that is cut: those of the hook stand before foreign ones."""
    found: dict[str, object] = {}
    for name, value in _FIELD.findall(data):
        with suppress(ValueError):
            found.setdefault(name.decode(), loads(value))
    return found


def _told_by(value: Part) -> _Told | None:
    event = string(value.get("hook_event_name"))
    if not event:
        return None
    asked = _question
    if event == "BeforeTool" and next(iter(value)) == _RUN_ASKS:
        event, asked = "Notification", _question_of_run
    return _Told(
        event=event,
        session=_short(value.get("session_id")) or "",
        project=_path(value.get("cwd")),
        name=_path(value.get("transcript_path")),
        tool=_short(value.get("tool_name")),
        question=asked(value) if event == "Notification" else None,
    )


def _question_of_run(value: Part) -> LiveQuestion:
    name = _short(value.get("tool_name")) or "a tool"
    call = tool_call({"name": name, "args": value.get("tool_input")})
    return LiveQuestion(
        message=f"A run of gemtui asks: {name}?",
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
    details = mapping(value.get("details"))
    shown = display_of(details)
    return LiveQuestion(
        message=_short(value.get("message")) or "It asks something.",
        kind=_short(details.get("type")) or "",
        about=_about(details),
        diff=shown if isinstance(shown, DiffDisplay) else None,
    )


def _about(details: Part) -> str:
    """The one thing that a person has to know of a question."""
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


# --- what a session does ---------------------------------------------------------------------

_STATES = {
    "SessionStart": LiveState.IDLE,
    "AfterAgent": LiveState.IDLE,
    "Notification": LiveState.WAITING,
    "SessionEnd": LiveState.ENDED,
}


def _session(pid: int, heard: float, told: _Told, asked: bool) -> LiveSession:
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


_STILL_ASKS = LiveQuestion(message="It asks something: its own terminal says what.")


def _state(pid: int, heard: float, told: _Told, asked: bool) -> LiveState:
    state = _STATES.get(told.event, LiveState.WORKING)
    if state is LiveState.ENDED:
        return state
    if not _lives(pid, heard):
        return LiveState.KILLED
    if told.question is not None:
        return LiveState.WAITING if told.question.run else _after(told.question, pid, heard, told)
    if state is LiveState.WORKING and asked and _stands_still(pid):
        return LiveState.WAITING
    return state


def _after(question: LiveQuestion, pid: int, heard: float, told: _Told) -> LiveState:
    """No hook comes for "no", which is written down, nor for "yes" before the call has ended."""
    with suppress(OSError):
        if told.name is not None and Path(told.name).stat().st_mtime > heard + _ANSWERED:
            return LiveState.IDLE
    if question.kind == "exec" and _began_something(pid, heard):
        return LiveState.WORKING
    return LiveState.WORKING if _moves(pid, heard) else LiveState.WAITING


def _moves(pid: int, heard: float) -> bool:
    """Whether the CLI goes on drawing since it asked, and not as keys were typed."""
    typed, written = _terminal_times(pid)
    fresh = time.time() - written < _STEPS
    return fresh and written > heard + _DRAWN and written - typed > 1


def _stands_still(pid: int) -> bool:
    _, written = _terminal_times(pid)
    return 0 < written < time.time() - _STEPS


def _terminal_times(pid: int) -> tuple[float, float]:
    """When something was typed in a process's terminal, and written there; 0 = not known."""
    with suppress(OSError):
        if (tty := terminal_of(pid)) is not None:
            facts = Path(tty).stat()
            return facts.st_atime, facts.st_mtime
    return 0, 0


def _lives(pid: int, heard: float) -> bool:
    """Whether the process goes on that was there then: a younger one only has its number."""
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
    """Return the terminal of a process, such as `/dev/pts/3`; None = it has none, or is gone."""
    import psutil

    with suppress(OSError):  # psutil knows no terminals that have come since it looked first
        name = os.readlink(f"/proc/{pid}/fd/0")  # noqa: PTH115
        if name.startswith(("/dev/pts/", "/dev/tty")):
            return name
    with suppress(psutil.Error, OSError):
        return psutil.Process(pid).terminal()
    return None


def _began_something(pid: int, since: float) -> bool:
    """Whether a process has started another one since then."""
    import psutil

    with suppress(psutil.Error, OSError):
        return any(child.create_time() > since for child in psutil.Process(pid).children())
    return False


def _of_each(found: Iterable[LiveSession]) -> Iterable[LiveSession]:
    """One for each session: of several processes one that lives, else the last."""
    best: dict[str, LiveSession] = {}
    for each in found:
        key = each.session or str(each.pid)
        if key not in best or _standing(best[key]) < _standing(each):
            best[key] = each
    return best.values()


def _standing(live: LiveSession) -> tuple[bool, datetime]:
    return live.state not in GONE, live.since


def _urgency(live: LiveSession) -> tuple[int, float]:
    return list(LiveState).index(live.state), -live.since.timestamp()
