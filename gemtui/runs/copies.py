"""Sessions of which the copy that a run keeps is the only one left."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gemtui.agent.run_folder import RunFolder
from gemtui.runs.kept_session import (
    KeptSession,
    covers,
    drop_kept,
    holds,
    keeping,
    kept_of,
    named,
    put_back,
)
from gemtui.sessions.records import SessionLog
from gemtui.sessions.store import SessionKind, Store, file_anywhere
from gemtui.sessions.summarise import read_file
from gemtui.sessions.summary import Summary, TitleSource

_HEAD = 64 * 1024
"""Bytes of a copy that are read for the title of its session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastCopy:
    """A run that keeps what the store no longer has of a session.

    `files`: place in the store -> the copy; that place is empty, or holds a file with less in it.
    `size`: bytes of the copies.
    """

    folder: RunFolder
    session_id: str
    files: Mapping[Path, Path]
    size: int

    @property
    def in_the_way(self) -> Mapping[Path, Path]:
        """The copies at whose place a file with less in it stands: they can't be put back there."""
        return {path: copy for path, copy in self.files.items() if os.path.lexists(path)}

    def is_named(self, id: str) -> bool:
        """Whether an id, or the beginning of one, means this run or its session."""
        return len(id) > 1 and (self.folder.id.startswith(id) or self.session_id.startswith(id))


def title_of(copy: LastCopy) -> str:
    """The title of the session, as the beginning of the copies tells it; "" where none does."""
    for path in copy.files.values():
        if (place := file_anywhere(path)) is not None:
            with SessionLog(path) as log:
                known = read_file(log, place, upto=_HEAD)
            if isinstance(known, Summary) and known.title_source is not TitleSource.NONE:
                return known.title
    return ""


def last_copy_words(copy: LastCopy) -> str:
    """Return what a person should know of it: one line, with the way out."""
    return (
        f"run {copy.folder.id[:8]} keeps the only copy of session {copy.session_id}: "
        f"gemtui runs restore {copy.folder.id[:8]} puts it back"
    )


def last_copies(runs: Path) -> tuple[LastCopy, ...]:
    """Return the runs in the folder `runs` that keep the only copy of a session, newest first.

    Of several runs that keep one session it is the newest that has all of it. Reads the store's
    folders, and of the sessions only those that are gone or have been rewritten.
    """
    holders: dict[tuple[Path, str], list[Path]] = {}
    stores: dict[Path, Store] = {}
    found = []
    for folder in keeping(runs):
        if (kept := kept_of(folder)) is None:
            continue
        if kept.home not in stores:
            stores[kept.home] = Store(kept.home)
        key = kept.home, kept.session_id
        if key not in holders:
            holders[key] = _in_store(stores[kept.home], kept.session_id)
        files = _only_here(kept, holders[key])
        if files:
            size = sum(_size(copy) for copy in set(files.values()))
            found.append(
                LastCopy(folder=folder, session_id=kept.session_id, files=files, size=size)
            )
        holders[key] += _copies(kept).values()
    return tuple(found)


def restore(folder: RunFolder) -> tuple[Path, ...]:
    """Put the files of a session that are gone back, each in its newest state; return which.

    A file that exists is never touched, whatever is in it. Raises OSError.
    """
    kept = kept_of(folder)
    return () if kept is None else put_back(kept)


def forget(runs: Path, home: Path, session_id: str) -> None:
    """Remove all copies of a session that the user has deleted, if the store has no more of it.

    Raises OSError.
    """
    mine = [folder for folder in keeping(runs) if _keeps(folder, home, session_id)]
    if mine and not _in_store(Store(home), session_id):
        for folder in mine:
            drop_kept(folder)


def _keeps(folder: RunFolder, home: Path, session_id: str) -> bool:
    kept = kept_of(folder)
    return kept is not None and (kept.home, kept.session_id) == (home, session_id)


def _in_store(store: Store, session_id: str) -> list[Path]:
    return [file.path for file in named(store, session_id) if file.kind is SessionKind.MAIN]


def _copies(kept: KeptSession) -> dict[Path, Path]:
    """The conversation's own files: without it, nothing else of a session is worth anything."""
    return {path: copy for path, copy in kept.states.items() if path.parent.name == "chats"}


def _only_here(kept: KeptSession, holders: list[Path]) -> dict[Path, Path]:
    return {
        path: copy
        for path, copy in _copies(kept).items()
        if holds(copy, kept.session_id) is not False
        and not any(covers(each, copy) for each in holders)
    }


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0
