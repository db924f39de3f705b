"""Files: ours are written whole or not at all, those of others read bounded and without waiting."""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO

SMALL = 4_000_000
"""Bytes: no settings, policy or record of a run that a person or a CLI wrote is larger."""


def read_small(path: Path, most: int = SMALL) -> bytes:
    """All of a small regular file that others may have written.

    A FIFO, a device or a socket is never opened, a file of more than `most` bytes never read whole,
    whatever its size is said to be. Links are followed, and what was opened is what is judged.
    Raises OSError, FileNotFoundError included: its `strerror` is a plain word, its `filename` the
    path.
    """
    with open_regular(path) as stream:
        pieces, left = [], most + 1
        while left > 0 and (piece := stream.read(left)):
            pieces.append(piece)
            left -= len(piece)
    if left <= 0:
        raise OSError(errno.EFBIG, f"larger than {most:,} bytes, too large to read", str(path))
    return b"".join(pieces)


def open_regular(path: Path) -> io.FileIO:
    """A regular file that others may have written, open for reading in pieces. Raises OSError."""
    try:
        _require_file(path, path.stat().st_mode)
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except ValueError as error:  # a NUL in the name
        raise OSError(errno.EINVAL, "not a path", str(path)) from error
    stream = io.FileIO(handle)
    try:
        _require_file(path, os.fstat(handle).st_mode)
    except OSError:
        stream.close()
        raise
    return stream


def read_end(path: Path, most: int) -> bytes:
    """The last `most` bytes of a regular file that others may have written. Raises OSError."""
    with open_regular(path) as stream:
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - most))
        return stream.read(most)


def _require_file(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))


def write_whole(
    path: Path, pieces: Iterable[bytes], *, durable: bool = False, special: bool = False
) -> None:
    """Put `pieces` into `path`, 0600, replacing what is there only once all is written.

    Links are followed. A file that is there keeps its mode and its owner; where no new one can
    stand in its place (its folder takes none, or it belongs to somebody else) it is written over,
    once all `pieces` have come. `special`: what is no regular file (a device, a FIFO that somebody
    reads) is written to as it is; otherwise it is an error. `durable`: on the disk before the old
    content goes, for what is the user's own and can't be made again. Raises OSError, which names
    the folder where it takes no new file, and what `pieces` raises; then the old content stands.
    """
    target = resolved(path)
    before = _facts(target)
    if before is not None and not stat.S_ISREG(before.st_mode):
        _write_special(path, pieces, special)
        return
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:50]}.", dir=target.parent)
    except OSError as error:
        if before is None or not os.access(target, os.W_OK):
            error.filename = str(target.parent)
            raise
        with tempfile.TemporaryFile() as spool:
            spool.writelines(pieces)
            _write_over(target, spool, durable=durable)
        return
    try:
        with os.fdopen(handle, "w+b") as stream:
            stream.writelines(pieces)
            if before is not None and not _made_like(stream, before):
                _write_over(target, stream, durable=durable)
                Path(name).unlink()
                return
            if durable:
                sync(stream)
        Path(name).replace(target)
        if durable:
            sync_folder(target.parent)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _write_special(path: Path, pieces: Iterable[bytes], special: bool) -> None:
    """Without waiting for a reader to come; what one reads is waited for."""
    if not special:
        _require_file(path, path.stat().st_mode)
    handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with os.fdopen(handle, "wb") as stream:
        os.set_blocking(handle, True)
        stream.writelines(pieces)


def _facts(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None
    except ValueError as error:  # a NUL in the name
        raise OSError(errno.EINVAL, "not a path", str(path)) from error


def _made_like(stream: IO[bytes], before: os.stat_result) -> bool:
    """Give a file the owner and the mode of another one; whether that could be done."""
    made = os.fstat(stream.fileno())
    try:
        if (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid):
            os.fchown(stream.fileno(), before.st_uid, before.st_gid)
        os.fchmod(stream.fileno(), stat.S_IMODE(before.st_mode) & 0o777)
    except PermissionError:
        return False
    return True


def _write_over(target: Path, spool: IO[bytes], *, durable: bool) -> None:
    spool.seek(0)
    with target.open("wb") as stream:
        shutil.copyfileobj(spool, stream)
        if durable:
            sync(stream)


def sync(stream: IO[bytes]) -> None:
    """All that was written to a file is on the disk."""
    stream.flush()
    os.fsync(stream.fileno())


def sync_folder(folder: Path) -> None:
    """The names in a folder are on the disk as they are now, where its file system can do that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# --- questions about paths that people or files name ----------------------------------------------


def is_there(path: Path) -> bool:
    """Whether something is at a path; False as well where nobody may look, and for no path at all.

    For paths that others have written down, such as those of settings: it never raises.
    """
    with suppress(OSError, ValueError):
        return path.exists()
    return False


def is_folder(path: Path) -> bool:
    """Whether a folder is at a path; as `is_there`, it never raises."""
    with suppress(OSError, ValueError):
        return path.is_dir()
    return False


def is_file(path: Path) -> bool:
    """Whether a regular file is at a path; as `is_there`, it never raises."""
    with suppress(OSError, ValueError):
        return path.is_file()
    return False


def is_private(path: Path) -> bool:
    """Whether a folder is at a path that nobody but its owner may look into; it never raises."""
    with suppress(OSError, ValueError):
        facts = path.stat()
        return stat.S_ISDIR(facts.st_mode) and not facts.st_mode & 0o077
    return False


def resolved(path: Path) -> Path:
    """An absolute path without links, as far as they lead anywhere; it never raises."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        return path.absolute()
