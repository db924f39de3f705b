"""Find the files that a run changes, from its calls, its checkpoints and the disk.

The rules are described in assets/architecture.md#the-files-of-a-run.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePath
from stat import S_ISDIR, S_ISREG

from msgspec.structs import replace as call_with

from gemtui.agent.agent_run import AgentRun
from gemtui.agent.fold import Fold
from gemtui.calls.paths import tool_path
from gemtui.checkpoints import store
from gemtui.checkpoints.store import FileState
from gemtui.errors import CheckpointsUnreadable
from gemtui.files import SMALL, read_small, resolved, stat_if_possible
from gemtui.runs.ending import RunState
from gemtui.runs.enrich import enrich
from gemtui.runs.listing import Run
from gemtui.runs.outcome import was_written
from gemtui.runs.undo.checkpointing import project_of
from gemtui.transcript import writes
from gemtui.transcript.displays import content_diff
from gemtui.transcript.model import DiffDisplay, ToolCall, ToolStatus
from gemtui.transcript.tools import WRITING, ToolKind, kind_of, may_write, requested_change
from gemtui.transcript.writes import Doer, FileWrite, Letter, WriteStatus

GONE = "gone"
CONFIRMED = "no result, but the change is on disk"
NOT_MADE = "the last write did not happen"
NOT_KNOWN = "the last write is unconfirmed"
MOST = 200
"""The most files that are listed for one run in addition to those of file tools."""
UNLISTED = (
    "Files that commands changed are not listed, because this run has no checkpoints of the folder."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStates:
    """The difference between a file's former and current contents.

    `diff`: None if it can't be computed. In that case, `text` contains the current contents, as far
    as they can be shown. `why`: a sentence about the difference for the user.
    """

    diff: DiffDisplay | None = None
    text: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class _History:
    """The states of a file before and after a run, according to checkpoints.

    `before`: the state before the first change. `after`: the state after the run's last change.
    `by`: what made the run's last change; None if the run did not change the file.
    """

    before: FileState
    after: FileState
    by: Doer | None

    @property
    def existed(self) -> bool | None:
        """Whether the file existed before the run; None if unknown."""
        return None if self.before == store.UNKNOWN else self.before.kind != store.ABSENT


class FileTracker:
    """Finds the files that a run has changed. Its methods read the disk.

    After a run has ended, the user or other programs may have changed its files, so the files'
    current contents are not attributed to a past run.

    Arguments:
        root: the run's folder.
        run: the run's id; "" if it has no checkpoints.
        ended: when a past run ended; None while the run is working.
    """

    def __init__(self, root: Path, run: str = "", *, ended: datetime | None = None) -> None:
        self._root, self._run, self._ended = root, run, ended
        self.checkpoints = project_of(root)[0]
        """The folder of the run's checkpoints."""
        self._stamp: object = None
        self._first: int | None = None
        self._histories: dict[Path, _History] = {}
        self._rows: dict[PurePath, tuple[object, FileWrite]] = {}
        self.is_over = ended is not None
        """Whether the run has ended, so that its checkpoints have all of its changes."""

    def stamp(self) -> object:
        """Return a value that changes when a checkpoint is taken in the run's folder."""
        return store.stamp_of(self.checkpoints)

    @property
    def has_checkpoints(self) -> bool:
        """Whether the run has checkpoints, so that `rows` has the files that commands changed."""
        return self._first is not None

    @property
    def has_more(self) -> bool:
        """Whether `rows` left out files because there are too many."""
        return len(self._own_paths()) > MOST

    def _own_paths(self) -> list[Path]:
        return [path for path, history in self._histories.items() if history.by is not None]

    def rows(self, calls: Iterable[ToolCall]) -> tuple[FileWrite, ...]:
        """Return a row for each of the run's files, for display.

        Files that calls were to write come first, followed by those that commands or other tools
        changed, according to checkpoints.
        """
        self._read_checkpoints()
        tries_by_path = self._tries(calls)
        rows = [self._written(path, tries) for path, tries in tries_by_path.items()]
        for path in self._own_paths()[:MOST]:
            if path not in tries_by_path:
                row = self._changed_otherwise(path, self._histories[path])
                if row is not None:
                    rows.append(row)
        return tuple(rows)

    def difference(self, path: Path, calls: Iterable[ToolCall]) -> FileStates:
        """Return how a file differs from its contents before the run.

        For a past run, this is the change made by the run.
        """
        done = [call for call in self._tries(calls).get(path, ()) if _succeeded(call)]
        before = self._text_before(path, done)
        history = self._histories.get(path)
        if self._ended is not None and history is None:
            return _told(path, before, done)
        exists, after, why = self._state_after(path, history)
        if not exists:
            if before is None:
                return FileStates(why=_GONE_UNKNOWN)
            return FileStates(diff=content_diff(str(path), before, ""), why=_GONE)
        if after is None:
            return FileStates(why=f"The file can't be shown, because it is {why}.")
        if before is None:
            return FileStates(text=after, why=_NO_BASE)
        same = ""
        if before == after:
            same = _SAME if after else "The file is empty."
        return FileStates(diff=content_diff(str(path), before, after), why=same)

    # --- checkpoints ---------------------------------------------------------------------------

    def _read_checkpoints(self) -> None:
        """Read what the checkpoints of the run say, if there are new ones.

        The run's first checkpoint has what was changed before the run, so it is left out.
        """
        stamp = self.stamp()
        if not self._run or stamp == self._stamp:
            return
        with suppress(CheckpointsUnreadable), store.open_store(self.checkpoints) as opened:
            if self._first is None:
                self._first = opened.first_of(self._run)
            if self._first is None:
                return
            # load the changes before their calls, because calls may be added in the meantime
            changes = [change for _, change in opened.changes(after=self._first)]
            calls = opened.calls()
            histories: dict[Path, _History] = {}
            for change in changes:
                path = self._root / os.fsdecode(change.path)
                call = None if change.call is None else calls.get(change.call)
                by = None
                if call is not None and call.run == self._run:
                    by = Doer.SHELL if kind_of(call.tool) is ToolKind.SHELL else Doer.TOOL
                earlier = histories.get(path)
                if earlier is None or earlier.by is None:
                    # a change that others made before the run's own counts for files of calls only
                    before = change.before if by is not None or earlier is None else earlier.before
                    histories[path] = _History(before, change.after, by)
                elif by is not None:
                    histories[path] = _History(earlier.before, change.after, by)
            self._histories, self._stamp = histories, stamp

    def _kept_text(self, state: FileState) -> str | None:
        """Return the text of a file's state in the checkpoints; None if it has none."""
        if state.kind == store.ABSENT:
            return ""
        if state.kind != store.FILE:
            return None
        with suppress(CheckpointsUnreadable, KeyError):
            with store.open_store(self.checkpoints) as opened:
                content = opened.content(state.content)
            return _decoded(content) if len(content) <= SMALL else None
        return None

    # --- one row -------------------------------------------------------------------------------

    def _tries(self, calls: Iterable[ToolCall]) -> dict[Path, list[ToolCall]]:
        """Map each file to the calls that were to write it.

        The paths start with `root`, even if a call used a different path to that folder, such as a
        link.
        """

        def file_of(asked: str) -> str:
            """Return the file that the CLI writes if a call names `asked`."""
            with suppress(OSError, ValueError):
                return tool_path(asked, str(self._root))
            return asked

        tries_by_path: dict[Path, list[ToolCall]] = {}
        real = resolved(self._root)
        for name, tries in writes.writing_calls(calls, self._root, find=file_of).items():
            inside = name.is_relative_to(real)
            path = self._root / name.relative_to(real) if inside else Path(name)
            tries_by_path.setdefault(path, []).extend(tries)
        return tries_by_path

    def _written(self, path: Path, calls: Sequence[ToolCall]) -> FileWrite:
        """Return the row for a file that calls were to write."""
        history = self._histories.get(path)
        settled = [self._settled(call, path) for call in calls]
        row = writes.write_of(path, settled)
        if row.written is not WriteStatus.YES and history is not None and history.by is not None:
            changed = self._changed_otherwise(path, history)
            if changed is not None and row.written is not WriteStatus.PENDING:
                row = replace(changed, calls=row.calls)
        elif row.written is WriteStatus.YES and (self._ended is None or history is not None):
            row = self._compared(row, history, settled)
        if row.written is not WriteStatus.YES:
            return row
        notes = [row.note, _settling(calls[-1], settled[-1])]
        return replace(row, note=", ".join(note for note in notes if note))

    def _settled(self, call: ToolCall, path: Path) -> ToolCall:
        """Mark a call without a result as successful or failed, if the disk shows which.

        All other calls are returned unchanged.
        """
        if call.status not in writes.UNCONFIRMED:
            return call
        is_written = was_written(call, path, ended=self._ended)
        if self._is_unchanged(path):
            is_written = False
        if is_written is None:
            return call
        if not is_written:
            return call_with(call, status=ToolStatus.ERROR)
        change = requested_change(kind_of(call.name), call.args, None)
        return call_with(call, status=ToolStatus.SUCCESS, display=change)

    def _is_unchanged(self, path: Path) -> bool:
        """Return whether the checkpoints show that nothing changed a file during the run."""
        return self.is_over and self.has_checkpoints and path not in self._histories

    def _changed_otherwise(self, path: Path, history: _History) -> FileWrite | None:
        """Return the row for a file that no successful call of a file tool wrote.

        Returns None if the file is as it was before the run.
        """
        exists, after, why = self._state_after(path, history)
        if not exists and history.existed is False:
            return None
        if exists and history.existed and not why and self._text_before(path, ()) == after:
            return None
        by = history.by or Doer.TOOL
        row = FileWrite(path=path, letter=Letter.UNKNOWN, written=WriteStatus.YES, by=by)
        return self._compared(row, history, ())

    def _compared(
        self, row: FileWrite, history: _History | None, calls: Sequence[ToolCall]
    ) -> FileWrite:
        """Return a file's row, with its state compared with that before the run."""
        path = Path(row.path)
        facts = _facts(path) if self._ended is None else None
        version = facts and (facts.st_ino, facts.st_size, facts.st_ctime_ns)
        key = (row, history, version, self.is_over)
        if self._rows.get(path, (None, None))[0] != key:
            self._rows[path] = key, self._compared_now(row, history, calls)
        return self._rows[path][1]

    def _compared_now(
        self, row: FileWrite, history: _History | None, calls: Sequence[ToolCall]
    ) -> FileWrite:
        path = Path(row.path)
        exists, after, why = self._state_after(path, history)
        existed = self._existed(path, history, exists=exists)
        if existed is None and row.letter is not Letter.UNKNOWN:
            existed = row.letter is Letter.MODIFIED
        if not exists:
            by = row.by if history is None else history.by or row.by
            return self._gone(replace(row, by=by), existed, calls)
        if existed is not None:
            row = replace(row, letter=Letter.MODIFIED if existed else Letter.CREATED)
        before = "" if existed is False else self._text_before(path, calls)
        if before is None or after is None:
            return replace(row, note=why)
        diff = content_diff(path.name, before, after)
        same = writes.SAME if existed and before == after else ""
        return replace(row, added=diff.added, removed=diff.removed, net=True, note=same)

    def _gone(self, row: FileWrite, existed: bool | None, calls: Sequence[ToolCall]) -> FileWrite:
        """Return the row for a file that no longer exists.

        `existed`: whether the file existed before the run; None if unknown.
        """
        if existed is None:
            return replace(row, letter=Letter.UNKNOWN, added=None, removed=None, note=GONE)
        if not existed:
            return replace(
                row, letter=Letter.DELETED, added=0, removed=0, net=True, note=writes.GONE_AGAIN
            )
        before = self._text_before(Path(row.path), calls)
        removed = None if before is None else content_diff("", before, "").removed
        return replace(row, letter=Letter.DELETED, added=0, removed=removed, net=True, note="")

    # --- the states before and after -----------------------------------------------------------

    def _existed(self, path: Path, history: _History | None, *, exists: bool) -> bool | None:
        if history is not None:
            return history.existed
        return exists if self._is_unchanged(path) else None

    def _text_before(self, path: Path, calls: Sequence[ToolCall]) -> str | None:
        """Return a file's text before the run; if that is unknown, before the first call.

        Returns None if neither is known.
        """
        history = self._histories.get(path)
        if history is not None:
            text = self._kept_text(history.before)
            if text is not None:
                return text
        elif self._is_unchanged(path) and self._ended is None:
            return _text(path)
        return writes.text_before([call for call in calls if _succeeded(call)])

    def _state_after(self, path: Path, history: _History | None) -> tuple[bool, str | None, str]:
        """Return whether a file exists, its text, and why there is no text.

        For a past run, this is the state after the run's last change.
        """
        if self._ended is None or history is None:
            return _facts(path) is not None, _text(path), _unread(path)
        text = self._kept_text(history.after)
        why = history.after.why if history.after.kind == store.UNKEPT else "not text"
        return history.after.kind != store.ABSENT, text, "" if text is not None else why


def commands_may_have_changed(calls: Iterable[ToolCall]) -> bool:
    """Return whether a run's calls include one that may have changed files it doesn't name."""
    return any(may_write(call.name) and kind_of(call.name) not in WRITING for call in calls)


def _told(path: Path, before: str | None, done: Sequence[ToolCall]) -> FileStates:
    """Return a file's change as reported by a past run's calls.

    `before`: the file's text before the run; None if unknown. `done`: the successful calls that
    wrote the file. The disk is not read, because the file may have changed since the run.
    """
    after = writes.text_after(done)
    if before is not None and after is not None:
        return FileStates(diff=content_diff(str(path), before, after))
    if done and isinstance(done[-1].display, DiffDisplay):
        return FileStates(diff=done[-1].display, why=_LAST if len(done) > 1 else "")
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
    if call.status not in writes.UNCONFIRMED:
        return ""
    if settled is call:
        return NOT_KNOWN
    return CONFIRMED if _succeeded(settled) else NOT_MADE


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


@dataclass(frozen=True, slots=True)
class RecordedFiles:
    """The files of a finished run.

    `complete`: whether files that commands changed are among them.
    """

    rows: tuple[FileWrite, ...]
    complete: bool


def recorded_files(run: Run, home: Path) -> RecordedFiles | None:
    """Return the files of a finished run; None if it is still working or unreadable.

    `home`: the store that contains the run's session. Reads all of the run's output.
    """
    request = run.folder.request()
    if request is None or run.state is RunState.RUNNING:
        return None
    fold = Fold("", began=run.started)

    async def read() -> None:
        async for event in AgentRun(run.folder, request).events():
            fold.add(event)

    asyncio.run(read())
    calls = enrich(fold.transcript(), home, run.session).calls()
    tracker = FileTracker(Path(run.cwd), run.id, ended=run.ended or run.started)
    rows = tracker.rows(calls)
    is_complete = tracker.has_checkpoints or not commands_may_have_changed(calls)
    return RecordedFiles(rows, complete=is_complete and not tracker.has_more)
