"""Records of the git worktrees gemtui has created for runs.

Each worktree has its own folder under `worktrees_dir()`. The folder contains the record, a private
git repository, and the working tree in a subfolder named after the project. The record outlives the
worktree, because sessions that ran in the worktree still belong to the original repository.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from gemtui.errors import WorktreeNotFound
from gemtui.files import is_folder, remove_unfinished_files, resolved
from gemtui.jsonfile import read_as, write_again
from gemtui.paths import worktrees_dir

LATEST = "latest"
"""The word that selects the newest worktree instead of a worktree's name."""
NEW_WORKTREE = "The run works in a new git worktree of this repository, which gemtui creates first."
"""The note about a run that will start in a new worktree."""
_RECORD, _PRIVATE = "worktree.json", "git"
_MOST = 64_000_000
"""The size limit of a record, in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worktree:
    """A git worktree where runs work.

    * `repository`: the working tree of the repository that the worktree was created from.
    * `tree`: the worktree's own working tree. `folder`: the folder in `tree` where runs work; it
      corresponds to the folder in the repository where they would have worked.
    * `commit`: the commit that the worktree started from.
    * `base`: the id of the checkpoint with the worktree's initial state; None if creating the
      worktree was not completed.
    * `made`: the creation time in ISO 8601. `prompt`: the prompt of its first run, truncated.
    * `taken`: the files that were applied to the repository. Maps each file's name in hexadecimal
      digits to the state that was applied.
    * `removed`: whether only the record is left.
    """

    name: str
    branch: str
    repository: Path
    tree: Path
    folder: Path
    commit: str
    base: int | None
    made: str
    prompt: str
    taken: Mapping[str, str] = field(default_factory=dict)
    removed: bool = False

    @property
    def exists(self) -> bool:
        """Whether the worktree's files still exist."""
        return is_folder(self.tree)

    @property
    def private(self) -> Path:
        """The folder of the worktree's private git repository."""
        return worktrees_dir() / self.name / _PRIVATE

    def save(self) -> None:
        """Write the record. Raises OSError."""
        write_again(worktrees_dir() / self.name / _RECORD, self, _MOST)

    def forget(self) -> None:
        """Delete everything but the record, and shorten the record.

        The prompt and the list of applied files are removed from it. Raises OSError.
        """
        from shutil import rmtree

        folder = worktrees_dir() / self.name
        replace(self, prompt="", taken={}, removed=True).save()
        for file in folder.iterdir():
            if file.is_dir() and not file.is_symlink():
                rmtree(file)
            elif file.name != _RECORD:
                file.unlink()

    def about(self) -> dict[str, Any]:
        """Return the facts about the worktree that are stored in the record of a run."""
        return {"name": self.name, "branch": self.branch, "repository": str(self.repository)}


def list_worktrees() -> tuple[Worktree, ...]:
    """Return all worktrees that have not been removed, newest first."""
    worktrees: list[Worktree] = []
    with suppress(OSError):
        for folder in worktrees_dir().iterdir():
            worktree = _read(folder.name)
            if worktree is not None and not worktree.removed:
                worktrees.append(worktree)
    return tuple(sorted(worktrees, key=lambda each: (each.made, each.name), reverse=True))


def remove_unrecorded() -> None:
    """Remove the folders of worktrees whose creation was killed before they had a record."""
    with suppress(OSError):
        for folder in worktrees_dir().iterdir():
            if not os.path.lexists(folder / _RECORD) and remove_unfinished_files(folder):
                with suppress(OSError):
                    folder.rmdir()


def unreadable_worktrees() -> tuple[Path, ...]:
    """Return the folders of worktrees whose record is damaged, so that they are in no list."""
    with suppress(OSError):
        places = sorted(worktrees_dir().iterdir())
        return tuple(
            folder
            for folder in places
            if os.path.lexists(folder / _RECORD) and _read(folder.name) is None
        )
    return ()


def find_worktree(wanted: str) -> Worktree:
    """Return the worktree with this name or branch, or a unique prefix of one.

    `latest` selects the newest worktree. Raises WorktreeNotFound if no worktree or more than one
    matches.
    """
    worktrees = list_worktrees()
    if wanted == LATEST:
        matches = list(worktrees[:1])
    else:
        matches = [worktree for worktree in worktrees if wanted in (worktree.name, worktree.branch)]
        matches = matches or [
            worktree
            for worktree in worktrees
            if wanted and (worktree.name.startswith(wanted) or worktree.branch.startswith(wanted))
        ]
    if not matches:
        raise WorktreeNotFound(f"no worktree is named {wanted!r}: gemtui worktrees lists them")
    if len(matches) > 1:
        names = ", ".join(worktree.name for worktree in matches[:10])
        raise WorktreeNotFound(f"{len(matches)} worktrees match {wanted!r}: {names}")
    return matches[0]


def worktree_of(folder: Path) -> Worktree | None:
    """Return the worktree that a folder is in, or None if it is in no worktree."""
    record = _holding(folder)
    return None if record is None or record.removed else record


def origin_of(folder: Path) -> Path:
    """Return the original repository's folder that corresponds to a worktree's folder.

    A folder outside of worktrees is returned unchanged. The worktree may have been removed already.
    """
    record = _holding(folder)
    if record is None:
        return folder
    return record.repository / resolved(folder).relative_to(resolved(record.tree))


def _holding(folder: Path) -> Worktree | None:
    path, top = resolved(folder), resolved(worktrees_dir())
    if not path.is_relative_to(top) or path == top:
        return None
    record = _read(path.relative_to(top).parts[0])
    return record if record is not None and path.is_relative_to(resolved(record.tree)) else None


def _read(name: str) -> Worktree | None:
    record = read_as(worktrees_dir() / name / _RECORD, Worktree, _MOST)
    return record if record is not None and record.name == name else None


def made_at(worktree: Worktree) -> datetime | None:
    """Return when a worktree was created; None if its record has no valid time."""
    with suppress(ValueError):
        return datetime.fromisoformat(worktree.made)
    return None
