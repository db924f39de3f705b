"""One file that is kept: linked, copied, compared, put back.

A log only grows, so another name of it holds all that is written to it; what changes a file in its
place changes it under all its names, so a copy must follow. Here is how each is done, by the vault
and for a run; which of them, and when, is theirs to say. Nothing appears that is not whole, and
nothing of a session is ever written over.
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gemtui.files import copy_content, make_folder, move_new, open_regular, sync, sync_folder
from gemtui.sessions.vault_files import TEMPORARY

_PIECE = 1 << 20
_SAMPLE = 4096
"""Bytes at either end of a beginning that are compared where a sample will do."""
_NEVER_LINKED = frozenset(
    {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
)
"""What the system says where there can be no other name: mostly another file system."""


# --- compared ------------------------------------------------------------------------------------


def facts_of(path: Path) -> os.stat_result | None:
    """Return what `lstat` says; None where nothing is. Raises OSError."""
    with suppress(FileNotFoundError):
        return path.lstat()
    return None


def size_of(path: Path) -> int:
    """Return the bytes of a file; 0 where that can't be known."""
    with suppress(OSError):
        return path.stat().st_size
    return 0


def same_version(kept: os.stat_result, facts: os.stat_result) -> bool:
    """Return whether a copy has the size and the time of its file."""
    return (kept.st_size, kept.st_mtime_ns) == (facts.st_size, facts.st_mtime_ns)


def begins_with(path: Path, kept: Path, *, sampled: bool = False) -> bool:
    """Return whether a file holds, byte for byte, all of another one at its beginning.

    `sampled`: compare the two ends of it only, for a list; never before something is removed.
    Raises OSError.
    """
    with open_regular(path) as file, open_regular(kept) as beginning:
        size = os.fstat(beginning.fileno()).st_size
        if size > os.fstat(file.fileno()).st_size:
            return False
        if sampled and size > 2 * _SAMPLE:
            if beginning.read(_SAMPLE) != file.read(_SAMPLE):
                return False
            beginning.seek(size - _SAMPLE)
            file.seek(size - _SAMPLE)
        while piece := beginning.read(_PIECE):
            if file.read(len(piece)) != piece:
                return False
    return True


# --- linked and copied ---------------------------------------------------------------------------


def link(path: Path, new: Path) -> bool:
    """Make `new` another name of a file; return False where there can be none.

    Raises OSError, FileExistsError where something is.
    """
    try:
        os.link(path, new, follow_symlinks=False)
    except OSError as error:
        if error.errno in _NEVER_LINKED:
            return False
        raise
    return True


def copy_file(path: Path, new: Path, *, head: bytes = b"") -> None:
    """Copy content and times, behind `head`, for the user's eyes only. Raises OSError."""
    new.touch(mode=0o600)
    with open_regular(path) as source, new.open("wb") as target:
        facts = os.fstat(source.fileno())
        target.write(head)
        copy_content(source, target)
    os.utime(new, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def append_rest(path: Path, copy: Path) -> None:
    """Append what has come to a file that begins with its copy. Raises OSError.

    If this is interrupted, the copy is still the beginning of the file.
    """
    with open_regular(path) as source, copy.open("ab") as target:
        facts = os.fstat(source.fileno())
        source.seek(os.fstat(target.fileno()).st_size)
        shutil.copyfileobj(source, target)
    os.utime(copy, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def link_instead(path: Path, kept: Path) -> bool:
    """Let `kept` be a name of a file that holds all that it held; False where there can be none.

    Raises OSError.
    """
    with temporary(kept) as new:
        if not link(path, new):
            return False
        new.replace(kept)
    return True


def copy_instead(path: Path, kept: Path, *, head: bytes = b"") -> None:
    """Let `kept` be a copy of a file that is on the disk by then. Raises OSError."""
    with temporary(kept) as new:
        copy_file(path, new, head=head)
        flush(new)
        new.replace(kept)
    sync_folder(kept.parent)


@contextmanager
def temporary(kept: Path) -> Iterator[Path]:
    """Give a name beside a file that is no session's, and is gone afterwards."""
    new = kept.with_name(f"{TEMPORARY[0]}{os.getpid()}-{threading.get_ident()}")
    new.unlink(missing_ok=True)
    try:
        yield new
    finally:
        new.unlink(missing_ok=True)


def flush(path: Path) -> None:
    """Bring a file's content to the disk. Raises OSError."""
    with open_regular(path) as stream:
        sync(stream)


# --- put back ------------------------------------------------------------------------------------


def put(
    kept: Path, place: Path, *, shared: bool, write: Callable[[Path, Path], None] = copy_file
) -> bool:
    """Let what is kept appear at its place, whole and on the disk; False where something is.

    `shared`: as the very file that is kept, where there can be another name of it. `write` makes
    the copy otherwise; one that is interrupted leaves a file beside what is kept, or, where that is
    on another file system, beside the place, which the next try removes. Raises OSError.
    """
    make_folder(place.parent)
    try:
        if shared and link(kept, place):
            flush(place)
        else:
            _put_copy(kept, place, write)
    except FileExistsError:
        return False
    sync_folder(place.parent)
    return True


def _put_copy(kept: Path, place: Path, write: Callable[[Path, Path], None]) -> None:
    beside = place.with_name(f".gemtui-{place.stem}")
    for new in (kept.with_name(f"{TEMPORARY[-1]}{place.stem}"), beside):
        new.unlink(missing_ok=True)
        try:
            write(kept, new)
            flush(new)
            if link(new, place):
                return
            if new == beside:
                move_new(new, place)
        finally:
            new.unlink(missing_ok=True)
