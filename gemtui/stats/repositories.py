"""The repository that a folder counts for: a worktree's sessions are its repository's."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from gemtui.files import is_file, read_small

_MOST = 4096
"""Bytes of the file `.git` of a worktree."""


@lru_cache(maxsize=4096)
def repository_of(folder: str) -> str:
    """Return the folder of the repository that `folder` is a worktree of, else `folder`.

    A worktree that is gone is known if Gemini CLI made it, in `.gemini/worktrees` of the repository
    (assets/gemini-cli.md#places).
    """
    place = Path(folder)
    if is_file(place / ".git"):
        with suppress(OSError, UnicodeDecodeError):
            return _named(place, read_small(place / ".git", _MOST).decode()) or folder
    above = place.parent
    if above.name == "worktrees" and above.parent.name == ".gemini":
        return str(above.parent.parent)
    return folder


def _named(worktree: Path, text: str) -> str | None:
    """The repository that a worktree's `.git` names: `gitdir: /repository/.git/worktrees/name`."""
    git = worktree / Path(text.removeprefix("gitdir:").strip())
    if git.parent.name != "worktrees" or git.parents[1].name != ".git":
        return None
    return str(git.parents[2].resolve())
