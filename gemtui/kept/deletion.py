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
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gemtui import system
from gemtui.agents import Can, why_not
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
        reason = why_not(session.agent, Can.DELETE)
        if reason:
            raise DeletionFailed(reason, left=((session.path, reason),))
        raise DeletionFailed(
            f"{session.path} is not in {home / 'tmp'}: gemtui does not delete files anywhere else",
            left=((session.path, "not in the store"),),
        )
    return Deletion(session=session, home=home, copies=copies, items=items)


def _planned(session: Summary, home: Path, *, copies: bool) -> tuple[DeletionItem, ...]:
    files = session.files if copies else session.files[:1]
    folders = [path for file in files for path in _folders(session, file, home, copies=copies)]
    items = []
    for path in dict.fromkeys((*folders, *reversed(files))):
        item = _item(path) if _in_store(path, home) else None
        if item is not None and item.folder is (path in folders):
            items.append(item)
    return tuple(items)


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

    Each item returns to its original place in the store of `home`, but no file is overwritten.
    Returns the items that could not be restored, each with the reason. They stay in `trash` for
    another try, unless they are no longer in the system's trash.
    """
    left = []
    for item in reversed(trash.items):
        try:
            _bring_back(item, home)
        except OSError as error:
            left.append((item, reason_of(error)))
    trash.items = [item for item, _ in reversed(left) if item.is_in_trash]
    return tuple(left)


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
    own_id = session.id[:8] if kind is SessionKind.MAIN else session.id
    if kind is SessionKind.CHECKPOINT or name_id != own_id:
        return
    project = home / "tmp" / key
    if not copies and any(project in other.parents for other in session.files if other != path):
        return
    yield project / "chats" / session.id
    yield from belongings(project, session.id)


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
        if info is None:
            unread.append(entry.path)
        else:
            yield entry.path, info.st_ino, info.st_size, info.st_mtime_ns
    for path in unread:
        yield path, 0, 0, 0


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

    @property
    def is_in_trash(self) -> bool:
        """Whether it is still at its place in the trash."""
        return self.place is not None and _is_there(self.place, self.identity)


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

        facts = path.lstat()
        identity = facts.st_dev, facts.st_ino
        handle = None
        with suppress(OSError):
            kind = getattr(os, "O_PATH", os.O_RDONLY)
            handle = os.open(path, kind | system.NO_LINK | system.OWN)
        try:
            send2trash(path)
            place = None if handle is None else _path_of(handle)
        finally:
            if handle is not None:
                os.close(handle)
        if place is not None and not _is_there(place, identity):
            place = None
        self.items.append(Trashed(path=path, place=place, identity=identity))


def _bring_back(item: Trashed, home: Path) -> None:
    """Restore one item to its original path in the store of `home`. Raises OSError."""
    place = item.place
    if place is None:
        raise OSError("the system did not say where in the trash it is")
    if not item.is_in_trash:
        raise OSError("it is no longer in the trash")
    top = item.path
    while not top.parent.exists():
        top = top.parent
    if not _in_store(top, home):
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


def _path_of(handle: int) -> Path | None:
    """Return the current path of an open file; None if the system doesn't tell."""
    with suppress(OSError):
        if sys.platform == "darwin":
            from fcntl import F_GETPATH, fcntl

            if os.fstat(handle).st_nlink == 1:  # otherwise, it may be another of its paths
                return Path(os.fsdecode(fcntl(handle, F_GETPATH, bytes(1024)).rstrip(b"\0")))
        else:
            return Path(f"/proc/self/fd/{handle}").readlink()
    return None


def _is_there(place: Path, identity: tuple[int, int]) -> bool:
    facts = stat_if_possible(place)
    return facts is not None and (facts.st_dev, facts.st_ino) == identity
