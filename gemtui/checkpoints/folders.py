"""The modes of a project's folders.

In checkpoints a folder's name ends with a slash, so that it can't be confused with the name of a
file that is put in the folder's place. Only folders that contain known files are included.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from gemtui.checkpoints.states import FOLDER, GONE, FileState
from gemtui.checkpoints.store import folders_of

TOP = b"./"
"""The name of the project's own folder."""


def folders_above(files: Iterable[bytes]) -> set[bytes]:
    """Return the names of all folders above these files."""
    direct = {name.rpartition(b"/")[0] for name in files} - {b""}
    above = {folder for name in direct for folder in folders_of(name)}
    return {TOP, *(name + b"/" for name in direct | above)}


def folder_modes(root: Path, names: Iterable[bytes]) -> dict[bytes, int | None]:
    """Return the permission bits of folders; folders that can't be examined are omitted.

    `names`: with each folder, all folders above it are included. The mode is None if the folder is
    missing, or if a link is in its place or in that of a folder above it.
    """
    top, found, gone = os.fsencode(root) + b"/", dict[bytes, int | None](), set[bytes]()
    for name in sorted(names):  # so that each folder comes after those above it
        path = name[:-1]
        try:
            mode = os.lstat(top + path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            mode = 0
        except OSError:
            continue
        if not stat.S_ISDIR(mode) or (gone and path.rpartition(b"/")[0] in gone):
            gone.add(path)
            found[name] = None
        else:
            found[name] = mode & 0o777
    return found


def folder_state(mode: int | None) -> FileState:
    """Return the state of a folder with these permission bits; GONE if they are None."""
    return GONE if mode is None else FileState(FOLDER, mode)
