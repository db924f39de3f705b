"""Operations on one archived file: copy, append, and restore.

Archived files are copies, so that nothing that happens to a session file affects them. No file
becomes visible before it is complete, except that the copy of a log grows as the log does: an
interrupted update leaves a beginning of the log, whose size and time differ from the log's, so that
it is never taken for all of it. No session file is replaced unless it was archived first.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gemtui import system
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

    The file must start with the copy's contents. If this is interrupted, it still does, and the
    copy has another time than the file. Raises OSError.
    """
    with open_regular(path) as source, copy.open("ab") as target:
        facts = os.fstat(source.fileno())
        source.seek(os.fstat(target.fileno()).st_size)
        shutil.copyfileobj(source, target)
    os.utime(copy, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def replace_with_copy(path: Path, kept: Path, *, head: bytes = b"") -> None:
    """Replace `kept` with a copy of `path` that has been flushed to disk.

    `head`: bytes to write before the contents. Raises OSError.
    """
    with temporary(kept) as new:
        copy_file(path, new, head=head)
        flush(new)
        system.move(new.replace, kept)
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
    is_windows = sys.platform == "win32"  # which flushes only what is open for writing
    with path.open("r+b") if is_windows else open_regular(path) as stream:
        sync(stream)


def restore_file(
    kept: Path,
    place: Path,
    *,
    write: Callable[[Path, Path], None] = copy_file,
    over: os.stat_result | None = None,
) -> bool:
    """Restore an archived file to its place, complete and flushed to disk.

    If this is interrupted, a temporary file remains beside the archived file or beside its place;
    the next attempt deletes it.

    Arguments:
        kept: the archived file.
        place: its place in the store.
        write: creates the file, from `kept`, at the path that is its second argument.
        over: the state of an existing file that has been archived; it is replaced, unless it has
            changed since.

    Returns False if another file is at `place`. Raises OSError.
    """
    make_folder(place.parent)
    beside_place = place.with_name(f".gemtui-{place.stem}")
    try:
        if over is None:
            try:
                # An interrupted move may leave a file under both names: not in the store, then.
                beside_kept = kept.with_name(f"{TEMPORARY[-1]}{place.stem}")
                _write_and_move(kept, beside_kept, write, place)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                _write_and_move(kept, beside_place, write, place)
        else:
            _write_and_move(kept, beside_place, write, place, over)
    except FileExistsError:
        return False
    sync_folder(place.parent)
    return True


def _write_and_move(
    kept: Path,
    new: Path,
    write: Callable[[Path, Path], None],
    place: Path,
    over: os.stat_result | None = None,
) -> None:
    """Write a file completely, as `new`, and move it to its place.

    `over`: the state of the file that it replaces. Raises OSError; in particular FileExistsError if
    another file is at `place`.
    """
    new.unlink(missing_ok=True)
    try:
        write(kept, new)
        flush(new)
        if over is None:
            move_without_replacing(new, place)
            return
        current = stat_if_present(place)
        if current is not None:
            is_same_file = os.path.samestat(current, over)
            if not is_same_file or not same_version(current, over):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place))
        system.move(new.replace, place)
    finally:
        new.unlink(missing_ok=True)
