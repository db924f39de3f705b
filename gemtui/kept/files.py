"""Operations on one archived file: link, copy, and restore.

A log only grows, so a hard link to it contains everything that is appended later. A change in place
affects all links, so files that may change in place must be copied. `vault` and `run_copies` decide
which operation to use, and when. No file becomes visible before it is complete, and no session file
is replaced unless it was archived first.
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gemtui.files import (
    copy_content,
    make_folder,
    move_without_replacing,
    open_regular,
    stat_if_present,
    sync,
    sync_folder,
)
from gemtui.sessions.catalog.vault_files import TEMPORARY
from gemtui.sessions.read.versions import same_version

_NEVER_LINKED = frozenset(
    {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
)
"""The errors that mean that the system can't create a hard link.

The usual reason is that the two paths are on different file systems.
"""


# --- linking and copying -------------------------------------------------------------------------


def link(path: Path, new: Path) -> bool:
    """Create `new` as a hard link to `path`; return False if the system can't.

    Raises OSError; in particular FileExistsError if `new` exists.
    """
    try:
        os.link(path, new, follow_symlinks=False)
    except OSError as error:
        if error.errno in _NEVER_LINKED:
            return False
        raise
    return True


def copy_file(path: Path, new: Path, *, head: bytes = b"") -> None:
    """Write `head` to the file `new`, followed by the contents of `path`.

    The timestamps are copied as well. Raises OSError.
    """
    new.touch(mode=0o600)
    with open_regular(path) as source, new.open("wb") as target:
        facts = os.fstat(source.fileno())
        target.write(head)
        copy_content(source, target)
    os.utime(new, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def append_rest(path: Path, copy: Path) -> None:
    """Append to a copy whatever its file has gained since it was copied.

    If this is interrupted, the copy still equals the start of the file. Raises OSError.
    """
    with open_regular(path) as source, copy.open("ab") as target:
        facts = os.fstat(source.fileno())
        source.seek(os.fstat(target.fileno()).st_size)
        shutil.copyfileobj(source, target)
    os.utime(copy, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def replace_with_link(path: Path, kept: Path) -> bool:
    """Replace `kept` with a hard link to `path`, which must contain all of it.

    Returns False if the system can't create the link. Raises OSError.
    """
    with temporary(kept) as new:
        if not link(path, new):
            return False
        new.replace(kept)
    return True


def replace_with_copy(path: Path, kept: Path, *, head: bytes = b"") -> None:
    """Replace `kept` with a copy of `path` that has been flushed to disk.

    `head`: bytes to write before the contents. Raises OSError.
    """
    with temporary(kept) as new:
        copy_file(path, new, head=head)
        flush(new)
        new.replace(kept)
    sync_folder(kept.parent)


@contextmanager
def temporary(kept: Path) -> Iterator[Path]:
    """Yield an unused temporary path beside `kept`; delete that file afterwards."""
    new = kept.with_name(f"{TEMPORARY[0]}{os.getpid()}-{threading.get_ident()}")
    new.unlink(missing_ok=True)
    try:
        yield new
    finally:
        new.unlink(missing_ok=True)


def flush(path: Path) -> None:
    """Flush a file's content to the disk. Raises OSError."""
    with open_regular(path) as stream:
        sync(stream)


# --- restoring -----------------------------------------------------------------------------------


def restore_file(
    kept: Path,
    place: Path,
    *,
    shared: bool,
    write: Callable[[Path, Path], None] = copy_file,
    over: os.stat_result | None = None,
) -> bool:
    """Restore an archived file to its place, complete and flushed to disk.

    Returns False if a file already exists at `place`. `over`: the state of an existing file that
    has been archived; it is replaced, unless it has changed since. `shared`: restore the archived
    file itself, as a hard link, if possible. Otherwise `write` creates a copy. If that is
    interrupted, a temporary file remains beside the archived file or beside its place; the next
    attempt deletes it. Raises OSError.
    """
    make_folder(place.parent)
    if over is not None:
        return _replace(kept, place, over, shared=shared, write=write)
    try:
        if shared and link(kept, place):
            flush(place)
        else:
            _put_copy(kept, place, write)
    except FileExistsError:
        return False
    sync_folder(place.parent)
    return True


def _replace(
    kept: Path,
    place: Path,
    over: os.stat_result,
    *,
    shared: bool,
    write: Callable[[Path, Path], None],
) -> bool:
    new = _beside(place)
    new.unlink(missing_ok=True)
    try:
        if not (shared and link(kept, new)):
            write(kept, new)
        flush(new)
        there = stat_if_present(place)
        if there is not None and not (os.path.samestat(there, over) and same_version(there, over)):
            return False
        new.replace(place)
    finally:
        new.unlink(missing_ok=True)
    sync_folder(place.parent)
    return True


def _beside(place: Path) -> Path:
    return place.with_name(f".gemtui-{place.stem}")


def _put_copy(kept: Path, place: Path, write: Callable[[Path, Path], None]) -> None:
    beside = _beside(place)
    for new in (kept.with_name(f"{TEMPORARY[-1]}{place.stem}"), beside):
        new.unlink(missing_ok=True)
        try:
            write(kept, new)
            flush(new)
            if link(new, place):
                return
            if new == beside:
                move_without_replacing(new, place)
        finally:
            new.unlink(missing_ok=True)
