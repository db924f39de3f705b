"""Delete a session's files, and nothing else, following a plan that was reviewed.

A plan names every file and folder with its size. Carrying out the plan moves these to the system's
trash. It is refused if anything has changed since the plan was made, because the session is then in
use.

gemtui keeps no record of the trash on disk. The system knows the path of an open file, so gemtui
asks it for a file's place in the trash while the file is being moved. If gemtui is killed, every
file is where the user would look for it. Files that the user has taken out of the trash, or that
are gone because it was emptied, can't be restored by gemtui.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from gemtui.errors import DeletionFailed, reason_of
from gemtui.files import files_below, move_without_replacing, stat_if_possible
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.store.store import SessionKind, belongings, is_plain_id, name_of
from gemtui.text import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionItem:
    """One file or folder to delete.

    `size` (in bytes) and `files` (a number) include a folder's contents. `seen`: its state when the
    plan was made, for detecting changes.
    """

    path: Path
    folder: bool
    size: int
    files: int
    seen: frozenset[tuple[str, int, int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """The plan for deleting a session.

    `home`, `copies`: the arguments of `plan_deletion`. `items`: in the order of deletion, with the
    session's own files last.
    """

    session: Summary
    home: Path
    copies: bool
    items: tuple[DeletionItem, ...]

    @property
    def size(self) -> int:
        """The size of all items in bytes."""
        return sum(item.size for item in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """The result of a deletion.

    `paths`: the paths that were removed. `trashed`: whether they are in the system's trash.
    """

    paths: tuple[Path, ...]
    trashed: bool

    def __str__(self) -> str:
        count = counted(len(self.paths), "path")
        return f"{count} moved to the trash" if self.trashed else f"{count} deleted permanently"


def plan_deletion(session: Summary, home: Path, *, copies: bool = True) -> Deletion:
    """Return the plan for deleting everything that belongs to this session alone.

    That is its files, its subagents' sessions, its tool outputs, and its plans
    (assets/gemini-cli.md#places). `copies`: include the other files with the same id; otherwise
    only the file in use is deleted, and the newest copy takes its place. Symbolic links are never
    followed out of the store, and files that no longer exist are left out. Raises DeletionFailed if
    the session has no file in the store.
    """
    items = _planned(session, home, copies=copies)
    if not items:
        raise DeletionFailed(
            f"{session.path} is not in {home / 'tmp'}: gemtui does not delete files anywhere else",
            left=((session.path, "not in the store"),),
        )
    return Deletion(session=session, home=home, copies=copies, items=items)


def _planned(session: Summary, home: Path, *, copies: bool) -> tuple[DeletionItem, ...]:
    files = session.files if copies else session.files[:1]
    folders = [path for file in files for path in _folders(session, file, home, copies=copies)]
    return (
        *(item for item in _items(folders, home) if item.folder),
        *(item for item in _items(reversed(files), home) if not item.folder),
    )


def delete_planned(
    deletion: Deletion, *, permanent: bool = False, trash: Trash | None = None
) -> Deleted:
    """Move everything in a plan to the system's trash.

    `permanent`: if there is no trash, delete permanently instead of raising an error. `trash`:
    receives a record of each item moved, even if the plan fails halfway, so that the items can be
    restored.

    If anything was changed or added since the plan was made, nothing is removed. Files that change
    during the removal are left alone. Raises DeletionFailed, whose `left` names the remaining files
    with the reasons.
    """
    changed = _changed(deletion)
    if changed:
        raise DeletionFailed(
            (
                f"nothing was deleted, because {changed[0]} has just changed: the session may be "
                "in use"
            ),
            left=tuple((path, "has just changed") for path in changed),
        )
    gone: list[Path] = []
    left: list[tuple[Path, str]] = []
    trash, trashed = trash or Trash(), True
    for item in deletion.items:
        if _item(item.path) != item:
            left.append((item.path, "has just changed"))
            continue
        try:
            trashed = _remove(item, trash, permanent=permanent) and trashed
            gone.append(item.path)
        except OSError as error:
            left.append((item.path, reason_of(error)))
    if left:
        what = "deleted" if permanent else "moved to the trash"
        raise DeletionFailed(
            f"{len(left)} of {len(deletion.items)} could not be {what}: {left[0][0]}: {left[0][1]}",
            left=tuple(left),
        )
    return Deleted(paths=tuple(gone), trashed=trashed)


def _changed(deletion: Deletion) -> list[Path]:
    """Return the paths that were changed or added since the plan was made."""
    session, home, copies = deletion.session, deletion.home, deletion.copies
    now = {item.path: item for item in _planned(session, home, copies=copies)}
    planned = {item.path: item for item in deletion.items}
    return [path for path in {**planned, **now} if planned.get(path) != now.get(path)]


def restore_trashed(trash: Trash, home: Path) -> tuple[tuple[Trashed, str], ...]:
    """Restore everything that one deletion has moved to the trash.

    Each item returns to its original place, but no file is overwritten. Returns the items that
    could not be restored, each with the reason; they stay in the trash, and in `trash`.
    """
    return trash.restore_all(lambda path: _in_store(path, home))


# --- files of a session --------------------------------------------------------------------------


def _folders(session: Summary, path: Path, home: Path, *, copies: bool) -> Iterator[Path]:
    """Yield the folders with a session's other files, such as its tool outputs.

    `path`: one of the session's files. Yields nothing if the file's name does not match the
    session's id, because the id comes from the file's header, which may contain anything. `copies`:
    whether the session's other files are deleted as well. If not, and if any of them is in the same
    project, nothing is yielded, because that file still needs the folders.
    """
    named = name_of(path, home)
    if named is None or not is_plain_id(session.id):
        return
    key, kind, name_id, _ = named
    project = home / "tmp" / key
    shared = not copies and any(
        project in other.parents for other in session.files if other != path
    )
    if kind is SessionKind.CHECKPOINT or shared:
        return
    if name_id != (session.id[:8] if kind is SessionKind.MAIN else session.id):
        return
    yield project / "chats" / session.id
    yield from belongings(project, session.id)


def _items(paths: Iterable[Path], home: Path) -> Iterator[DeletionItem]:
    """Yield one item for each of these paths that exists in the store."""
    for path in dict.fromkeys(paths):
        if _in_store(path, home) and (item := _item(path)) is not None:
            yield item


def _in_store(path: Path, home: Path) -> bool:
    """Return whether the folder of a path is in the store, after resolving links."""
    try:
        return path.parent.resolve(strict=True).is_relative_to((home / "tmp").resolve(strict=True))
    except (OSError, RuntimeError):  # links that form a loop
        return False


def _item(path: Path) -> DeletionItem | None:
    """Return the item at a path; None if there is no file or folder, or only a link."""
    info = stat_if_possible(path)
    if info is not None and stat.S_ISDIR(info.st_mode):
        seen = frozenset(_tree(path))
    elif info is not None and stat.S_ISREG(info.st_mode):
        seen = frozenset({("", info.st_ino, info.st_size, info.st_mtime_ns)})
    else:
        return None
    return DeletionItem(
        path=path,
        folder=stat.S_ISDIR(info.st_mode),
        size=sum(size for _, _, size, _ in seen),
        files=len(seen),
        seen=seen,
    )


def _tree(folder: Path) -> Iterator[tuple[str, int, int, int]]:
    """Yield (path, inode, size, modification time) of all files under a folder.

    Links are included but not followed. The numbers are 0 for files and folders without access.
    """
    unread: list[str] = []
    for entry in files_below(str(folder), unread=unread):
        info = stat_if_possible(entry.path)
        yield (
            (entry.path, 0, 0, 0)
            if info is None
            else (entry.path, info.st_ino, info.st_size, info.st_mtime_ns)
        )
    yield from ((place, 0, 0, 0) for place in unread)


# --- removing ------------------------------------------------------------------------------------


def _remove(item: DeletionItem, trash: Trash, *, permanent: bool) -> bool:
    """Move one item to the trash; return True if that worked.

    `permanent`: if it can't be moved to the trash, delete it permanently and return False, instead
    of raising an error. Raises OSError.
    """
    try:
        trash.put(item.path)
    except OSError:
        if not permanent or not item.path.exists():
            raise
    else:
        return True
    if item.folder:
        shutil.rmtree(item.path)
    else:
        item.path.unlink()
    return False


# --- the system's trash ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Trashed:
    """A file or folder in the trash.

    `path`: its original path. `place`: its path in the trash; None if unknown. `identity`: its
    device and inode, which don't depend on its path.
    """

    path: Path
    place: Path | None
    identity: tuple[int, int]


class Trash:
    """The items that one deletion has moved to the trash, in order."""

    def __init__(self) -> None:
        self.items: list[Trashed] = []

    @property
    def is_known(self) -> bool:
        """Whether everything can be restored, because all places in the trash are known."""
        return bool(self.items) and all(item.place is not None for item in self.items)

    def put(self, path: Path) -> None:
        """Move a file or folder to the system's trash. Raises OSError."""
        from send2trash import send2trash  # type: ignore[import-untyped]  # looks for a desktop

        identity = _identity(path)
        with _followed(path) as present:
            send2trash(path)
            self.items.append(Trashed(path=path, place=present(), identity=identity))

    def restore_all(self, allowed: Callable[[Path], bool]) -> tuple[tuple[Trashed, str], ...]:
        """Restore all items without overwriting; return those that failed, with reasons.

        `allowed`: returns whether a path may still be written to. Items that failed remain in
        `items` for another try, unless they are no longer in the trash.
        """
        left = []
        for item in reversed(self.items):
            try:
                _bring_back(item, allowed)
            except OSError as error:
                left.append((item, reason_of(error)))
        self.items = [item for item, _ in reversed(left) if _lies_in_trash(item)]
        return tuple(left)


def _bring_back(item: Trashed, allowed: Callable[[Path], bool]) -> None:
    """Restore one item to its original path. Raises OSError.

    `allowed`: returns whether a path may still be written to.
    """
    place = item.place
    if place is None:
        raise OSError("the system did not say where in the trash it is")
    if not _lies_in_trash(item):
        raise OSError("it is no longer in the trash")
    top = item.path
    while not top.parent.exists():
        top = top.parent
    if not allowed(top):
        raise OSError("its original folder was deleted or replaced")
    item.path.parent.mkdir(parents=True, exist_ok=True)
    try:
        move_without_replacing(place, item.path)
    except FileExistsError:
        raise OSError("another file is now in its place") from None
    if place.parent.name == "files":  # as specified by freedesktop.org
        note = place.parent.parent / "info" / f"{place.name}.trashinfo"
        with suppress(OSError):
            note.unlink()


def _lies_in_trash(item: Trashed) -> bool:
    return item.place is not None and _is_there(item.place, item.identity)


@contextmanager
def _followed(path: Path) -> Iterator[Callable[[], Path | None]]:
    """Yield a function that finds a file after it has been moved.

    The function returns the file's new path, or None if it is unknown.
    """
    try:
        handle = os.open(path, getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield lambda: None
        return
    try:
        identity = _identity(path)
        yield lambda: _place_of(handle, identity)
    finally:
        os.close(handle)


def _place_of(handle: int, identity: tuple[int, int]) -> Path | None:
    with suppress(OSError):
        place = _path_of(handle)
        if _is_there(place, identity):
            return place
    return None


def _path_of(handle: int) -> Path:
    """Return the path of an open file. Raises OSError."""
    if sys.platform == "darwin":
        from fcntl import F_GETPATH, fcntl

        if os.fstat(handle).st_nlink > 1:
            raise OSError("the file has several hard links")
        return Path(os.fsdecode(fcntl(handle, F_GETPATH, bytes(1024)).rstrip(b"\0")))
    return Path(f"/proc/self/fd/{handle}").readlink()


def _is_there(place: Path, identity: tuple[int, int]) -> bool:
    facts = stat_if_possible(place)
    return facts is not None and (facts.st_dev, facts.st_ino) == identity


def _identity(path: Path) -> tuple[int, int]:
    """Return a file's device and inode. Raises OSError."""
    facts = path.lstat()
    return facts.st_dev, facts.st_ino
