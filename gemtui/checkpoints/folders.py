"""The permission bits of a project's folders.

In checkpoints, a folder's name ends with a slash, so that it can't be confused with a file that
later replaces the folder. A folder is included only if it contains files that checkpoints include.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from gemtui.checkpoints.states import FOLDER, GONE, FileState
from gemtui.checkpoints.store import folders_of

TOP = b"./"
"""The name under which the project's root folder is stored."""


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
    top, found, gone = os.fsencode(root) + b"/", dict[bytes, int | None](), set[bytes]()
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
            found[name] = None
        else:
            found[name] = mode & 0o777
    return found


def folder_state(mode: int | None) -> FileState:
    """Return the state of a folder with these permission bits; GONE if they are None."""
    return GONE if mode is None else FileState(FOLDER, mode)
