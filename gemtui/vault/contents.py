"""What the vault holds, what of it the store has no more, and how that is removed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from gemtui.paths import vault_dir
from gemtui.sessions.belongings import is_plain_id
from gemtui.sessions.projects import folder_names
from gemtui.sessions.summary import Flag, Summary
from gemtui.sessions.vault_files import (
    COPIES,
    files_below,
    in_tree,
    names_beside,
    place_in_store,
    trees,
)
from gemtui.text import counted, size
from gemtui.vault.keeping import is_on

PRUNE = "gemtui vault prune"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """How much is in the vault, of all stores that it has looked after.

    Bytes: `shared` are other names of the CLI's own files and cost nothing; `copied` are copies of
    files that the CLI has, too; `only_here` is what it has no more, or otherwise, in `kept` files.
    """

    folder: Path
    on: bool
    files: int = 0
    kept: int = 0
    shared: int = 0
    copied: int = 0
    only_here: int = 0

    @property
    def own(self) -> int:
        """Bytes that the vault takes beside the store."""
        return self.copied + self.only_here

    def to_dict(self) -> dict[str, Any]:
        """Return `vault` of `gemtui vault status --json`."""
        return {
            "folder": str(self.folder),
            "on": self.on,
            "files": self.files,
            "kept": self.kept,
            "bytes": {"shared": self.shared, "copied": self.copied, "only_here": self.only_here},
        }


def contents() -> Contents:
    """Look at every file in the vault. Raises nothing."""
    shared = copied = only_here = files = kept = 0
    for tree in trees():
        for name, inode in files_below(str(tree)):
            with suppress(OSError):
                facts = os.lstat(name)
                files += 1
                own = _facts(name.removeprefix(str(tree)))
                if own is not None and (own.st_ino, own.st_dev) == (inode, facts.st_dev):
                    shared += facts.st_size
                elif own is not None and tree.name == COPIES and facts.st_size <= own.st_size:
                    copied += facts.st_size
                else:
                    kept, only_here = kept + 1, only_here + facts.st_size
    return Contents(
        folder=vault_dir(),
        on=is_on(),
        files=files,
        kept=kept,
        shared=shared,
        copied=copied,
        only_here=only_here,
    )


def _facts(path: str | Path) -> os.stat_result | None:
    with suppress(OSError):
        return os.lstat(path)
    return None


def only_kept(
    sessions: Iterable[Summary], *, project: Path | None = None, before: datetime | None = None
) -> tuple[Summary, ...]:
    """Return the files that the vault alone has, each as a session, newest first.

    `sessions`: all of a store, as a snapshot has them. `project`: only of this folder. `before`:
    only what was last updated before that.
    """
    names = None if project is None else folder_names(project)
    return tuple(
        file
        for session in sessions
        if names is None or session.project in names
        for file in (session, *session.copies)
        if Flag.KEPT in file.flags and (before is None or file.when < before)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """What removing kept files takes: `names` in the vault, `size` in bytes.

    `sessions`: those of them that are no copies and no ghosts.
    """

    sessions: tuple[Summary, ...]
    names: tuple[Path, ...]
    size: int

    def __str__(self) -> str:
        return f"{counted(len(self.names), 'file')}, {size(self.size)}"


def removal(files: Iterable[Summary]) -> Removal:
    """Return what removing these kept files takes, with what else the vault alone has of them."""
    files = tuple(files)
    places = trees()
    names = tuple(dict.fromkeys(name for file in files for name in _kept_names(file, places)))
    found = [facts for name in names if (facts := _facts(name)) is not None]
    return Removal(
        sessions=tuple(each for each in files if not each.hidden and each.parent is None),
        names=names,
        size=sum(facts.st_size for facts in found),
    )


def _kept_names(file: Summary, trees: Sequence[Path]) -> Iterator[Path]:
    assert Flag.KEPT in file.flags
    yield file.path
    if _COPIES.isdisjoint(file.flags) and is_plain_id(file.id):
        for name, place in names_beside(place_in_store(file.path), file.id, trees):
            if not os.path.lexists(place):
                yield name


_COPIES = frozenset({Flag.GHOST, Flag.DUPLICATE})


def remove(removal: Removal) -> int:
    """Remove kept files for good; return the bytes that were freed. Raises OSError."""
    return sum(map(_remove, removal.names))


def forget(session: Summary) -> int:
    """Remove every name that the vault has for the files of a session and of its subagents.

    Returns the bytes of those files. Raises OSError.
    """
    return sum(map(_remove, set(_names(session))))


def _names(session: Summary) -> Iterator[Path]:
    for path in session.files:
        place = place_in_store(path) if path.is_relative_to(vault_dir()) else path
        for tree in trees():
            yield in_tree(tree, place)
            if place.parent.name == "chats" and is_plain_id(session.id):
                agents = in_tree(tree, place.parent / session.id)
                yield from (Path(name) for name, _ in files_below(str(agents)))
        if is_plain_id(session.id):
            yield from (name for name, _ in names_beside(place, session.id, trees()))


def _remove(path: Path) -> int:
    try:
        size = path.lstat().st_size
        path.unlink()
    except FileNotFoundError:
        return 0
    with suppress(OSError):  # until one is not empty
        for folder in path.parents:
            if folder.parent == vault_dir():
                break
            folder.rmdir()
    return size
