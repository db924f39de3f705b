"""The worktrees that gemtui has made for runs: what is kept of each, and where.

Each has a folder of its own below `worktrees_dir()`, which holds the record, a private repository
for git, and the working tree in a folder with the name of the project's. The record outlives the
worktree: sessions that ran there still belong to the repository.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from gemtui.errors import WorktreeNotFound
from gemtui.files import is_folder, resolved
from gemtui.jsonfile import read_as, write_again
from gemtui.paths import worktrees_dir

LATEST = "latest"
"""The word for the newest worktree, where a name is asked for."""
NEW_WORKTREE = "It runs in a new git worktree of this folder's repository, which is made first."
"""What is said beside the command of a run that is to begin in one."""
_RECORD, _PRIVATE = "worktree.json", "git"
_MOST = 64_000_000
"""Bytes of a record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worktree:
    """A git worktree in which runs work.

    `repository`: the working tree from which it was made; `tree`: its own. `folder`: where runs
    work in it, as they would have in the repository. `commit`: where it began. `base`: the id of
    the checkpoint of its first state, None = it was not made whole. `made`: ISO 8601. `prompt`: the
    one of its first run, clipped. `taken`: for each file that was applied to the repository, by its
    name in hexadecimal digits, the state that was applied. `removed`: only the record is left.
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
    def is_there(self) -> bool:
        """Whether its files are."""
        return is_folder(self.tree)

    @property
    def private(self) -> Path:
        """The folder of its private repository."""
        return worktrees_dir() / self.name / _PRIVATE

    def save(self) -> None:
        """Write the record. Raises OSError."""
        write_again(worktrees_dir() / self.name / _RECORD, self, _MOST)

    def forget(self) -> None:
        """Keep nothing but the record, without its prompt. Raises OSError."""
        place = worktrees_dir() / self.name
        replace(self, prompt="", taken={}, removed=True).save()
        for each in place.iterdir():
            if each.name != _RECORD:
                shutil.rmtree(each)

    def about(self) -> dict[str, Any]:
        """Return what the record of a run tells of it."""
        return {"name": self.name, "branch": self.branch, "repository": str(self.repository)}


def list_worktrees() -> tuple[Worktree, ...]:
    """Return all worktrees, the newest first."""
    found: list[Worktree] = []
    with suppress(OSError):
        for place in worktrees_dir().iterdir():
            if (each := _read(place.name)) is not None and not each.removed:
                found.append(each)
    return tuple(sorted(found, key=lambda each: (each.made, each.name), reverse=True))


def find_worktree(wanted: str) -> Worktree:
    """Return the worktree with this name or branch, a unique prefix of one, or `latest`.

    Raises WorktreeNotFound.
    """
    known = list_worktrees()
    if wanted == LATEST:
        found = list(known[:1])
    else:
        found = [each for each in known if wanted in (each.name, each.branch)]
        found = found or [
            each
            for each in known
            if wanted and (each.name.startswith(wanted) or each.branch.startswith(wanted))
        ]
    if not found:
        raise WorktreeNotFound(f"no worktree is named {wanted!r}: gemtui worktrees lists them")
    if len(found) > 1:
        names = ", ".join(each.name for each in found[:10])
        raise WorktreeNotFound(f"{len(found)} worktrees fit {wanted!r}: {names}")
    return found[0]


def worktree_of(folder: Path) -> Worktree | None:
    """Return the worktree that holds a folder; None where none of ours does."""
    found = _holding(folder)
    return None if found is None or found.removed else found


def origin_of(folder: Path) -> Path:
    """Return the folder of the repository that a folder in a worktree stands for, else itself.

    The worktree may have been removed.
    """
    found = _holding(folder)
    if found is None:
        return folder
    return found.repository / resolved(folder).relative_to(resolved(found.tree))


def _holding(folder: Path) -> Worktree | None:
    place, top = resolved(folder), resolved(worktrees_dir())
    if not place.is_relative_to(top) or place == top:
        return None
    found = _read(place.relative_to(top).parts[0])
    return found if found is not None and place.is_relative_to(resolved(found.tree)) else None


def _read(name: str) -> Worktree | None:
    found = read_as(worktrees_dir() / name / _RECORD, Worktree, _MOST)
    return found if found is not None and found.name == name else None


def made_at(worktree: Worktree) -> datetime | None:
    """Return when it was made; None where the record does not say it."""
    with suppress(ValueError):
        return datetime.fromisoformat(worktree.made)
    return None
