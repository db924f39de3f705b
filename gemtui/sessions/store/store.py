"""The files of the CLI's store, found only by name and `stat`.

Other programs may write into `chats/`. Anything other than a regular file (a folder named like a
session, a FIFO, or a symbolic link) is reported and not opened. Unreadable files are reported as
well. A session's tool outputs and plans are in folders beside `chats`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from enum import StrEnum
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from gemtui.errors import NotASession, SessionTooLarge, reason_of
from gemtui.files import entries_of, stat_if_possible, stat_if_present
from gemtui.jsonout import fields
from gemtui.sessions.store.projects import registered
from gemtui.sessions.store.shelf import SESSION, SUBAGENT, Shelf, shelves
from gemtui.transcript.parts import EARLIEST, LATEST


class SessionKind(StrEnum):
    """The kind of a stored file, with the names that `gemtui sessions --json` uses."""

    MAIN = "main"
    SUBAGENT = "subagent"
    CHECKPOINT = "checkpoint"

    __hash__ = str.__hash__  # faster than an enum's; lists hash thousands


class StoreState(StrEnum):
    """Whether the store is available."""

    MISSING = "missing"
    """The folder doesn't exist, because the CLI has not stored a session yet."""
    NO_FOLDER = "no_folder"
    """The folder's path is taken by something else, so the CLI can't store sessions."""
    EMPTY = "empty"
    UNREADABLE = "unreadable"
    """The operating system denies access to all of the store."""
    OK = "ok"


class ChatFile(NamedTuple):
    """A file that may hold a session, as described by its name and `stat`.

    `name`: the absolute path. `project_key`: the name of the folder under `tmp`, the `Shelf.key` of
    another agent's project, or "" for a file outside the store. `name_id`: the part of the file
    name that identifies the session: the first eight characters of a session's id, the whole id of
    a subagent, the tag of a checkpoint, or "". `parent`: for a subagent, the id of the session that
    its folder is named after. `size`: in
    bytes. `mode`: as in `stat`. `kept`: whether the file is in the vault, gemtui's archive, but not
    in the store (`vault_files.py`).

    This is a plain tuple with a string for the path, because a store may have 10,000 files, and a
    list can't be shown before all of them are known.
    """

    name: str
    project_key: str
    kind: SessionKind
    name_id: str
    size: int
    mtime_ns: int
    inode: int
    parent: str | None = None
    mode: int = 0
    kept: bool = False

    @property
    def path(self) -> Path:
        """The path of the file."""
        return Path(self.name)

    @property
    def modified(self) -> datetime:
        """The modification time, clamped to valid times."""
        seconds = self.mtime_ns / 1e9
        if _FIRST < seconds < _LAST:
            return datetime.fromtimestamp(seconds, UTC)
        return LATEST if seconds > 0 else EARLIEST

    @property
    def stamp(self) -> tuple[int, ...]:
        """A value that stays equal while the file and its permissions are unchanged."""
        return stamp_of(self)


stamp_of: Callable[[ChatFile], tuple[int, ...]] = attrgetter("inode", "size", "mtime_ns", "mode")
"""`ChatFile.stamp` as a function, which is faster for many files."""
_SESSION = re.compile(
    r"session-(?:(?:\d{4}-\d\d-\d\dT\d\d-\d\d|\d{10,})-(.{1,8})|.+)\.jsonl?", re.DOTALL
)
_SUBAGENT = re.compile(r"(.+)\.jsonl?", re.DOTALL)
_CHECKPOINT = re.compile(r"checkpoint-(.+)\.json", re.DOTALL)
_NAMES = {
    SessionKind.MAIN: _SESSION,
    SessionKind.SUBAGENT: _SUBAGENT,
    SessionKind.CHECKPOINT: _CHECKPOINT,
}
_new = tuple.__new__
"""Creates a ChatFile in a third of the time that its constructor takes."""


_FIRST, _LAST = EARLIEST.timestamp(), LATEST.timestamp()


class Store:
    """The store at one moment; creating an instance scans the store once.

    `looked`: the locations that were searched. `problems`: locations that are unreadable, or that
    contain something other than the expected file or folder.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.tmp = home / "tmp"
        self._problems: list[Problem] = []
        self._files: list[ChatFile] = []
        self._folders: dict[str, Path] = {}
        self._real: set[str] = set()
        self._blocked = self._closed = False
        self._in_the_way()
        folders: list[os.DirEntry[str]] = []
        with self._noting(self.tmp), os.scandir(self.tmp) as entries:
            folders.extend(entries)
        for folder in sorted(folders, key=lambda entry: entry.name):
            self._project(folder)
        self._registry()
        self._others = [key for shelf in shelves(home) for key in self._shelf(shelf)]
        self.problems = tuple(self._problems)
        self.looked = (self.tmp, *(path / "chats" for path in self._folders.values()))
        self.state = self._state()

    def files(self) -> tuple[ChatFile, ...]:
        """Return all files that may hold a session, even a subagent or checkpoint."""
        return tuple(self._files)

    def keys(self) -> tuple[str, ...]:
        """Return the keys of the projects: names of folders under `tmp`, or those of a shelf."""
        return (*self._folders, *self._others)

    def add(self, files: Iterable[ChatFile]) -> None:
        """Add files from elsewhere, such as the vault (gemtui's archive of sessions)."""
        self._files += files

    def _state(self) -> StoreState:
        if self._files:
            return StoreState.OK
        if self._blocked:
            return StoreState.NO_FOLDER
        if self._closed:
            return StoreState.UNREADABLE
        return StoreState.EMPTY if os.path.isdir(self.tmp) else StoreState.MISSING  # noqa: PTH112

    def _in_the_way(self) -> None:
        """Record a problem if something other than a folder is at the store's path."""
        for folder in (self.home, self.tmp):
            if os.path.exists(folder) and not os.path.isdir(folder):  # noqa: PTH110, PTH112
                self._blocked = True
                self._note(folder, "is not a folder")
                return

    def _project(self, folder: os.DirEntry[str]) -> None:
        real = self._real_path(folder)
        if real is None or real in self._real:
            return
        self._real.add(real)
        path = Path(folder.path)
        count = len(self._files)
        others = self._add(path, folder.name, SessionKind.CHECKPOINT)
        if "chats" in others:
            self._chats(path / "chats", folder.name)
        elif count == len(self._files):
            return
        self._folders[folder.name] = path

    def _real_path(self, entry: os.DirEntry[str]) -> str | None:
        """Return the resolved path of a folder or a link to one, or None.

        A broken link is recorded as a problem.
        """
        try:
            if entry.is_dir():
                return os.path.realpath(entry.path) if entry.is_symlink() else entry.path
            entry.stat()
        except OSError as error:
            self._note(Path(entry.path), f"can't be read: {reason_of(error)}")
        return None

    def _shelf(self, shelf: Shelf) -> Iterator[str]:
        """Add the files of another agent; yield the keys of its projects."""
        folders: list[str] = []
        with self._noting(shelf.projects), os.scandir(shelf.projects) as entries:
            folders.extend(entry.name for entry in entries if entry.is_dir())
        for folder in sorted(folders):
            key, chats, callers = shelf.key(folder), shelf.chats(folder), shelf.callers(folder)
            below = self._add(chats, key, SessionKind.MAIN, names=SESSION)
            if callers != chats:
                below = self._add(callers, key, SessionKind.SUBAGENT, names=SUBAGENT)
            for session in below:
                if self._is_real_folder(callers / session):
                    caller = shelf.subagents(folder, session)
                    self._add(caller, key, SessionKind.SUBAGENT, session, names=SUBAGENT)
            yield key

    def _chats(self, chats: Path, key: str) -> None:
        if os.path.exists(chats) and not os.path.isdir(chats):  # noqa: PTH110, PTH112
            self._note(chats, "is not a folder")
            return
        for session in self._add(chats, key, SessionKind.MAIN):
            if self._is_real_folder(chats / session):
                self._add(chats / session, key, SessionKind.SUBAGENT, session)

    def _add(
        self,
        folder: Path,
        key: str,
        kind: SessionKind,
        parent: str | None = None,
        names: re.Pattern[str] | None = None,
    ) -> list[str]:
        """Add the files in a folder that may be sessions; return the names of all other entries.

        Files are looked up by name in the open folder, which is faster than by path. `key`: the
        name of the project's folder under `tmp`. `kind`: the kind of session that is stored in this
        folder. `parent`: the id of the session to which subagents in this folder belong. `names`:
        what the files are called; None means as by Gemini CLI.
        """
        match_name = (names or _NAMES[kind]).fullmatch
        prefix = f"{folder}{os.sep}"
        others: list[str] = []
        with self._noting(folder), entries_of(folder) as (all_names, status):
            for name in all_names:
                match = match_name(name)
                if match is None:
                    others.append(name)
                    continue
                try:
                    info = status(name)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    self._note(folder / name, f"can't be read: {reason_of(error)}")
                    continue
                if stat.S_ISREG(info.st_mode):
                    file = _chat_file(prefix + name, key, kind, match[1] or "", parent, info)
                    self._files.append(file)
                else:
                    what = f"is {_form(info.st_mode)} and not a session file"
                    self._note(folder / name, what)
                    others.append(name)
        return others

    def _is_real_folder(self, path: Path) -> bool:
        try:
            return stat.S_ISDIR(os.lstat(path).st_mode)
        except FileNotFoundError:
            return False
        except OSError as error:
            self._note(path, f"can't be read: {reason_of(error)}")
            return False

    @contextmanager
    def _noting(self, folder: Path) -> Iterator[None]:
        """Record a problem if a folder can't be read; ignore missing folders."""
        try:
            yield
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self._closed = self._closed or folder.is_relative_to(self.home)  # not on a shelf
            self._note(folder, f"can't be read: {reason_of(error)}")

    def _registry(self) -> None:
        """Record a problem if the project registry is corrupt."""
        path = self.home / "projects.json"
        if os.path.lexists(path) and registered(path) is None:
            self._note(
                path, "is not a list of projects, so the names of some projects may be missing"
            )

    def _note(self, path: Path, what: str) -> None:
        self._problems.append(Problem(path=path, line=None, what=what))


def _form(mode: int) -> str:
    """Return a phrase for the type of a directory entry that is not a regular file."""
    if stat.S_ISDIR(mode):
        return "a folder"
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    return "a FIFO" if stat.S_ISFIFO(mode) else "a device or socket"


def place_of(path: Path, home: Path, original: Path | None = None) -> ChatFile | None:
    """Return the ChatFile for a path in the store; None if it isn't a session file.

    Only the name and `stat` are checked. `original`: the path that the file at `path` is a copy of.
    Raises OSError if `stat` fails for any reason other than a missing file.
    """
    named = name_of(original or path, home)
    info = stat_if_present(path)
    if named is None or info is None or not stat.S_ISREG(info.st_mode):
        return None
    return _chat_file(str(path), *named, info)


def file_anywhere(path: Path) -> ChatFile | None:
    """Return the ChatFile for a regular file outside the store, which has no project.

    Returns None if the path is not a regular file.
    """
    info = stat_if_possible(path, follow=True)
    if info is None or not stat.S_ISREG(info.st_mode):
        return None
    return _chat_file(str(path), "", SessionKind.MAIN, "", None, info)


def _chat_file(
    name: str, key: str, kind: SessionKind, name_id: str, parent: str | None, info: os.stat_result
) -> ChatFile:
    size, time, inode, mode = info.st_size, info.st_mtime_ns, info.st_ino, info.st_mode
    return _new(ChatFile, (name, key, kind, name_id, size, time, inode, parent, mode, False))


def name_of(path: Path, home: Path) -> tuple[str, SessionKind, str, str | None] | None:
    """Return (project key, kind, name id, parent) from a path, without a `stat`.

    Returns None for paths at which no agent stores a session.
    """
    tmp = home / "tmp"
    match path.relative_to(tmp).parts if path.is_relative_to(tmp) else ():
        case (key, "chats", name):
            kind, parent = SessionKind.MAIN, None
        case (key, "chats", str() as folder, name):
            kind, parent = SessionKind.SUBAGENT, folder
        case (key, name):
            kind, parent = SessionKind.CHECKPOINT, None
        case _:
            return _name_on_shelf(path, home)
    match = _NAMES[kind].fullmatch(name)
    return None if match is None else (key, kind, match[1] or "", parent)


def _name_on_shelf(path: Path, home: Path) -> tuple[str, SessionKind, str, str | None] | None:
    for shelf in shelves(home):
        named = shelf.name_of(path)
        if named is not None:
            key, name_id, parent = named
            return key, SessionKind.SUBAGENT if parent else SessionKind.MAIN, name_id, parent
    return None


class Problem(Struct, frozen=True, kw_only=True):
    """A problem in a file; `line` is 1-based, or None for the whole file.

    `too_large`: whether the file exceeds gemtui's limit, in which case other programs may be able
    to read it.
    """

    path: Path
    line: int | None
    what: str
    too_large: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as JSON values: the keys are `file`, `line` and `what`."""
        return fields(self, "line", "what", file="path")


UNREADABLE = (NotASession, SessionTooLarge, OSError, RecursionError, MemoryError)
"""Errors raised for a file that can't be read or holds no session."""


def problem_of(path: Path, error: Exception) -> Problem:
    """Return why a session file can't be read; `error` is one of UNREADABLE."""
    match error:
        case OSError():
            what = f"can't be read: {reason_of(error)}"
        case MemoryError():
            what = "can't be read: out of memory"
        case RecursionError():
            what = "is nested too deeply to be read"
        case _:
            what = str(error).removeprefix(f"{path} ")
    return Problem(path=path, line=None, what=what, too_large=isinstance(error, SessionTooLarge))


def never() -> bool:
    """Return False; the default for `cancelled` arguments, which means never cancel."""
    return False


# --- a session's other files ---------------------------------------------------------------------


# Gemini CLI deletes them together with the session (assets/gemini-cli.md#clean-up).
_CHATS, _OUTPUTS, _OF_SESSION = "/chats/", "tool-outputs", "session-"
_OF_ALL = frozenset(
    {"chats", "checkpoints", "logs", "memory", "plans", "tasks", "tool-outputs", "tracker", "bin"}
)
"""Folders beside `chats` that belong to the whole project.

They are never taken for a session's folder, even if a log's header gives such a name as its session
id. Names are compared case-insensitively, because some file systems ignore case.
"""


def belongings(project: Path, id: str) -> tuple[Path, Path]:
    """Return the two folders where the CLI stores a session's files besides its log.

    The first holds tool outputs; the second, named after the session's id, holds plans and other
    files. `project`: the project's folder under `~/.gemini/tmp`. The two folders need not exist.
    `id` must be safe to use as a folder name; check it with `is_plain_id`.
    """
    return project / _OUTPUTS / f"{_OF_SESSION}{id}", project / id


def is_plain_id(id: str) -> bool:
    """Return whether an id is safe to use as the name of a session's own folder.

    Ids are untrusted: an id could contain a path separator, or be the name of a folder that all
    sessions of a project share.
    """
    odd = id.startswith(".") or bool(set(id) & {"/", "\\", "\0"})
    return not odd and id.casefold() not in _OF_ALL


def folders_beside(files: Iterable[ChatFile]) -> Iterator[Path]:
    """Yield the existing folders of tool outputs and plans for these session files.

    They are the folders described in `belongings`. Only the first eight characters of a session's
    id are compared, because the names of session files contain only those.
    """
    ids: dict[str, set[str]] = {}
    for file in files:
        name, chats, _ = file.name.rpartition(_CHATS)
        if chats and file.name_id:
            ids.setdefault(name, set()).add(file.name_id[:8])
    for project, short in ((Path(name), short) for name, short in ids.items()):
        outputs = project / _OUTPUTS
        for folder in (*_folders(project), *_folders(outputs)):
            id = folder.name.removeprefix(_OF_SESSION) if folder.parent == outputs else folder.name
            if id[:8] in short and is_plain_id(id):
                yield folder


def project_folder(path: Path) -> Path | None:
    """Return the folder that contains a session file's `chats` folder.

    It is the project's folder under `~/.gemini/tmp`. Returns None if the file is not inside a
    folder named `chats`.
    """
    folder, chats, _ = str(path).rpartition(_CHATS)
    return Path(folder) if chats else None


def _folders(place: Path) -> list[Path]:
    with suppress(OSError):
        return [folder for folder in place.iterdir() if folder.is_dir() and not folder.is_symlink()]
    return []
