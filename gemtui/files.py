"""Files: ours are written whole or not at all, those of others read bounded and without waiting."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

SMALL = 4_000_000
"""Bytes: no settings, policy or record of a run that a person or a CLI wrote is larger."""


def read_small(path: Path, most: int = SMALL) -> bytes:
    """All of a small regular file that others may have written.

    A FIFO, a device or a socket is never opened, a file of more than `most` bytes never read whole,
    whatever its size is said to be. Links are followed, and what was opened is what is judged.
    Raises OSError, FileNotFoundError included: its `strerror` is a plain word, its `filename` the
    path.
    """
    try:
        _require_file(path, path.stat().st_mode)
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except ValueError as error:  # a NUL in the name
        raise OSError(errno.EINVAL, "not a path", str(path)) from error
    with os.fdopen(handle, "rb", buffering=0) as stream:
        _require_file(path, os.fstat(handle).st_mode)
        pieces, left = [], most + 1
        while left > 0 and (piece := stream.read(left)):
            pieces.append(piece)
            left -= len(piece)
    if left <= 0:
        raise OSError(errno.EFBIG, f"larger than {most:,} bytes, too large to read", str(path))
    return b"".join(pieces)


def _require_file(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))


def write_whole(path: Path, pieces: Iterable[bytes], *, durable: bool = False) -> None:
    """Put `pieces` into `path`, 0600, replacing what is there only once all is written.

    A file that is there keeps its mode; what is no regular file (a device, a FIFO) is written to
    as it is. `durable`: on the disk before the old content goes, for what is the user's own and
    can't be made again. Raises OSError, which names the folder where it takes no new file, and
    whatever `pieces` raises; then the old content stands.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        with target.open("wb") as stream:
            stream.writelines(pieces)
        return
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:50]}.", dir=target.parent)
    except OSError as error:
        error.filename = str(target.parent)
        raise
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(pieces)
            if target.exists():
                os.fchmod(stream.fileno(), target.stat().st_mode & 0o777)
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def is_there(path: Path) -> bool:
    """Whether something is at a path; False as well where nobody may look, and for no path at all.

    For paths that others have written down, such as those of settings: it never raises.
    """
    with suppress(OSError, ValueError):
        return path.exists()
    return False
