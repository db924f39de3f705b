"""Read and write a project's files without following links out of the project.

Names are bytes, relative to the project's folder. The folders on a file's path are opened one by
one, each without following links, so a link that has replaced a folder does no harm. A folder's
name ends with a slash, so that it can't be confused with a file that later replaces the folder.
Folders without files that checkpoints include don't count.

On a disk that ignores case, a file has only the name that its folder lists. Otherwise `README` and
`readme` would be two files, and to restore one would be to remove the other.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gemtui import system
from gemtui.calls.paths import folded
from gemtui.checkpoints.store import (
    FILE,
    FOLDER,
    GONE,
    LINK,
    SPECIAL,
    TOO_LARGE,
    UNREADABLE,
    Facts,
    FileState,
    Keeper,
    digest_of,
    folders_of,
    unkept,
)

TOP = b"./"
"""The name under which the project's root folder is stored."""
LARGEST = 32_000_000
"""The largest file, in bytes, whose contents checkpoints store."""
_FOLDER = os.O_RDONLY | system.FOLDER_ONLY | system.NO_LINK | system.OWN
if sys.platform == "linux":
    _UNREAD: int | None = os.O_PATH | _FOLDER
else:
    _UNREAD = None
_READ = os.O_RDONLY | system.NO_LINK | system.AT_ONCE | system.OWN
_PIECE = 1 << 20
_POSITIVE = (1 << 63) - 1
"""A bit mask that makes any integer a positive one that SQLite can store."""


class InTheWay(OSError):
    """Raised if something other than a folder is where a file's folder should be."""


class ProjectFiles:
    """The files under one folder, which is kept open. Use this as a context manager."""

    def __init__(self, root: Path) -> None:
        system.require(system.Unported.UNDO)
        self.root = root
        self._handle = os.open(root, os.O_RDONLY | system.FOLDER_ONLY | system.OWN)
        self.ignores_case = _ignores_case(self._handle)
        self._lists: dict[tuple[int, int], frozenset[bytes]] = {}

    def __enter__(self) -> ProjectFiles:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)

    @contextmanager
    def folder(self, name: bytes, *, make: bool = False) -> Iterator[tuple[int, bytes]]:
        """Open the folder that contains a file; yield its handle and the file's base name.

        `make`: create missing folders. Raises InTheWay, FileNotFoundError, OSError.
        """
        above, _, last = name.rpartition(b"/")
        with self.opened(above, make=make) as handle:
            if not make:
                self._require_listed(handle, last)
            yield handle, last

    @contextmanager
    def opened(self, name: bytes, *, make: bool = False) -> Iterator[int]:
        """Open a folder and yield its handle; b"" means the root.

        `make` and the errors are the same as for `folder`.
        """
        handle = os.dup(self._handle)
        try:
            for part in name.split(b"/") if name else ():
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=handle)
                else:
                    self._require_listed(handle, part)
                inner = _open_folder(part, handle)
                os.close(handle)
                handle = inner
            yield handle
        finally:
            os.close(handle)

    def _require_listed(self, folder: int, name: bytes) -> None:
        """Raise FileNotFoundError if an open folder has this name only in another spelling."""
        if self.ignores_case and name not in self._listed(folder):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fsdecode(name))

    def _listed(self, folder: int) -> frozenset[bytes]:
        facts = os.fstat(folder)
        unchanged = facts.st_ino, facts.st_mtime_ns
        if unchanged not in self._lists:
            self._lists[unchanged] = frozenset(map(os.fsencode, os.listdir(folder)))
        return self._lists[unchanged]

    def spelled(self, name: bytes) -> bytes:
        """Return a file's name as its folders list it; unchanged as far as they don't."""
        if not self.ignores_case:
            return name
        parts = name.split(b"/")
        for at, part in enumerate(parts):
            with suppress(OSError), self.opened(b"/".join(parts[:at])) as handle:
                listed = self._listed(handle)
                same = (other for other in listed if folded_name(other) == folded_name(part))
                parts[at] = part if part in listed else next(same, part)
        return b"/".join(parts)

    def facts_in(self, folder: int, last: bytes) -> Facts | None:
        """Return the facts of a file in an open folder; None if it is missing or a folder."""
        try:
            self._require_listed(folder, last)
            seen = os.stat(last, dir_fd=folder, follow_symlinks=False)
        except (FileNotFoundError, ValueError):
            return None
        return None if stat.S_ISDIR(seen.st_mode) else stat_facts(seen)

    def facts(self, name: bytes) -> os.stat_result | None:
        """Return the `lstat` result of a file; None if it is missing or behind a link."""
        try:
            with self.folder(name) as (parent, last):
                return os.stat(last, dir_fd=parent, follow_symlinks=False)
        except OSError:
            return None

    def state(self, name: bytes, store: Keeper | None = None) -> tuple[FileState, Facts | None]:
        """Return a file's state and its facts.

        The facts are None if the file is missing or unreadable. `store`: if given, the file's
        contents are stored there.
        """
        try:
            with self.folder(name) as (parent, last):
                return self.read(parent, last, store)
        except (FileNotFoundError, NotADirectoryError, InTheWay):
            return GONE, None
        except OSError as error:
            return unkept(UNREADABLE, error.errno or 0), None

    def read(
        self, parent: int, last: bytes, store: Keeper | None = None
    ) -> tuple[FileState, Facts | None]:
        """Return the state and facts of a file in an open folder, as `state` does.

        `parent`: the folder's handle. `last`: the file's base name. `store`: if given, the file's
        contents are stored there. Raises OSError.
        """
        seen = os.stat(last, dir_fd=parent, follow_symlinks=False)
        if stat.S_ISLNK(seen.st_mode):
            target = os.readlink(last, dir_fd=parent)
            return FileState(LINK, 0, _digest(target, store)), stat_facts(seen)
        if stat.S_ISDIR(seen.st_mode):
            return GONE, None
        if not stat.S_ISREG(seen.st_mode):
            return unkept(SPECIAL, stat.S_IFMT(seen.st_mode)), stat_facts(seen)
        if seen.st_size > LARGEST:
            return unkept(TOO_LARGE, seen.st_size, seen.st_mtime_ns), stat_facts(seen)
        try:
            handle = os.open(last, _READ, dir_fd=parent)
        except PermissionError:
            return unkept(UNREADABLE, seen.st_size, seen.st_mtime_ns), stat_facts(seen)
        try:
            seen = os.fstat(handle)
            data = _all_of(handle, seen.st_size)
        finally:
            os.close(handle)
        if data is None:
            return unkept(TOO_LARGE, seen.st_size, seen.st_mtime_ns), stat_facts(seen)
        return FileState(FILE, seen.st_mode & 0o777, _digest(data, store)), stat_facts(seen)

    def changed_at(self, name: bytes) -> float:
        """Return when a file was last changed, in seconds since 1970.

        If the file is missing, return when its nearest existing parent folder last changed.
        """
        parts = name.split(b"/")
        for end in range(len(parts), 0, -1):
            facts = self.facts(b"/".join(parts[:end]))
            if facts is not None:
                return facts.st_ctime_ns / 1e9
        return os.fstat(self._handle).st_ctime_ns / 1e9

    def moved_at(self, name: bytes) -> float:
        """Return the latest time at which a file may have been moved to its current name.

        The time is in seconds since 1970. It is the last change of the file or of any folder above
        it, because moving such a folder also moves the file.
        """
        parts = name.split(b"/")
        times = [self.changed_at(b"/".join(parts[:end])) for end in range(1, len(parts) + 1)]
        return max(times)

    def folder_state(self, name: bytes) -> FileState:
        """Return a folder's state; GONE if it is missing or not a folder.

        `name`: ends with a slash.
        """
        seen = self.facts(name[:-1])
        if seen is None or not stat.S_ISDIR(seen.st_mode):
            return GONE
        return FileState(FOLDER, seen.st_mode & 0o777)

    def holds_folder(self, name: bytes) -> bool:
        """Return whether there is a folder in a file's place."""
        seen = self.facts(name)
        return seen is not None and stat.S_ISDIR(seen.st_mode)

    def is_emptied(self, name: bytes, removed: Collection[bytes]) -> bool:
        """Return whether removing files also removes a folder, because nothing is left in it.

        `removed`: the files. As in `remove`, folders above them are removed if they become empty.
        """
        top = os.fsencode(self.root)
        for folder, _, files in os.walk(top + b"/" + name):
            inside = folder[len(top) + 1 :] + b"/"
            if not any(name.startswith(inside) for name in removed):
                return False
            if any(inside + file not in removed for file in files):
                return False
        return True

    def is_closed(self, name: bytes) -> bool:
        """Return whether a file can't be examined because of its folders' permissions."""
        try:
            with self.folder(name) as (parent, last):
                os.stat(last, dir_fd=parent, follow_symlinks=False)
        except PermissionError:
            return True
        except OSError:
            return False
        return False

    # --- writing -------------------------------------------------------------------------------

    def set_folder_mode(self, name: bytes, mode: int) -> None:
        """Change the permission bits of a folder, but not its setgid and sticky bits.

        `name` ends with a slash. Raises OSError.
        """
        with self.folder(name[:-1]) as (parent, last):
            try:
                handle = os.open(last, _FOLDER, dir_fd=parent)
                target = ""
            except PermissionError:  # the folder can't be read, but Linux can name it
                if _UNREAD is None:
                    raise
                handle = os.open(last, _UNREAD, dir_fd=parent)
                target = f"/proc/self/fd/{handle}"
            try:
                kept = os.fstat(handle).st_mode & 0o7000
                os.chmod(target or handle, kept | mode)  # noqa: PTH101  (a handle is no path)
            finally:
                os.close(handle)

    def write(self, name: bytes, state: FileState, data: bytes, spare: bytes) -> None:
        """Create a file or link atomically, replacing an existing file or link.

        `data`: the contents, or the link's target. `spare`: a temporary name to use in the same
        folder. Raises OSError.
        """
        with self.folder(name, make=True) as (parent, last):
            with suppress(FileNotFoundError):
                os.unlink(spare, dir_fd=parent)
            try:
                if state.kind == LINK:
                    os.symlink(data, spare, dir_fd=parent)
                else:
                    _write_file(parent, spare, data, state.mode)
                os.rename(spare, last, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                with suppress(OSError):
                    os.unlink(spare, dir_fd=parent)
                raise
            _sync(parent)

    def remove(self, name: bytes) -> None:
        """Remove a file or link, and all folders above it that become empty.

        Raises OSError.
        """
        with suppress(FileNotFoundError), self.folder(name) as (parent, last):
            os.unlink(last, dir_fd=parent)
            _sync(parent)
        self.remove_empty(name)

    def remove_empty(self, name: bytes) -> None:
        """Remove the empty folders above a file.

        This works even if the file or some of the folders have already been removed.
        """
        parts = name.split(b"/")[:-1]
        while parts:
            try:
                with suppress(FileNotFoundError), self.folder(b"/".join(parts)) as (parent, last):
                    os.rmdir(last, dir_fd=parent)
            except OSError:
                return
            parts.pop()

    def remove_spare(self, name: bytes, spare: bytes) -> None:
        """Remove the temporary file of an interrupted `write`, if there is one.

        `name`, `spare`: as passed to `write`.
        """
        with suppress(OSError), self.opened(name.rpartition(b"/")[0]) as parent:
            os.unlink(spare, dir_fd=parent)


def folded_name(name: bytes) -> str:
    """Return what names have in common that are the same file on a disk that ignores case."""
    return folded(os.fsdecode(name))


def _ignores_case(folder: int) -> bool:
    """Return whether an open folder's disk ignores case, as far as what is in it shows that."""
    names = set(os.listdir(folder))
    for name in names:
        other = name.swapcase()
        if other != name and other not in names:
            with suppress(OSError):
                facts = [
                    os.stat(one, dir_fd=folder, follow_symlinks=False) for one in (name, other)
                ]
                return os.path.samestat(*facts)
            return False
    return False


def stat_facts(seen: os.stat_result) -> Facts:
    """Extract from an `lstat` result the facts that reveal a later change to the file."""
    return Facts(
        seen.st_size,
        seen.st_mtime_ns,
        seen.st_ctime_ns,
        seen.st_ino & _POSITIVE,
        seen.st_uid,
        seen.st_gid,
    )


def _open_folder(name: bytes, handle: int) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=handle)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise InTheWay(
                errno.ENOTDIR, "something else is in its place", os.fsdecode(name)
            ) from None
        raise


def _write_file(parent: int, name: bytes, data: bytes, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | system.NO_LINK | system.OWN
    handle = os.open(name, flags, 0o600, dir_fd=parent)
    with os.fdopen(handle, "wb") as stream:
        stream.write(data)
        stream.flush()
        system.set_mode(handle, mode)
        os.fsync(handle)


def _all_of(handle: int, size: int) -> bytes | None:
    """Return an open file's whole contents; None if they are larger than `LARGEST`.

    `size`: the expected size in bytes.
    """
    pieces = list[bytes]()
    left = LARGEST + 1
    while left > 0 and (piece := os.read(handle, min(left, max(size + 1, 1), _PIECE))):
        pieces.append(piece)
        left -= len(piece)
    return None if left <= 0 else b"".join(pieces)


def _digest(data: bytes, store: Keeper | None) -> str:
    return digest_of(data) if store is None else store.keep(data)


def _sync(parent: int) -> None:
    with suppress(OSError):
        os.fsync(parent)


# --- folders -------------------------------------------------------------------------------------


def folders_above(files: Iterable[bytes]) -> set[bytes]:
    """Return the names of all folders that contain these files, including the root."""
    direct = {name.rpartition(b"/")[0] for name in files} - {b""}
    above = {folder for name in direct for folder in folders_of(name)}
    return {TOP, *(name + b"/" for name in direct | above)}


def folder_modes(root: Path, names: Iterable[bytes]) -> dict[bytes, int | None]:
    """Map the names of folders to their permission bits, or to None if missing.

    `names`: must include the parents of each folder. A folder counts as missing if there is a link
    in its place or in the place of one of its parents. Folders that can't be examined are left out.
    """
    top = os.fsencode(root) + b"/"
    modes = dict[bytes, int | None]()
    gone = set[bytes]()
    for name in sorted(names):  # parents before their subfolders
        path = name[:-1]
        try:
            mode = os.lstat(top + path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            mode = 0
        except OSError:
            continue
        if not stat.S_ISDIR(mode) or (gone and path.rpartition(b"/")[0] in gone):
            gone.add(path)
            modes[name] = None
        else:
            modes[name] = mode & 0o777
    return modes


def folder_state(mode: int | None) -> FileState:
    """Return the state of a folder with these permission bits; GONE if they are None."""
    return GONE if mode is None else FileState(FOLDER, mode)
