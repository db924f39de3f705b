"""Find the files that a run changes, from its calls, file events and the disk.

The rules are described in assets/architecture.md#the-files-of-a-run.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePath
from stat import S_ISDIR, S_ISREG

from msgspec.structs import replace as call_with
from watchfiles import Change

from gemtui.agent.fold import Fold
from gemtui.agent.gemini import GeminiRun
from gemtui.calls.paths import tool_path
from gemtui.files import SMALL, changed_at, read_small, resolved, stat_if_possible
from gemtui.runs.ending import RunState
from gemtui.runs.enrich import enrich
from gemtui.runs.folder_state import MOST, FolderState, OwnFiles, kept, too_large
from gemtui.runs.listing import Run
from gemtui.runs.outcome import was_written
from gemtui.transcript.displays import content_diff
from gemtui.transcript.model import DiffDisplay, ToolCall, ToolStatus
from gemtui.transcript.tools import kind_of, requested_change
from gemtui.transcript.writes import (
    SAME,
    UNCONFIRMED,
    Doer,
    FileWrite,
    Letter,
    WriteStatus,
    text_after,
    text_before,
    write_of,
    writing_calls,
)

GONE = "gone"
GONE_AGAIN = "created and then deleted"
CONFIRMED = "no result, but the change is on disk"
NOT_MADE = "the last write did not happen"
NOT_KNOWN = "the last write is unconfirmed"
_SLACK = 0.5
"""A shell command may change files this many seconds before its reported start."""

Span = tuple[float, float]
"""When a shell command started and ended, in seconds since the epoch.

The end is infinite while the command is running.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStates:
    """The difference between a file's former and current contents.

    `diff`: None if it can't be computed. In that case, `text` contains the current contents, as far
    as they can be shown. `why`: a sentence about the difference for the user.
    """

    diff: DiffDisplay | None = None
    text: str = ""
    why: str = ""


class FileTracker:
    """Finds the files that a run has changed in the folder `root`.

    Its methods read the disk. `ended`: when a past run ended; None while the run is working. After
    a run has ended, the user or other programs may have changed its files, so the files' current
    contents are not attributed to the run.
    """

    def __init__(self, root: Path, *, ended: datetime | None = None) -> None:
        self._root, self._ended = root, ended
        self._before: FolderState | None = None
        self._rows: dict[PurePath, tuple[object, FileWrite]] = {}

    def record_before(self, began: int) -> None:
        """Record the folder's state when the run starts.

        `began`: when the run was requested, in nanoseconds since the epoch.
        """
        if not too_large(self._root):
            self._before = FolderState(self._root, began)

    def changes_after(self, seen: Mapping[Path, float]) -> Mapping[Path, float]:
        """Map each changed file to the time of its change.

        `seen`: the changes that were observed while they happened. The result also includes up to
        `MOST` other files that have changed since the run started, judging by the disk.
        """
        if self._before is None:
            return seen
        wanted = OwnFiles(self._root)
        changed = (path for path in self._before.changed() if wanted(Change.modified, str(path)))
        new = kept(self._root, (path for path in changed if path not in seen))[:MOST]
        return {**seen, **{path: changed_at(path) for path in new}}

    def rows(
        self,
        calls: Iterable[ToolCall],
        seen: Mapping[Path, float] | None = None,
        shells: Sequence[Span] = (),
    ) -> tuple[FileWrite, ...]:
        """Return a row for each of the run's files, for display.

        Files that calls were to write come first. `seen`: when other files were changed, as yielded
        by `seen_files`. `shells`: the times at which the run's shell commands were running; changes
        in these times are attributed to the commands.
        """
        times = dict(seen or {})
        rows = [
            self._written(Path(path), tries, times.pop(Path(path), None), shells)
            for path, tries in self._tries(calls).items()
        ]
        rows += filter(None, (self._seen(path, at, shells) for path, at in times.items()))
        return tuple(rows)

    def difference(self, path: Path, calls: Iterable[ToolCall]) -> FileStates:
        """Return how a file differs from its contents before the run.

        For a past run, this is the change made by the run's calls.
        """
        done = [call for call in self._tries(calls).get(path, ()) if _succeeded(call)]
        before = self._text_before(path, done)
        if self._ended is not None and done:
            return _told(path, before, done)
        if _facts(path) is None:
            if before is None:
                return FileStates(why=_GONE_UNKNOWN)
            return FileStates(diff=content_diff(str(path), before, ""), why=_GONE)
        after = _text(path)
        if after is None:
            return FileStates(why=f"The file can't be shown, because it is {_unread(path)}.")
        if before is None:
            return FileStates(text=after, why=_NO_BASE)
        same = "" if before != after else _SAME if after else "The file is empty."
        return FileStates(diff=content_diff(str(path), before, after), why=same)

    # --- one row -------------------------------------------------------------------------------

    def _tries(self, calls: Iterable[ToolCall]) -> dict[Path, list[ToolCall]]:
        """Map each file to the calls that were to write it.

        The paths start with `root`, even if a call used a different path to that folder, such as a
        link.
        """
        found: dict[Path, list[ToolCall]] = {}
        real = resolved(self._root)
        for name, tries in writing_calls(calls, self._root, find=self._file_of).items():
            inside = name.is_relative_to(real)
            path = self._root / name.relative_to(real) if inside else Path(name)
            found.setdefault(path, []).extend(tries)
        return found

    def _file_of(self, asked: str) -> str:
        """Return the file that the CLI writes if a call names `asked`."""
        with suppress(OSError, ValueError):
            return tool_path(asked, str(self._root))
        return asked

    def _written(
        self, path: Path, calls: Sequence[ToolCall], at: float | None, shells: Sequence[Span]
    ) -> FileWrite:
        """Return the row for a file that calls were to write.

        `at`: when the file was observed to change; None if it was not. `shells`: when the run's
        shell commands were running.
        """
        settled = [self._settled(call, path) for call in calls]
        row = write_of(path, settled)
        if row.written is WriteStatus.YES and self._ended is None:
            row = self._now(row, settled, at, shells)
        elif row.written is not WriteStatus.PENDING and at is not None:
            row = replace(self._seen(path, at, shells) or row, calls=row.calls)
        if row.written is not WriteStatus.YES:
            return row
        note = _settling(calls[-1], settled[-1])
        return replace(row, note=", ".join(filter(None, (row.note, note))))

    def _settled(self, call: ToolCall, path: Path) -> ToolCall:
        """Mark a call without a result as successful or failed, if the disk shows which.

        All other calls are returned unchanged.
        """
        if call.status not in UNCONFIRMED:
            return call
        untouched = self._before is not None and self._before.untouched(path)
        found = False if untouched else was_written(call, path, ended=self._ended)
        if found is None:
            return call
        if not found:
            return call_with(call, status=ToolStatus.ERROR)
        change = requested_change(kind_of(call.name), call.args, None)
        return call_with(call, status=ToolStatus.SUCCESS, display=change)

    def _seen(self, path: Path, at: float, shells: Sequence[Span]) -> FileWrite | None:
        """Return the row for a file that was observed to change but that no call names.

        `at`: the time of the change. `shells`: when the run's shell commands were running. Returns
        None if the file is unchanged after all.
        """
        before = self._before
        if before is not None and (before.was_folder(path) or before.untouched(path)):
            return None
        if _facts(path) is None and self._existed(path) is False:
            return None
        row = FileWrite(path=path, letter=Letter.UNKNOWN, written=WriteStatus.YES)
        row = self._now(row, (), at, shells)
        return replace(row, by=_doer((at,), shells))

    def _now(
        self, row: FileWrite, calls: Sequence[ToolCall], at: float | None, shells: Sequence[Span]
    ) -> FileWrite:
        """Return a file's row, updated with the file's current state."""
        path = Path(row.path)
        existed = self._existed(path)
        if existed is None and row.letter is not Letter.UNKNOWN:
            existed = row.letter is Letter.MODIFIED
        facts = _facts(path)
        if facts is None:
            by = _doer((at or 0.0, changed_at(path)), shells)
            by = Doer.TOOL if at is None and by is Doer.SEEN else by
            return replace(self._gone(row, existed, calls), by=by)
        key = (row, existed, facts.st_ino, facts.st_size, facts.st_ctime_ns)
        if self._rows.get(path, (None, None))[0] != key:
            self._rows[path] = key, self._compared(row, existed, calls)
        return self._rows[path][1]

    def _compared(
        self, row: FileWrite, existed: bool | None, calls: Sequence[ToolCall]
    ) -> FileWrite:
        """Return the row for an existing file, compared with its contents before the run.

        `existed`: whether the file existed before the run; None if unknown.
        """
        path = Path(row.path)
        if existed is not None:
            row = replace(row, letter=Letter.MODIFIED if existed else Letter.CREATED)
        before = "" if existed is False else self._text_before(path, calls)
        after = _text(path)
        if before is None or after is None:
            return replace(row, note=_unread(path))
        diff = content_diff(path.name, before, after)
        same = SAME if existed and before == after else ""
        return replace(row, added=diff.added, removed=diff.removed, net=True, note=same)

    def _gone(self, row: FileWrite, existed: bool | None, calls: Sequence[ToolCall]) -> FileWrite:
        """Return the row for a file that no longer exists.

        `existed`: whether the file existed before the run; None if unknown.
        """
        if existed is None:
            return replace(row, letter=Letter.UNKNOWN, added=None, removed=None, note=GONE)
        if not existed:
            return replace(
                row, letter=Letter.DELETED, added=0, removed=0, net=True, note=GONE_AGAIN
            )
        before = self._text_before(Path(row.path), calls)
        removed = None if before is None else content_diff("", before, "").removed
        return replace(row, letter=Letter.DELETED, added=0, removed=removed, net=True, note="")

    # --- the former state ----------------------------------------------------------------------

    def _existed(self, path: Path) -> bool | None:
        return None if self._before is None else self._before.existed(path)

    def _text_before(self, path: Path, calls: Sequence[ToolCall]) -> str | None:
        """Return a file's text before the run; if that is unknown, before the first call.

        Returns None if neither is known.
        """
        if self._existed(path) is False:
            return ""
        content = None if self._before is None else self._before.content(path)
        if content is not None:
            return _decoded(content)
        return text_before([call for call in calls if _succeeded(call)])


def _told(path: Path, before: str | None, done: Sequence[ToolCall]) -> FileStates:
    """Return a file's change as reported by a past run's calls.

    `before`: the file's text before the run; None if unknown. `done`: the successful calls that
    wrote the file. The disk is not read, because the file may have changed since the run.
    """
    after, last = text_after(done), done[-1].display
    if before is not None and after is not None:
        return FileStates(diff=content_diff(str(path), before, after))
    if isinstance(last, DiffDisplay):
        return FileStates(diff=last, why=_LAST if len(done) > 1 else "")
    return FileStates(why="How this run changed the file is unknown.")


_LAST = "The file's contents before the run are unknown; this is the last change."
_SAME = "The file has the same contents as before the run."
_GONE_UNKNOWN = "The file no longer exists, and its contents before the run are unknown."
_GONE = "The file no longer exists; these are its contents from before the run."
_NO_BASE = "The file's contents before the run are unknown; these are its current contents."


def _succeeded(call: ToolCall) -> bool:
    return call.status is ToolStatus.SUCCESS


def _settling(call: ToolCall, settled: ToolCall) -> str:
    """Return the note to show if the last call that wrote a file has no result.

    Returns "" if `call` has a result. `settled`: the call as returned by `_settled`.
    """
    if call.status not in UNCONFIRMED:
        return ""
    if settled is call:
        return NOT_KNOWN
    return CONFIRMED if _succeeded(settled) else NOT_MADE


def _doer(times: Iterable[float], shells: Sequence[Span]) -> Doer:
    """Attribute a change to a shell command if one was running at the time.

    `times`: when the change may have happened. `shells`: when commands were running.
    """
    by_shell = any(start - _SLACK <= at <= end for at in times for start, end in shells)
    return Doer.SHELL if by_shell else Doer.SEEN


def _facts(path: Path) -> os.stat_result | None:
    """Return the `lstat` result of a file; None if it is missing or a folder."""
    facts = stat_if_possible(path)
    return None if facts is None or S_ISDIR(facts.st_mode) else facts


def _text(path: Path) -> str | None:
    """Return a file's contents; None if it is not a regular text file or too large."""
    facts = _facts(path)
    if facts is None or not S_ISREG(facts.st_mode):
        return None
    with suppress(OSError):
        return _decoded(read_small(path))
    return None


def _decoded(content: bytes) -> str | None:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _unread(path: Path) -> str:
    """Return why a file's contents can't be shown, such as "not text"; "" if they can."""
    facts = _facts(path)
    if facts is None:
        return GONE
    if not S_ISREG(facts.st_mode):
        return "not a regular file"
    if facts.st_size > SMALL:
        return f"larger than {SMALL:,} bytes"
    return "" if _text(path) is not None else "not text"


def recorded_files(run: Run, home: Path) -> tuple[FileWrite, ...] | None:
    """Return the files of a finished run; None if it is still working or unreadable.

    `home`: the store that contains the run's session. Reads all of the run's output.
    """
    request = run.folder.request()
    if request is None or run.state is RunState.RUNNING:
        return None
    fold = Fold("", began=run.started)

    async def read() -> None:
        async for event in GeminiRun(run.folder, request).events():
            fold.add(event)

    asyncio.run(read())
    told = enrich(fold.transcript(), home, run.session)
    return FileTracker(Path(run.cwd), ended=run.ended or run.started).rows(told.calls())
