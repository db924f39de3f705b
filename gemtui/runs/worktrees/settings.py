"""Copy a project's settings to a worktree, even if they are not committed.

A run in the worktree must have the settings that the user was told about before the run, so that
what they forbid is forbidden there too.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from gemtui.checkpoints.project_files import ProjectFiles
from gemtui.checkpoints.states import ABSENT, FILE, LINK
from gemtui.checkpoints.store import digest_of
from gemtui.errors import WorktreeError

_FOLDER, _VARIABLES = b".gemini", b".env"
_OTHER = (b"tmp", b"worktrees")
"""The subfolders of `.gemini` that contain no settings."""
_MOST = 2_000
"""The most files to copy from one `.gemini` folder."""
_SPARE = b".gemtui-settings"


def copy_settings(source: Path, tree: Path, inside: Path) -> None:
    """Copy `.gemini` folders and `.env` files from a working tree to a worktree.

    `source`, `tree`: the roots of the original working tree and of the worktree. `inside`: the
    folder where a run works, relative to both roots; its parents' settings are copied as well.
    Files that the original lacks are removed from the worktree. Raises OSError, and WorktreeError
    if not everything can be copied.
    """
    folders = [os.fsencode(each) for each in (inside, *inside.parents)]
    with ProjectFiles(source) as here, ProjectFiles(tree) as there:
        for folder in folders:
            above = b"" if folder == b"." else folder + b"/"
            names = {above + _VARIABLES, *_below(source, above), *_below(tree, above)}
            for name in sorted(names):
                _copy(here, there, name)


def _copy(here: ProjectFiles, there: ProjectFiles, name: bytes) -> None:
    kept = _Contents()
    state, _ = here.state(name, kept)
    now, _ = there.state(name)
    if not state.kept:
        raise WorktreeError(f"{os.fsdecode(name)} can't be copied into a worktree: {state.why}")
    if (state.kind, state.content) == (now.kind, now.content):
        return
    if state.kind == ABSENT:
        there.remove(name)
    elif state.kind in (FILE, LINK):
        there.write(name, state, kept.data, _SPARE)


class _Contents:
    """Implements the Keeper interface by keeping one file's contents in memory."""

    data = b""

    def keep(self, data: bytes) -> str:
        self.data = data
        return digest_of(data)


def _below(top: Path, above: bytes) -> Iterator[bytes]:
    """Yield the names of the files in a folder's `.gemini`. Raises WorktreeError.

    `top`: the root; names are relative to it. `above`: the folder, relative to `top`, with a
    trailing slash; empty for `top` itself.
    """
    root = os.fsencode(top)
    start, count = os.path.join(root, above + _FOLDER), 0  # noqa: PTH118
    if not os.path.isdir(start) or os.path.islink(start):  # noqa: PTH112, PTH114
        if os.path.lexists(start):
            yield above + _FOLDER
        return
    for place, folders, files in os.walk(start):
        if place == start:
            folders[:] = [each for each in folders if each not in _OTHER]
        links = [each for each in folders if _is_link(place, each)]
        for each in (*files, *links):
            count += 1
            if count > _MOST:
                raise WorktreeError(f"{os.fsdecode(start)} contains too many files for a worktree")
            yield os.path.join(place, each)[len(root) + 1 :]  # noqa: PTH118


def _is_link(place: bytes, name: bytes) -> bool:
    return stat.S_ISLNK(os.lstat(os.path.join(place, name)).st_mode)  # noqa: PTH118
