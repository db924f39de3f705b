"""Find a folder's repository; sessions in a worktree belong to its repository."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from gemtui.files import is_file, read_small
from gemtui.sessions.store.projects import folder_names

_MOST = 4096
"""Maximum size of a worktree's `.git` file, in bytes."""


class ProjectFolders:
    """The folders whose sessions belong to a project; use `in` to test one.

    They are the project's own folder and the worktrees of its repository.
    """

    def __init__(self, project: Path) -> None:
        self._repositories = {repository_of(name) for name in folder_names(project)}

    def __contains__(self, folder: object) -> bool:
        """Return whether sessions in this folder belong to the project.

        Returns False for None, which means that the folder is unknown.
        """
        return isinstance(folder, str) and repository_of(folder) in self._repositories


@lru_cache(maxsize=4096)
def repository_of(folder: str) -> str:
    """Return the repository of the worktree at `folder`, or else `folder` itself.

    A deleted worktree is recognised if gemtui created it, or if Gemini CLI created it in the
    repository's `.gemini/worktrees` (assets/gemini-cli.md#places).
    """
    place = Path(folder)
    if is_file(place / ".git"):
        with suppress(OSError, UnicodeDecodeError):
            return _named(place, read_small(place / ".git", _MOST).decode()) or folder
    above = place.parent
    if above.name == "worktrees" and above.parent.name == ".gemini":
        return str(above.parent.parent)
    from gemtui.worktree_records import origin_of

    return str(origin_of(place))


def _named(worktree: Path, text: str) -> str | None:
    """Return the repository named in a worktree's `.git` file, or None.

    The file contains `gitdir: /repository/.git/worktrees/name`.
    """
    git = worktree / Path(text.removeprefix("gitdir:").strip())
    if git.parent.name != "worktrees" or git.parents[1].name != ".git":
        return None
    return str(git.parents[2].resolve())
