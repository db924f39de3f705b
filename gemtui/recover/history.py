"""Find what stored sessions recorded about a file, even a moved or deleted one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path, PurePath

from msgspec import Struct
from msgspec.structs import replace

from gemtui.calls.paths import asked_path, is_windows, recorded_path, recorded_paths
from gemtui.calls.shell.words import Unclear, plain_commands
from gemtui.files import is_folder, open_regular
from gemtui.recover.rebuilt import (
    CallEvidence,
    Diff,
    Rebuilt,
    RecordedEdit,
    RecordedLines,
    RecordedSource,
    Shown,
    Whole,
    rebuild,
)
from gemtui.sessions.catalog.read_files import read_log
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.projects import folder_names
from gemtui.sessions.store.store import Problem, SessionKind, never
from gemtui.sessions.written_files import normalized_path
from gemtui.transcript.displays import is_rebuilt
from gemtui.transcript.model import DiffDisplay, Message, TextDisplay, ToolCall, ToolStatus
from gemtui.transcript.tool_output import command_output, files_read, part_read
from gemtui.transcript.tools import ToolKind, kind_of

_CHUNK = 1024 * 1024
_WORD = re.compile(r"[A-Za-z0-9_]+")
_CUT = "Output too large. "
"""The first words of an output whose middle the CLI has omitted."""


class Recovered(Struct, frozen=True, kw_only=True):
    """The result of recovering a file.

    `rebuilt`: None if nothing was found. `problems`: the sessions that could not be read. `notes`:
    notes for the user, each a clause.
    """

    path: Path
    rebuilt: Rebuilt | None
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


def recover_file(
    path: Path,
    sessions: Iterable[Summary],
    *,
    at: datetime | None = None,
    cancelled: Callable[[], bool] = never,
) -> Recovered:
    """Rebuild a file's newest recorded contents, or its contents at the time `at`.

    `path`: absolute; the file need not exist. `sessions`: the sessions to search; their copies,
    which may contain more, are searched as well. If no session names the file, it may have been
    moved together with its project. Then the sessions of projects that no longer exist are searched
    for a file at the same place in a project of the same name.
    """
    every = [summary for session in sessions for summary in (session, *session.copies)]
    every = [session for session in every if session.kind is not SessionKind.CHECKPOINT]
    needle = max(_WORD.findall(path.name), key=len, default="").encode()
    every = [session for session in every if _mentions(session.path, needle)]
    records, problems = _records(every, _Named(path), cancelled)
    notes: tuple[str, ...] = ()
    if not records:
        moved = [
            session for session in every if session.project and not is_folder(Path(session.project))
        ]
        records, _ = _records(moved, _Moved(path), cancelled)
        records = [replace(record, certain=False) for record in records]
        if records:
            notes = ("the file's project was moved, so every line is a guess",)
    rebuilt = rebuild(record for record in records if at is None or record.source.time <= at)
    if rebuilt is None and at is not None and (later := _before_later(records)) is not None:
        rebuilt = rebuild([later])
        notes = (
            *notes,
            (
                "no session had recorded the file by that time, so this is its text before the "
                "next recorded change"
            ),
        )
    return Recovered(path=path, rebuilt=rebuilt, problems=tuple(problems), notes=notes)


def _before_later(records: Sequence[CallEvidence]) -> CallEvidence | None:
    """Return evidence of the file's contents before its first recorded change.

    `records`: all evidence about the file. Returns None if those contents were not recorded.
    """
    first = min(records, key=lambda record: record.source.time, default=None)
    if first is None or not isinstance(first.shown, Whole) or first.shown.before is None:
        return None
    return replace(first, shown=Whole(text=first.shown.before), writes=False, certain=False)


# --- files named by calls ------------------------------------------------------------------------


_IsIt = Callable[[str | None, PurePath], bool]
"""Returns whether a path, found in a session of the given project, is the file's."""


class _Named:
    """Tests whether a path is one of a file's names."""

    def __init__(self, path: Path) -> None:
        self._names = {recorded_path(name) for name in (str(path), *folder_names(path))}

    def __call__(self, _project: str | None, path: PurePath) -> bool:
        return path in self._names


class _Moved(Struct, frozen=True):
    """Tests whether a path may be that of a file that was moved with its project.

    That is so if `path` is at the same place inside a folder that has the project's name.
    """

    path: Path

    def __call__(self, project: str | None, path: PurePath) -> bool:
        if project is None or not path.is_relative_to(folder := recorded_path(project)):
            return False
        inner = path.relative_to(folder)
        end = self.path.parts[-len(inner.parts) - 1 :]
        return type(folder)(*end) == type(folder)(folder.name, inner)


class _Names(Struct, frozen=True):
    """Tests whether the names in a session of `project` mean the file that `is_it` accepts."""

    is_it: _IsIt
    project: str | None

    def literally(self, name: str) -> bool:
        """Return whether a file's own path, such as one in a result, means the file."""
        return self._known(name) and self.is_it(self.project, normalized_path(self.project, name))

    def to_cli(self, name: str) -> bool:
        """Return whether a call's argument means the file, as the CLI reads it."""
        paths = recorded_paths(name, self.project or "") if self._known(name) else ()
        return any(self.is_it(self.project, recorded_path(path)) for path in paths)

    def _known(self, name: str) -> bool:
        return bool(name) and (self.project is not None or name.startswith("/") or is_windows(name))


# --- sessions ------------------------------------------------------------------------------------


def _records(
    sessions: Sequence[Summary], is_it: _IsIt, cancelled: Callable[[], bool]
) -> tuple[list[CallEvidence], list[Problem]]:
    records: dict[tuple[str, datetime, str], CallEvidence] = {}
    problems = []
    for session in sessions:
        if cancelled():
            break
        read = read_log(session.path, partial(_of_log, session=session, is_it=is_it), cancelled)
        if isinstance(read, Problem):
            problems.append(read)
            continue
        for record in read:
            records.setdefault((record.source.call, record.source.time, record.source.tool), record)
    return list(records.values()), problems


def _mentions(path: Path, needle: bytes) -> bool:
    """Return whether a file contains the bytes `needle`; True if it is unreadable.

    An unreadable file is reported later, when it is loaded.
    """
    try:
        with open_regular(path) as file:
            end = b""
            while chunk := file.read(_CHUNK):
                if needle in end + chunk:
                    return True
                end = chunk[-len(needle) :]
    except OSError:
        return True
    return not needle


def _of_log(log: SessionLog, session: Summary, is_it: _IsIt) -> list[CallEvidence]:
    """Return one session's evidence about a file.

    Rewound and failed calls are included, because they may have changed the file.
    """
    evidence = []
    names = _Names(is_it, session.project)
    transcript = transcript_of(log, dropped=True, in_flight=False)
    for position, outline in enumerate(transcript.outlines):
        if not outline.calls:
            continue
        message = transcript.read(position)
        for call in (block for block in message.blocks if isinstance(block, ToolCall)):
            seen = _seen(call, names)
            if seen is not None:
                evidence.append(_record(call, message, seen, session.owner, session.when))
    return evidence


class _Seen(Struct, frozen=True, kw_only=True):
    shown: Shown
    writes: bool = False
    certain: bool = True


def _record(
    call: ToolCall, message: Message, seen: _Seen, session: str, fallback: datetime
) -> CallEvidence:
    time = call.time or message.time or fallback
    source = RecordedSource(session=session, time=time, call=call.id, tool=call.name)
    return CallEvidence(
        source=source,
        begun=min(time, message.time or time),
        shown=seen.shown,
        writes=seen.writes,
        certain=seen.certain and (call.time or message.time) is not None,
    )


# --- evidence in a call --------------------------------------------------------------------------


def _seen(call: ToolCall, names: _Names) -> _Seen | None:
    match kind_of(call.name):
        case ToolKind.WRITE | ToolKind.EDIT as kind:
            return _of_write(call, kind, names)
        case ToolKind.READ if call.status is ToolStatus.SUCCESS and call.output:
            return _of_read(call, call.output, names)
        case ToolKind.SHELL if call.status is ToolStatus.SUCCESS:
            return _of_command(call, names)
    return None


def _of_write(call: ToolCall, kind: ToolKind, names: _Names) -> _Seen | None:
    change = call.display if isinstance(call.display, DiffDisplay) else None
    made = call.status is ToolStatus.SUCCESS
    recorded = change is not None and not is_rebuilt(change)
    name = change.path if change is not None and recorded else ""
    if not (names.literally(name) or names.to_cli(asked_path(call.args))):
        return None
    if not made:
        if change is None or not recorded or change.original is None:
            return None
        return _Seen(shown=Whole(text=change.original), certain=False)
    if change is not None and recorded:
        if change.new is not None and (change.is_new or change.original is not None):
            return _Seen(shown=Whole(text=change.new, before=change.original), writes=True)
        return _Seen(shown=Diff(text=change.diff), writes=True)
    content = call.args.get("content")
    if kind is ToolKind.WRITE and isinstance(content, str):
        return _Seen(shown=Whole(text=content), writes=True, certain=False)
    old, new = call.args.get("old_string"), call.args.get("new_string")
    if kind is ToolKind.EDIT and isinstance(old, str) and isinstance(new, str):
        several = bool(call.args.get("allow_multiple") or call.args.get("expected_replacements"))
        shown: Shown = RecordedEdit(old=old, new=new, several=several) if old else Whole(text=new)
        return _Seen(shown=shown, writes=True, certain=False)
    return None


def _of_read(call: ToolCall, output: str, names: _Names) -> _Seen | None:
    display = call.display
    if not asked_path(call.args):
        inside = next((text for name, text in files_read(output) if names.literally(name)), None)
        return None if inside is None else _Seen(shown=Whole(text=inside), certain=False)
    if not names.to_cli(asked_path(call.args)):
        return None
    shown = display.text if isinstance(display, TextDisplay) else ""
    part = part_read(output, shown, call.args)
    if part is None:
        return None
    lines = tuple(part.text.split("\n"))
    if part.first == 1 and part.total == len(lines):
        return _Seen(shown=Whole(text=part.text), certain=part.certain)
    return _Seen(
        shown=RecordedLines(first=part.first, lines=lines, total=part.total), certain=part.certain
    )


def _of_command(call: ToolCall, names: _Names) -> _Seen | None:
    if is_windows(names.project or ""):
        return None  # it was a command of PowerShell, and gemtui reads bash
    command = call.args.get("command")
    folder = call.args.get("dir_path") or call.args.get("directory")
    output = (
        call.display.text if isinstance(call.display, TextDisplay) else command_output(call.output)
    )
    if not isinstance(command, str) or call.exit_code or output.startswith(_CUT):
        return None
    directory = folder if isinstance(folder, str) else ""
    shown = _shown_by(command, output, lambda word: names.literally(str(PurePath(directory, word))))
    return None if shown is None else _Seen(shown=shown, certain=False)


# --- a command's output --------------------------------------------------------------------------


# Only commands without variables, substitutions and the like are considered, because only their
# arguments are certain. A terminal changes tabs and trailing spaces, so the contents are never
# certain.
_LINES = re.compile(r"(\d{1,9})(?:,(\d{1,9}))?p")
_COUNT = re.compile(r"-(?:n)?(\d{1,9})|--lines=(\d{1,9})")
_DEFAULT = 10
"""The number of lines that head and tail print by default."""


def _shown_by(command: str, output: str, names: Callable[[str], bool]) -> Shown | None:
    """Return the part of a file that a command's output shows; None if there is none.

    `names`: returns whether a word of the command names the file, relative to the command's folder.
    """
    try:
        (command_words,) = [[word.text for word in plain] for plain in plain_commands(command)]
    except (Unclear, ValueError):
        return None
    if not output.strip() or len(command_words) < 2:
        return None
    lines = tuple(output.removesuffix("\n").split("\n"))
    program, *rest = command_words
    if program == "git":
        return _of_git(rest, output, lines, names)
    if not names(rest[-1]):
        return None
    options = rest[:-1]
    match program:
        case "cat" if not options:
            return Whole(text="\n".join((*lines, "")))
        case "head" if (many := _count(options)) is not None:
            if len(lines) < many:
                return Whole(text="\n".join((*lines, "")))
            return RecordedLines(first=1, lines=lines)
        case "tail" if (many := _count(options)) is not None:
            if len(lines) < many:
                return Whole(text="\n".join((*lines, "")))
            return RecordedLines(first=0, lines=(*lines, ""))
        case "sed" if len(options) == 2 and options[0] == "-n":
            match = _LINES.fullmatch(options[1])
            return (
                None if match is None else RecordedLines(first=max(1, int(match[1])), lines=lines)
            )
    return None


def _count(options: Sequence[str]) -> int | None:
    """Return the number of lines that head or tail print; None for other options."""
    if not options:
        return _DEFAULT
    text = "".join(options) if options[0] == "-n" and len(options) == 2 else options[0]
    match = _COUNT.fullmatch(text) if len(options) == 1 or options[0] == "-n" else None
    return None if match is None else int(match[1] or match[2])


def _of_git(
    words: Sequence[str], output: str, lines: Sequence[str], names: Callable[[str], bool]
) -> Shown | None:
    match [*words]:
        case ["show", wanted]:
            _, colon, name = wanted.partition(":")
            if colon and names(name.removeprefix("./")):
                return Whole(text="\n".join((*lines, "")))
        case ["diff", name] | ["diff", "--", name] if names(name):
            return Diff(text=output.rstrip("\n") + "\n")
    return None
