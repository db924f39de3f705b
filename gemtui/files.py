"""Write files completely or not at all, and read untrusted files safely.

Reading never blocks, and the number of bytes read is limited.
"""

from __future__ import annotations

import errno
import io
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, AnyStr

from gemtui import system

_RANGE = 1 << 30
"""The most bytes to copy in one system call."""
SMALL = 4_000_000
"""The largest settings, policy or run record file, in bytes."""
_UNFINISHED = ".gemtui"
"""The ending of the names of temporary files."""
_UNFINISHED_NAME = re.compile(r"\..*\.[a-z0-9_]{8}\.gemtui", re.DOTALL)


def read_small(path: Path, most: int = SMALL) -> bytes:
    """Read all of a small regular file.

    Safe for untrusted files: a FIFO, device or socket is not opened, and no more than `most` bytes
    are read, whatever size the file claims to have. Links are followed.

    Raises OSError, including for a file larger than `most`. The error's `strerror` is a readable
    phrase, and its `filename` is the path.
    """
    with open_regular(path) as stream:
        pieces, left = [], most + 1
        while left > 0 and (piece := stream.read(left)):
            pieces.append(piece)
            left -= len(piece)
    if left <= 0:
        raise OSError(
            errno.EFBIG, f"larger than {most:,} bytes, which is too large to read", str(path)
        )
    return b"".join(pieces)


def read_if_present(path: Path, most: int = SMALL) -> bytes | None:
    """Read all of a small regular file as `read_small` does; None if nothing is there.

    Nothing is there, either, if a parent is not a folder. Raises OSError.
    """
    try:
        return read_small(path, most)
    except (FileNotFoundError, NotADirectoryError):
        return None


def open_regular(path: Path) -> io.FileIO:
    """Open a regular file for reading. Raises OSError.

    Safe for untrusted files: anything but a regular file, such as a FIFO, raises OSError instead of
    blocking.
    """
    try:
        _require_file(path, path.stat().st_mode)
        handle = os.open(path, os.O_RDONLY | system.OWN | system.AT_ONCE)
    except ValueError as error:  # a NUL in the name
        raise _not_a_path(path) from error
    stream = io.FileIO(handle)
    try:
        _require_file(path, os.fstat(handle).st_mode)
    except OSError:
        stream.close()
        raise
    return stream


def read_end(path: Path, most: int) -> bytes:
    """Read the last `most` bytes of a regular file. Raises OSError.

    Safe for untrusted files, like `open_regular`.
    """
    with open_regular(path) as stream:
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - most))
        return stream.read(most)


def _not_a_path(path: Path) -> OSError:
    return OSError(errno.EINVAL, "not a path", str(path))


def _require_file(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))


def write_whole(
    path: Path,
    pieces: Iterable[bytes],
    *,
    durable: bool = False,
    special: bool = False,
    over: bool = True,
) -> None:
    """Write `pieces` to `path`, replacing its contents only when complete.

    Links are followed. A new file has mode 0600; an existing file keeps its mode and owner.
    Normally, a new file replaces the existing one. If that is impossible, because the folder is not
    writable or another user owns the file, the existing file is overwritten in place after all
    `pieces` have been produced. `special`: write to a device, or to a FIFO that has a reader,
    instead of raising an error. `durable`: flush to disk before the old contents are replaced; use
    this for the user's own data, which can't be recreated. `over`: if False, raise FileExistsError
    if a regular file exists, even one created in the meantime.

    Raises OSError, which names the folder if the folder is not writable, and any exception that
    `pieces` raises. The old contents are then kept, unless the error occurs while the file is being
    overwritten in place.
    """
    target = resolved(path)
    before = stat_if_present(target, follow=True)
    if before is not None and not stat.S_ISREG(before.st_mode):
        _write_special(path, pieces, special)
        return
    if before is not None and not over:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    with ExitStack() as opened:
        try:
            stream, made = opened.enter_context(unfinished_file(target))
        except OSError:
            if before is None or not os.access(target, os.W_OK):
                raise
            import tempfile

            spool = opened.enter_context(tempfile.TemporaryFile())
            spool.writelines(pieces)
            _write_over(target, spool, durable=durable)
            return
        stream.writelines(pieces)
        if before is not None and not _made_like(stream, before):
            _write_over(target, stream, durable=durable)
            return
        finish_file(stream, made, target, over=over, durable=durable)


@contextmanager
def unfinished_file(target: Path) -> Iterator[tuple[IO[bytes], Path]]:
    """Create a temporary file beside `target`; yield it, open for writing, and its path.

    To finish, call `finish_file` inside the block; otherwise the file is removed. It is locked
    until then, so that the files which killed programs left behind can be recognised: those in the
    same folder are removed first. Raises OSError; if the folder is not writable, the error names
    the folder.
    """
    remove_unfinished_files(target.parent)
    stream, made = _locked_file(target)
    try:
        with stream:
            yield stream, made
    finally:
        made.unlink(missing_ok=True)


def finish_file(
    stream: IO[bytes], made: Path, target: Path, *, over: bool, durable: bool = False
) -> None:
    """Move an `unfinished_file`, with all that was written to it, to its place. Raises OSError.

    `over`: replace a file there; otherwise that is a FileExistsError. `durable`: flush it to disk.
    """
    stream.flush()
    if durable:
        sync(stream)
    if sys.platform == "win32":  # which moves no open file
        stream.close()
    if over:
        system.move(made.replace, target)
    else:
        move_without_replacing(made, target)
    if durable:
        sync_folder(target.parent)


def _locked_file(target: Path) -> tuple[IO[bytes], Path]:
    import tempfile

    while True:
        try:
            handle, name = tempfile.mkstemp(
                prefix=f".{target.name[:50]}.", suffix=_UNFINISHED, dir=target.parent
            )
        except ValueError as error:  # a NUL in the name
            raise _not_a_path(target) from error
        except OSError as error:
            error.filename = str(target.parent)
            raise
        stream = os.fdopen(handle, "w+b")
        _lock(handle)
        if os.fstat(handle).st_nlink:
            return stream, Path(name)
        stream.close()  # another program removed the file before it was locked


def _lock(handle: int, *, wait: bool = True) -> bool:
    """Lock an open file; return False if it isn't locked by this program then.

    `wait`: wait for another program that has locked it. Some file systems have no locks.
    """
    with suppress(OSError):
        return system.lock(handle, wait=wait)
    return False


def remove_unfinished_files(folder: Path) -> bool:
    """Remove the temporary files that killed programs left in a folder. Never raises.

    Files that a program is still writing are locked, and stay. Returns whether any were removed.
    """
    removed = False
    with suppress(OSError, ValueError), os.scandir(folder) as entries:
        for entry in entries:
            if is_unfinished_name(entry.name):
                removed |= remove_unfinished(Path(entry.path))
    return removed


def is_unfinished_name(name: str) -> bool:
    """Return whether a file has a name as `unfinished_file` chooses it."""
    return _UNFINISHED_NAME.fullmatch(name) is not None


def remove_unfinished(path: Path) -> bool:
    """Remove a temporary file unless a program is still writing it; return whether it did.

    Never raises.
    """
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | system.OWN | system.AT_ONCE | system.NO_LINK)
        try:
            is_left = stat.S_ISREG(os.fstat(handle).st_mode) and _lock(handle, wait=False)
            if is_left and sys.platform != "win32":
                path.unlink()
        finally:
            os.close(handle)
        if is_left and sys.platform == "win32":  # which removes no open file
            path.unlink()
        return is_left
    return False


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, accessible only to the user (0700).

    `Path.mkdir` would give the parents the mode that the umask implies. Existing folders keep their
    mode. Raises OSError.
    """
    try:
        folder.mkdir(mode=0o700)
    except FileNotFoundError:
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        if not is_folder(folder):
            raise


def close_folder(folder: Path) -> None:
    """Make a folder accessible only to its owner (0700), creating it if it is missing.

    Missing parents are created as by `make_folder`. Raises OSError, including when another user
    owns a folder whose mode has to be changed.
    """
    make_folder(folder)
    if not is_private(folder):
        folder.chmod(0o700)


def make_private(path: Path) -> None:
    """Set a file's mode to 0600 and its folder's to 0700, creating both if necessary.

    The file keeps its contents. Raises OSError, including when the file is a link.
    """
    close_folder(path.parent)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | system.OWN | system.NO_LINK, 0o600)
    try:
        system.set_mode(handle, 0o600)
    finally:
        os.close(handle)


def write_new(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Write a file that must not exist yet, with mode 0600, completely or not at all.

    `durable`: flush it to disk, as `write_whole` does. Raises OSError, and FileExistsError if the
    name is taken, even by a broken link.
    """
    with unfinished_file(path) as (stream, made):
        stream.write(content)
        finish_file(stream, made, path, over=False, durable=durable)


def _write_special(path: Path, pieces: Iterable[bytes], special: bool) -> None:
    """Write to something other than a regular file, such as a device or FIFO.

    Doesn't wait for a FIFO's reader. `special`: if False, raise an error instead.
    """
    if not special:
        _require_file(path, path.stat().st_mode)
    handle = os.open(path, os.O_WRONLY | system.OWN | system.AT_ONCE)
    with os.fdopen(handle, "wb") as stream:
        if sys.platform != "win32":
            os.set_blocking(handle, True)
        stream.writelines(pieces)


def _made_like(stream: IO[bytes], before: os.stat_result) -> bool:
    """Give an open file the owner and mode in `before`; return False if not permitted."""
    made = os.fstat(stream.fileno())
    try:
        if (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid):
            if sys.platform == "win32":
                return False
            os.fchown(stream.fileno(), before.st_uid, before.st_gid)
        system.set_mode(stream.fileno(), stat.S_IMODE(before.st_mode) & 0o777)
    except PermissionError:
        return False
    return True


def _write_over(target: Path, spool: IO[bytes], *, durable: bool) -> None:
    import shutil

    spool.seek(0)
    with target.open("wb") as stream:
        shutil.copyfileobj(spool, stream)
        if durable:
            sync(stream)


def copy_content(source: IO[bytes], target: IO[bytes]) -> None:
    """Copy the rest of `source` to `target`, starting at the files' current positions.

    Disk blocks are shared if the file system supports that. Raises OSError.
    """
    import shutil

    target.flush()
    if sys.platform == "linux":
        with suppress(OSError):  # file systems without it: copied below
            while os.copy_file_range(source.fileno(), target.fileno(), _RANGE):
                pass
    shutil.copyfileobj(source, target)


def move_without_replacing(source: Path, target: Path) -> None:
    """Move a file or folder within one file system, without replacing anything.

    Contents and timestamps are kept. Raises FileExistsError if the target exists, and OSError.
    """
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    if sys.platform == "win32":  # where nothing is replaced
        system.move(source.rename, target)
        return
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:  # a folder, or a file system without hard links
        source.rename(target)
    else:
        source.unlink()


@contextmanager
def open_folder(folder: Path) -> Iterator[int]:
    """Keep a folder open in this context; yield its handle. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | system.FOLDER_ONLY | system.OWN)
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def entries_of(folder: Path) -> Iterator[tuple[list[str], Callable[[str], os.stat_result]]]:
    """Yield the names in a folder, and a function that returns the `lstat` of one of them.

    Both raise OSError. Where the system can, the folder is kept open, which is faster than looking
    up whole paths.
    """
    if sys.platform == "win32":
        yield os.listdir(folder), lambda name: os.lstat(folder / name)  # noqa: PTH208
    else:
        with open_folder(folder) as handle:
            names = os.listdir(handle)  # noqa: PTH208
            # a `partial` takes longer than a lambda
            yield names, lambda name: os.stat(name, dir_fd=handle, follow_symlinks=False)


def sync(stream: IO[bytes]) -> None:
    """Flush everything written to an open file to disk."""
    stream.flush()
    os.fsync(stream.fileno())


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, if the file system supports it."""
    with suppress(OSError), open_folder(folder) as handle:
        os.fsync(handle)


# --- what a path leads to ------------------------------------------------------------------------


def stat_if_present(path: str | Path, *, follow: bool = False) -> os.stat_result | None:
    """Return the result of `lstat`; None if nothing is there. Raises OSError.

    Nothing is there, either, if a parent is not a folder, or if the path contains a NUL. `follow`:
    follow a link, as `stat` does; None if it leads nowhere.
    """
    try:
        return os.stat(path, follow_symlinks=follow)  # noqa: PTH116 (costs less)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None


def stat_if_possible(path: str | Path, *, follow: bool = False) -> os.stat_result | None:
    """Return the result of `lstat`; None if nothing is there or access is denied.

    Never raises. `follow`: follow a link, as `stat` does.
    """
    try:
        return os.stat(path, follow_symlinks=follow)  # noqa: PTH116 (costs less)
    except (OSError, ValueError):
        return None


def size_of(path: Path) -> int:
    """Return the size of a file in bytes; 0 if unknown. Links are followed. Never raises."""
    facts = stat_if_possible(path, follow=True)
    return 0 if facts is None else facts.st_size


def path_exists(path: str | Path) -> bool:
    """Return whether a path exists; False if access is denied or the path is invalid.

    Never raises, so use this for untrusted paths, such as paths in settings.
    """
    return stat_if_possible(path, follow=True) is not None


def is_folder(path: Path) -> bool:
    """Return whether a path is a folder. Never raises; see `path_exists`."""
    facts = stat_if_possible(path, follow=True)
    return facts is not None and stat.S_ISDIR(facts.st_mode)


def is_file(path: Path) -> bool:
    """Return whether a path is a regular file. Never raises; see `path_exists`."""
    facts = stat_if_possible(path, follow=True)
    return facts is not None and stat.S_ISREG(facts.st_mode)


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold an exclusive lock on a file during a `with` block.

    The file is created if it doesn't exist. Yields whether the lock was acquired. `wait`: wait
    until the lock is free; if False, yield False at once when another process holds the lock. The
    operating system releases the lock when the process holding it ends, for whatever reason. Raises
    OSError.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | system.OWN | system.NO_LINK, 0o600)
    try:
        yield system.lock(handle, wait=wait)
    finally:
        os.close(handle)


def changed_at(path: Path) -> float:
    """Return when a file was last changed, in seconds since the epoch; 0 if unknown.

    If the file doesn't exist, the time is that of its nearest existing parent folder. Never raises.
    """
    for folder in (path, *path.parents):
        facts = stat_if_possible(folder)
        if facts is not None:
            return facts.st_ctime
    return 0.0


def is_private(path: Path) -> bool:
    """Return whether a path is a folder that only its owner can access. Never raises."""
    facts = stat_if_possible(path, follow=True)
    if facts is None or not stat.S_ISDIR(facts.st_mode):
        return False
    return sys.platform == "win32" or not facts.st_mode & 0o077


def resolved(path: Path) -> Path:
    """Return an absolute path with links resolved as far as possible. Never raises."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        return path.absolute()


def files_below(
    folder: AnyStr,
    *,
    enters: Callable[[os.DirEntry[AnyStr]], bool] | None = None,
    unread: list[AnyStr] | None = None,
) -> Iterator[os.DirEntry[AnyStr]]:
    """Yield an entry for everything under a folder that is not itself a folder. Never raises.

    Links are yielded, but not followed. `enters`: decides whether a folder is entered; None enters
    all of them. `unread`: a list to which the folders that can't be read are added.
    """
    waiting = [folder]
    while waiting:
        current = waiting.pop()
        try:
            with os.scandir(current) as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        yield entry
                    elif enters is None or enters(entry):
                        waiting.append(entry.path)
        except (OSError, ValueError):  # ValueError: a NUL in the name
            if unread is not None:
                unread.append(current)


def folder_sizes(folder: Path) -> Iterator[int]:
    """Yield the size in bytes of each file under a folder. Never raises."""
    for entry in files_below(str(folder)):
        with suppress(OSError):
            yield entry.stat(follow_symlinks=False).st_size
