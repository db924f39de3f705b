"""Files: ours are written whole or not at all, for the user's eyes only."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, pieces: Iterable[bytes]) -> None:
    """Put `pieces` into `path`, 0600, replacing what is there only once all is written.

    A file that is there keeps its mode; what is no regular file (a device, a FIFO) is written to
    as it is. Raises OSError, which names the folder where it takes no new file, and whatever
    `pieces` raises; then the old content stands.
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
