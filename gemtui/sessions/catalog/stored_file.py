"""The facts about a session file that are known without its summary."""

from __future__ import annotations

from typing import NamedTuple

from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.store.store import SessionKind


class StoredFile(NamedTuple):
    """A file that holds a session.

    `name`: its path. `project`, `project_key`, `kind`, `parent`, `resumable`, `has_header`: as in
    `Summary`. `size`: in bytes. `last_use`: `Summary.last_use` in seconds since 1970. `kept`:
    whether only the vault has the file. `why_hidden`: why lists hide it; "" if they don't.
    """

    name: str
    project: str | None
    project_key: str
    size: int
    kind: str
    parent: str | None
    resumable: bool
    has_header: bool
    last_use: float | None
    kept: bool
    why_hidden: str

    @classmethod
    def of(cls, file: Summary) -> StoredFile:
        """Return the facts about a session's file or copy."""
        return cls(
            name=file.name,
            project=file.project,
            project_key=file.project_key,
            size=file.size,
            kind=file.kind.value,
            parent=file.parent,
            resumable=file.resumable,
            has_header=file.has_header,
            last_use=None if file.last_use is None else file.last_use.timestamp(),
            kept=Flag.KEPT in file.flags,
            why_hidden=_why_hidden(file),
        )


def _why_hidden(file: Summary) -> str:
    if file.kind is not SessionKind.MAIN:
        return file.kind.value
    for flag in (Flag.GHOST, Flag.EMPTY, Flag.DUPLICATE):
        if flag in file.flags:
            return flag.value
    return ""
