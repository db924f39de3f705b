"""The file-write tracker: which files the tool calls of a conversation wrote, and how much.

A projection of tool calls. A file counts as written only once its call has succeeded; a call that
failed or that nobody confirmed is told apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import PurePath

from gemtui.transcript.display_model import DiffDisplay
from gemtui.transcript.model import ToolCall, ToolStatus
from gemtui.transcript.tools import WRITING, asked_path, kind_of


class WriteStatus(StrEnum):
    """Whether a file write succeeded."""

    YES = "written"
    PENDING = "pending"
    FAILED = "failed"
    UNCONFIRMED = "unconfirmed"
    """The run ended between the call and its result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWrite:
    """All writes of one file that ended the same way.

    `path` is absolute where the run's folder is known. `added`, `removed`: lines, summed over
    `calls`; None = unknown.
    """

    path: PurePath
    written: WriteStatus
    is_new: bool
    added: int | None
    removed: int | None
    calls: tuple[str, ...]


_WRITTEN = {
    ToolStatus.SUCCESS: WriteStatus.YES,
    ToolStatus.RUNNING: WriteStatus.PENDING,
    ToolStatus.UNCONFIRMED: WriteStatus.UNCONFIRMED,
    ToolStatus.INTERRUPTED: WriteStatus.UNCONFIRMED,
}


def writes_of(calls: Iterable[ToolCall], root: PurePath | None = None) -> tuple[FileWrite, ...]:
    """Return the writes of these calls, each file once per ending, in the order of first calls.

    `root`: the folder of relative paths. A call without a path is skipped.
    """
    found: dict[tuple[PurePath, WriteStatus], FileWrite] = {}
    for call in calls:
        write = _write(call, root)
        if write is None:
            continue
        key = (write.path, write.written)
        found[key] = _joined(found[key], write) if key in found else write
    return tuple(found.values())


def _write(call: ToolCall, root: PurePath | None) -> FileWrite | None:
    if kind_of(call.name) not in WRITING:
        return None
    diff = call.display if isinstance(call.display, DiffDisplay) else None
    name = (diff.path if diff else "") or asked_path(call.args)
    if not name:
        return None
    written = _WRITTEN.get(call.status, WriteStatus.FAILED)
    known = diff if written is WriteStatus.YES else None
    return FileWrite(
        path=PurePath(name) if root is None else root / name,
        written=written,
        is_new=known.is_new if known else False,
        added=known.added if known else None,
        removed=known.removed if known else None,
        calls=(call.id,),
    )


def _joined(first: FileWrite, second: FileWrite) -> FileWrite:
    return replace(
        first,
        added=_sum(first.added, second.added),
        removed=_sum(first.removed, second.removed),
        calls=(*first.calls, *second.calls),
    )


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second
