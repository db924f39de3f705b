"""A run's backup of the session it resumes.

`before.json` names a copy of each of the session's files from before the run. When the run has
ended, whatever a file has gained is appended to its copy; `now.json` names copies of the files that
are new or no longer start with their earlier contents. `after.json` records what was found at the
end of the run.

In a run of an earlier version of gemtui, the files in `now.json` are hard links, with copies beside
them (`end-…`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from gemtui.agent.run_folder import RunFolder
from gemtui.errors import GemtuiError
from gemtui.files import files_below, is_file, path_exists, size_of, write_whole
from gemtui.jsonfile import read_object
from gemtui.kept.files import append_rest, copy_file, replace_with_copy
from gemtui.sessions.catalog.read_files import read_file
from gemtui.sessions.catalog.summary import Summary, TitleSource
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.read.versions import begins_with
from gemtui.sessions.store.store import (
    ChatFile,
    SessionKind,
    Store,
    belongings,
    file_anywhere,
    is_plain_id,
    project_folder,
)

R = TypeVar("R", bound=Struct)
_BEFORE, _NOW, _AFTER = "before.json", "now.json", "after.json"
_TAIL = 4096
_PIECE = 256 * 1024
_HEAD = 64 * 1024
"""Number of bytes of a copy that are read to find the title of its session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSession:
    """The backup of a session that a run resumes.

    Attributes:
        files: maps places in the store to copies from before the run, to which whatever the run
            added is appended at its end.
        seen: files whose names contained the session's short id before the run, whatever their
            content.
        newest: maps places in the store to copies from the end of the run, of files that appeared
            during the run, or no longer start with their earlier contents.
    """

    session_id: str
    home: Path
    files: Mapping[Path, Path]
    seen: frozenset[Path]
    newest: Mapping[Path, Path] = field(default_factory=dict)

    @property
    def states(self) -> Mapping[Path, Path]:
        """Maps places in the store to their newest states in the run's folder."""
        return {**self.files, **self.newest}


class Aftermath(Struct, frozen=True, kw_only=True):
    """The actions and findings of protecting a session during and after a run.

    `ghosts`: empty files that the CLI created under the session's id, and that were removed.
    `restored`: missing files of the session that were restored in their newest state. `lost`:
    missing files that could not be restored. `changed`: logs that no longer begin with their
    earlier contents. `problems`: errors, in words.
    """

    ghosts: tuple[Path, ...] = ()
    restored: tuple[Path, ...] = ()
    lost: tuple[Path, ...] = ()
    changed: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()

    def notes(self, folder: RunFolder) -> tuple[str, ...]:
        """Return sentences for the user about missing or changed files, and problems."""
        notes = [
            f"{path} was deleted during the run and has been restored; what the run wrote to it "
            "before that may be missing"
            for path in self.restored
        ]
        notes += [f"{path} is missing: a copy is in {folder.path}" for path in self.lost]
        for path in self.changed:
            notes.append(f"{path} was rewritten: its earlier contents are in {folder.path}")
        return (*notes, *self.problems)


def keep_before(folder: RunFolder, home: Path, session_id: str) -> KeptSession:
    """Copy every file of a session, and of its subagents, into the run's folder.

    Raises OSError.
    """
    chat_files = list(session_files(Store(home), session_id))
    mine = [file.path for file in chat_files if _may_hold(file, session_id)]
    files = {path: folder.path / f"before-{at}{path.suffix}" for at, path in enumerate(mine)}
    for path, copy in files.items():
        copy_file(path, copy)
    seen = tuple(sorted(file.path for file in chat_files))
    record = _Before(session_id=session_id, home=home, files=_pairs(files), seen=seen)
    _write(folder, _BEFORE, record)
    return KeptSession(session_id=session_id, home=home, files=files, seen=frozenset(seen))


def backup_of(folder: RunFolder) -> KeptSession | None:
    """Return a run's backup of a session; None if the run did not resume a session.

    A backup whose record is corrupt counts as missing; see `backup_is_damaged`.
    """
    before = _read(folder, _BEFORE, _Before)
    if before is None or not before.session_id or "\0" in before.session_id:
        return None
    return KeptSession(
        session_id=before.session_id,
        home=before.home,
        files=_copies_in(folder, before.files),
        seen=frozenset(before.seen),
        newest={path: _whole(copy) for path, copy in _newest(folder).items()},
    )


def backup_is_damaged(folder: RunFolder) -> bool:
    """Return whether a run may have a backup whose record is unreadable."""
    return path_exists(folder.path / _BEFORE) and backup_of(folder) is None


def _newest(folder: RunFolder) -> dict[Path, Path]:
    record = _read(folder, _NOW, _Now)
    return {} if record is None else _copies_in(folder, record.files)


def update_copies(folder: RunFolder, kept: KeptSession) -> None:
    """Bring the copies of a session up to date with its files, after the run.

    A file that can't be copied is left out, because the store has it.
    """
    store = Store(kept.home)
    newest = dict(kept.newest)
    for path in _files_now(store, kept):
        copy = kept.files.get(path)
        with suppress(OSError):
            if copy is not None and begins_with(path, copy):
                append_rest(path, copy)
                continue
            newest_copy = newest.get(path) or _unused_name(folder, path.suffix)
            replace_with_copy(path, newest_copy)
            newest[path] = newest_copy
    with suppress(OSError):
        write_newest(folder, newest, newest_aftermath(folder))


def _unused_name(folder: RunFolder, suffix: str) -> Path:
    for number in count():
        path = folder.path / f"now-{number}{suffix}"
        if not path_exists(path):
            return path
    raise AssertionError


def _files_now(store: Store, kept: KeptSession) -> Iterator[Path]:
    """Yield the files of a session after a run, with its tool outputs and plans."""
    files = list(session_files(store, kept.session_id))
    for file in files:
        is_new = file.path not in kept.seen
        if is_new and file.kind is SessionKind.MAIN:
            is_new = bool(has_content(file.path, kept.session_id))
        if is_new or file.path in kept.files:
            yield file.path
    if is_plain_id(kept.session_id):
        for project in {project_folder(file.path) for file in files}:
            for folder in () if project is None else belongings(project, kept.session_id):
                yield from (Path(entry.path) for entry in files_below(str(folder)))


def _end_copy(newest: Path) -> Path:
    """Return the path of the copy that an earlier version of gemtui made beside a link."""
    return newest.with_name(f"end-{newest.name}")


def _whole(newest: Path) -> Path:
    """Return a backup or, if it is a link whose file has lost contents, the copy beside it."""
    copy = _end_copy(newest)
    if not path_exists(copy):
        return newest
    with suppress(OSError):
        is_log = newest.suffix == ".jsonl"
        is_whole = begins_with(newest, copy) if is_log else contains_copy(newest, copy)
        return newest if is_whole else copy
    return copy


def write_newest(folder: RunFolder, newest: Mapping[Path, Path], done: Aftermath) -> None:
    """Record which backups hold the newest states, and what was done for the session.

    Raises OSError.
    """
    _write(folder, _NOW, _Now(files=_pairs(newest), **asdict(done)))


def newest_aftermath(folder: RunFolder) -> Aftermath:
    """Return what had been done for the session when `write_newest` was last called."""
    return _read(folder, _NOW, Aftermath) or Aftermath()


def write_aftermath(folder: RunFolder, found: Aftermath) -> None:
    """Record what was done and found for the session after the run. Raises OSError."""
    _write(folder, _AFTER, found)


def aftermath_of(folder: RunFolder) -> Aftermath | None:
    """Return what was done and found for a session after the run that resumed it.

    Returns None if the run has not been checked, or did not resume a session.
    """
    return _read(folder, _AFTER, Aftermath)


def runs_that_keep(runs: Path) -> Iterator[RunFolder]:
    """Yield the folders of runs with a backup of a session, newest first."""
    by_time = []
    # A glob would raise an error for a folder that can't be read.
    with suppress(OSError), os.scandir(runs) as entries:
        for entry in entries:
            folder = Path(entry.path)
            with suppress(OSError):
                by_time.append(((folder / _BEFORE).stat().st_mtime_ns, folder))
    for _, folder in sorted(by_time, reverse=True):
        yield RunFolder(folder)


def unsettled(runs: Path) -> Iterator[RunFolder]:
    """Yield the folders of runs that resumed a session and have not been checked yet."""
    return (folder for folder in runs_that_keep(runs) if not path_exists(folder.path / _AFTER))


def drop_kept(folder: RunFolder) -> None:
    """Delete a run's backup of a session. Raises OSError."""
    kept = backup_of(folder)
    newest = _newest(folder).values()
    if kept is not None:
        for copy in (*kept.files.values(), *newest, *map(_end_copy, newest)):
            copy.unlink(missing_ok=True)
    for name in (_BEFORE, _NOW):
        (folder.path / name).unlink(missing_ok=True)


# --- files of a session ----------------------------------------------------------------------


def session_files(store: Store, session_id: str) -> Iterator[ChatFile]:
    """Yield the files whose names belong to this session or its subagents."""
    for file in store.files():
        main = file.kind is SessionKind.MAIN and file.name_id == session_id[:8]
        if main or (file.kind is SessionKind.SUBAGENT and file.parent == session_id):
            yield file


def _may_hold(file: ChatFile, session_id: str) -> bool:
    """Return whether a file belongs to exactly this session, or can't be read.

    A file's name contains only the start of an id, which several sessions may share.
    """
    if file.kind is SessionKind.SUBAGENT:
        return True
    try:
        with SessionLog(file.path) as log:
            log.refresh(upto=_TAIL)
            return bool(log.metadata.get("sessionId", session_id) == session_id)
    except (GemtuiError, OSError):
        return True


def read_session(path: Path, *, upto: int | None = None) -> Summary | None:
    """Read a session file in any folder; return None if it isn't one.

    `upto`: read only about this many bytes.
    """
    file = file_anywhere(path)
    if file is None:
        return None
    with SessionLog(path) as log:
        summary = read_file(log, file, upto=upto)
    return summary if isinstance(summary, Summary) else None


def has_content(path: Path, session_id: str | None) -> bool | None:
    """Return whether a file of this session has, or once had, content.

    Returns None if unknown. `session_id`: None for a file that doesn't name its session.
    """
    try:
        with SessionLog(path) as log:
            upto = _PIECE
            while log.refresh(upto=upto) and not log.outlines and not log.complete:
                upto *= 2
            if log.metadata.get("sessionId") != session_id:
                return None
            if log.outlines:
                return True
            sure = not (log.torn or log.problem_count or log.dropped)
            return False if sure else None
    except (GemtuiError, OSError):
        return None


def contains_copy(path: Path, copy: Path) -> bool:
    """Return whether a file contains everything in a copy of the session.

    This is the case if the file starts with the copy's contents (only the two ends of these are
    compared), or if it has at least as many messages.
    """
    try:
        if path.samefile(copy) or begins_with(path, copy, sampled=True):
            return True
    except OSError:
        return False
    return _messages(path) >= _messages(copy)


def _messages(path: Path) -> int:
    try:
        with SessionLog.read(path) as log:
            return len(log.outlines)
    except (GemtuiError, OSError):
        return 0


# --- records in the run's folder ---------------------------------------------------------------


class _Copy(Struct, frozen=True):
    """A place in the store, and the name of its copy in the run's folder."""

    path: Path
    copy: str


class _Before(Struct, frozen=True, kw_only=True):
    session_id: str
    home: Path
    files: tuple[_Copy, ...] = ()
    seen: tuple[Path, ...] = ()


class _Now(Aftermath, frozen=True, kw_only=True):
    files: tuple[_Copy, ...] = ()


def _write(folder: RunFolder, name: str, record: Struct) -> None:
    data = msgspec.json.encode(record, enc_hook=os.fspath)
    write_whole(folder.path / name, (msgspec.json.format(data),))


def _read(folder: RunFolder, name: str, type: type[R]) -> R | None:
    """Return a record written by `_write`; None if there is no readable one."""
    with suppress(OSError, msgspec.ValidationError):
        return msgspec.convert(read_object(folder.path / name), type, dec_hook=_path_of)
    return None


def _path_of(_: type, text: object) -> Path:
    """Convert a string in a record to a path; raise ValueError if that is impossible."""
    if not isinstance(text, str) or "\0" in text:
        raise ValueError("not a path")
    return Path(text)


def _pairs(files: Mapping[Path, Path]) -> tuple[_Copy, ...]:
    return tuple(_Copy(path, copy.name) for path, copy in files.items())


def _copies_in(folder: RunFolder, files: Iterable[_Copy]) -> dict[Path, Path]:
    """Map places in the store to copies in the run's folder.

    Only existing copies are included. If a recorded name contains a folder, the folder is ignored.
    """
    copies = {file.path: folder.path / Path(file.copy).name for file in files}
    return {path: copy for path, copy in copies.items() if path.is_absolute() and is_file(copy)}


# --- the only copies ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LastCopy:
    """A run with the only copy of some of a session's files.

    `files`: maps places in the store to the copies. Each of these places is empty, or has a file
    that contains less than the copy. `size`: the size of the copies in bytes.
    """

    folder: RunFolder
    session_id: str
    files: Mapping[Path, Path]
    size: int

    def is_named(self, id: str) -> bool:
        """Return whether an id or prefix identifies this run or its session."""
        return len(id) > 1 and (self.folder.id.startswith(id) or self.session_id.startswith(id))


def copy_title(copy: LastCopy) -> str:
    """Return the session's title, as found at the start of a copy; "" if none."""
    for path in copy.files.values():
        session = read_session(path, upto=_HEAD)
        if session is not None and session.title_source is not TitleSource.NONE:
            return session.title
    return ""


def last_copy_words(copy: LastCopy) -> str:
    """Return a one-line description of the copy, with the command that restores it."""
    return (
        f"run {copy.folder.id[:8]} has the only copy of session {copy.session_id}: restore it "
        f"with gemtui runs restore {copy.folder.id[:8]}"
    )


def last_copies(runs: Path) -> tuple[LastCopy, ...]:
    """Return the runs in `runs` that have the only copy of a session, newest first.

    If several runs have backed up the same session, a run is left out if newer runs have everything
    that it has. A session file in the store is parsed only if it doesn't start with the copy's
    contents.
    """
    store_of = cache(Store)
    holders: dict[tuple[Path, str], list[Path]] = {}
    """The files that have a session's conversation: in the store, and in newer runs."""
    last = []
    for folder in runs_that_keep(runs):
        kept = backup_of(folder)
        if kept is None:
            continue
        id = kept.session_id
        if (kept.home, id) not in holders:
            holders[kept.home, id] = _in_store(store_of(kept.home), id)
        elsewhere = holders[kept.home, id]
        # Files of subagents and tool outputs are useless without the conversation.
        copies = {path: copy for path, copy in kept.states.items() if path.parent.name == "chats"}
        only_here = {
            path: copy
            for path, copy in copies.items()
            if has_content(copy, id) is not False
            and not any(contains_copy(holder, copy) for holder in elsewhere)
        }
        if only_here:
            size = sum(map(size_of, set(only_here.values())))
            last.append(LastCopy(folder=folder, session_id=id, files=only_here, size=size))
        elsewhere += copies.values()
    return tuple(last)


def forget_copies(runs: Path, home: Path, session_id: str) -> None:
    """Delete all backups of a session the user has deleted from the store.

    Does nothing while the store has any file of the session. Raises OSError.
    """
    mine = []
    for folder in runs_that_keep(runs):
        kept = backup_of(folder)
        if kept is not None and (kept.home, kept.session_id) == (home, session_id):
            mine.append(folder)
    if mine and not _in_store(Store(home), session_id):
        for folder in mine:
            drop_kept(folder)


def _in_store(store: Store, session_id: str) -> list[Path]:
    return [file.path for file in session_files(store, session_id) if file.kind is SessionKind.MAIN]
