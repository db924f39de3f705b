"""The files that a run has written, one row per file, derived from its tool calls.

assets/architecture.md#the-files-of-a-run describes the rules for these rows. Facts from the disk
are added by `gemtui.runs.changed_files`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import Any

from gemtui.calls.paths import recorded_path, recorded_paths
from gemtui.jsonout import fields
from gemtui.text import counted
from gemtui.transcript.displays import content_diff
from gemtui.transcript.model import DiffDisplay, ToolCall, ToolStatus
from gemtui.transcript.parts import string
from gemtui.transcript.tools import WRITING, ToolKind, kind_of, named_file


class Letter(StrEnum):
    """A letter for how a file has changed since before the run, such as A if created."""

    CREATED = "A"
    MODIFIED = "M"
    DELETED = "D"
    UNKNOWN = "?"


class WriteStatus(StrEnum):
    """Whether a file was written, according to the calls or the disk."""

    YES = "written"
    PENDING = "writing"
    FAILED = "not written"
    UNCONFIRMED = "unconfirmed"
    """The run ended between the call and its result."""


class Doer(StrEnum):
    """The last known author of a change to a file."""

    TOOL = ""
    """A call to a tool, usually one that writes files."""
    SHELL = "by shell"
    """A shell command of the run, according to the run's checkpoints."""


SAME = "same content"
GONE_AGAIN = "created and then deleted"
UNCONFIRMED = {ToolStatus.UNCONFIRMED, ToolStatus.INTERRUPTED}
"""The statuses of calls whose outcome is unknown and will stay unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWrite:
    """The overall change to one file since before the run.

    `path`: absolute if the run's folder is known. `added`, `removed`: numbers of lines; None if
    unknown. `net`: True if these numbers come from comparing the file before the run with the
    current file; False if they are sums over `calls`. `note`: any further note. `calls`: the ids of
    calls that write this file.
    """

    path: PurePath
    letter: Letter
    written: WriteStatus
    by: Doer = Doer.TOOL
    added: int | None = None
    removed: int | None = None
    net: bool = True
    note: str = ""
    calls: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether the file has been written, even if another write to it is in progress.

        False if it is again as it was before the run, for example because it was reverted.
        """
        if self.note in (SAME, GONE_AGAIN):
            return False
        pending = self.written is WriteStatus.PENDING
        return self.written is WriteStatus.YES or (pending and self.added is not None)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The numbers of added and removed lines, if known, such as `+3` and `-1`."""
        if self.added is None:
            return () if self.removed is None else (f"-{self.removed}",)
        if self.removed == 0 < self.added:
            return (f"+{self.added}",)
        return f"+{self.added}", f"-{'?' if self.removed is None else self.removed}"

    @property
    def words(self) -> str:
        """The notes to show after the numbers; "" for a successful write by a tool."""
        summed = "" if self.net or self.added is None or len(self.calls) < 2 else "summed"
        status = "" if self.written is WriteStatus.YES else self.written.value
        return ", ".join(filter(None, (self.by, summed, status, self.note)))

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON values; unknown numbers are null."""
        names = ("path", "letter", "added", "removed", "net", "note")
        return fields(self, *names, status="written") | {"by": self.by.value or "tool"}


@dataclass(frozen=True, slots=True)
class Totals:
    """The sums over changed files.

    `uncounted`: the number of files with unknown line counts.
    """

    files: int
    added: int
    removed: int
    uncounted: int

    def words(self, minus: str = "-") -> str:
        """Return the totals in words, such as `3 files +26 -4`; "" if there is no file.

        Files whose line counts are unknown are counted separately.
        """
        files = counted(self.files, "file")
        if self.uncounted == self.files:
            return f"{files}, line counts unknown" if self.files else ""
        rest = f", {self.uncounted} not counted" if self.uncounted else ""
        return f"{files} +{self.added} {minus}{self.removed}{rest}"


def totals(writes: Iterable[FileWrite]) -> Totals:
    """Add up the line counts of the files that have actually been changed."""
    changes = [write for write in writes if write.changed]
    return Totals(
        files=len(changes),
        added=sum(write.added or 0 for write in changes),
        removed=sum(write.removed or 0 for write in changes),
        uncounted=sum(write.added is None or write.removed is None for write in changes),
    )


def writing_calls(
    calls: Iterable[ToolCall],
    root: PurePath | None = None,
    *,
    find: Callable[[str], str] | None = None,
) -> dict[PurePath, list[ToolCall]]:
    """Return the calls that write files, by path of the file, each list in order.

    `root`: the folder that relative paths refer to. `find`: as in `named_file`; by default, paths
    are resolved as in past calls, without reading the disk. Calls without a path are skipped.
    """
    folder = "" if root is None else str(root)
    calls_by_file: dict[PurePath, list[ToolCall]] = {}
    for call in calls:
        if kind_of(call.name) in WRITING:
            named = named_file(call, find or (lambda asked: recorded_paths(asked, folder)[0]))
            if named:
                calls_by_file.setdefault(recorded_path(named, folder), []).append(call)
    return calls_by_file


def write_of(path: PurePath, calls: Sequence[ToolCall]) -> FileWrite:
    """Return the overall change to one file, determined from its calls."""
    succeeded = [call for call in calls if call.status is ToolStatus.SUCCESS]
    before = text_before(succeeded)
    after = text_after(succeeded)
    diffs = [call.display for call in succeeded if isinstance(call.display, DiffDisplay)]
    is_complete = before is not None and after is not None
    if is_complete:
        diffs = [content_diff(path.name, before or "", after or "")]
    return FileWrite(
        path=path,
        letter=_letter(succeeded),
        written=_status(calls, done=bool(succeeded)),
        added=_sum(call.added for call in diffs),
        removed=_sum(call.removed for call in diffs),
        net=is_complete or len(succeeded) == 1,
        note=SAME if is_complete and before == after else "",
        calls=tuple(call.id for call in calls),
    )


def text_before(writes: Sequence[ToolCall]) -> str | None:
    """Return a file's contents before the first of these calls, or None if unknown.

    `writes`: the successful calls that wrote the file, in order.
    """
    diff = writes[0].display if writes else None
    if not isinstance(diff, DiffDisplay):
        return None
    return "" if diff.is_new else diff.original


def text_after(writes: Sequence[ToolCall]) -> str | None:
    """Return a file's contents after the last of these calls, or None if unknown.

    `writes`: the successful calls that wrote the file, in order.
    """
    text = text_before(writes)
    for call in writes:
        diff = call.display if isinstance(call.display, DiffDisplay) else None
        old, new = string(call.args.get("old_string")), string(call.args.get("new_string"))
        if diff is not None and diff.new is not None:
            text = diff.new
        elif text is not None and old and text.count(old) == 1:
            text = text.replace(old, new)
        else:
            text = None
    return text


def _letter(writes: Sequence[ToolCall]) -> Letter:
    """Return what the first successful call did to the file, such as create it.

    The output of a run doesn't say whether a file was new, so this may be unknown.
    """
    if not writes or not isinstance(diff := writes[0].display, DiffDisplay):
        return Letter.UNKNOWN
    if diff.is_new:
        return Letter.CREATED
    edited = kind_of(writes[0].name) is ToolKind.EDIT or diff.original is not None
    overwrote = (writes[0].output or "").startswith("Successfully overwrote")
    return Letter.MODIFIED if edited or overwrote else Letter.UNKNOWN


def _status(calls: Iterable[ToolCall], *, done: bool) -> WriteStatus:
    ends = {call.status for call in calls}
    if ends & {ToolStatus.RUNNING, ToolStatus.QUEUED}:
        return WriteStatus.PENDING
    if done:
        return WriteStatus.YES
    return WriteStatus.UNCONFIRMED if ends & UNCONFIRMED else WriteStatus.FAILED


def _sum(numbers: Iterable[int | None]) -> int | None:
    """Return the sum; None if any number is unknown or there are no numbers."""
    all_numbers = list(numbers)
    counts = [number for number in all_numbers if number is not None]
    return sum(counts) if all_numbers and len(counts) == len(all_numbers) else None
