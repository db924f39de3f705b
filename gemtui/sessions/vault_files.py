"""Files of sessions that the vault keeps and the store has no more, as files of the store.

The vault is a folder with trees: `0`, `1`, … of names that are never replaced, and `copy` of files
that are brought up to date. In each, a file lies below its absolute path, as in
`0/home/ada/.gemini/tmp/app/chats/session-….jsonl`: so every tree holds a store like the CLI's own,
and what a file is can be told by the same rules.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from gemtui.paths import vault_dir
from gemtui.sessions.belongings import belongings, project_folder
from gemtui.sessions.store import ChatFile, Store, place_of

COPIES = "copy"
"""The tree of files that could not be linked, or that the CLI writes over."""
TEMPORARY = (".new-", ".hook-", ".put-")
"""How temporary files begin: of `gemtui/kept/vault.py`, which makes them alone; of the hook; of
restoring."""


def store_with_kept(home: Path) -> Store:
    """Look at the CLI's store and at the vault."""
    store = Store(home)
    store.add(tuple(_not_in_store(store)))
    return store


def _not_in_store(store: Store) -> Iterator[ChatFile]:
    there = {place.name: place for place in store.files()}
    for tree in trees():
        for name, inode in files_below(f"{tree}{store.tmp}"):
            known = there.get(name.removeprefix(str(tree)))
            if known is not None and known.inode == inode:
                continue
            kept = _kept_file(tree, Path(name), store.home)
            if kept is not None and not (known and _goes_on_from(known, kept, tree)):
                yield kept


def kept_at(path: Path, home: Path) -> tuple[ChatFile, ...]:
    """Return what the vault has of one path of the store, as far as that is not there any more."""
    there = None
    with suppress(OSError):
        there = place_of(path, home)
    found = []
    for tree in trees():
        kept = _kept_file(tree, in_tree(tree, path), home)
        if kept is None or (there and there.inode == kept.inode):
            continue
        if there is None or not _goes_on_from(there, kept, tree):
            found.append(kept)
    return tuple(found)


def trees() -> list[Path]:
    """Return the trees that there are; the copies come last."""
    with suppress(OSError), os.scandir(vault_dir()) as entries:
        numbers = sorted(int(entry.name) for entry in entries if entry.name.isdecimal())
        return [vault_dir() / each for each in (*map(str, numbers), COPIES)]
    return []


def in_tree(tree: Path, path: Path) -> Path:
    """Return the place in a tree of a file with this absolute path."""
    return Path(f"{tree}{path}")


def place_in_store(kept: Path) -> Path:
    """Return where a file of the vault was in the store."""
    return Path("/", *kept.relative_to(vault_dir()).parts[1:])


def names_beside(place: Path, id: str, trees: Sequence[Path]) -> Iterator[tuple[Path, Path]]:
    """Yield what some trees have of the tool outputs and plans of a session: there, and its place.

    `place`: the session's file in the store. `id`: a plain one.
    """
    project = project_folder(place)
    folders = () if project is None else belongings(project, id)
    for tree in trees:
        for folder in folders:
            for name, _ in files_below(f"{tree}{folder}"):
                if not is_temporary(name):
                    yield Path(name), Path(name.removeprefix(str(tree)))


def is_temporary(name: str) -> bool:
    """Return whether a path in the vault is one of `TEMPORARY`."""
    return os.path.basename(name).startswith(TEMPORARY)  # noqa: PTH119


def _kept_file(tree: Path, path: Path, home: Path) -> ChatFile | None:
    with suppress(OSError):
        kept = place_of(path, in_tree(tree, home))
        return None if kept is None else kept._replace(kept=True)
    return None


def _goes_on_from(there: ChatFile, kept: ChatFile, tree: Path) -> bool:
    """Whether a copy is only behind the file in the store, as far as sizes can tell."""
    return tree.name == COPIES and kept.size <= there.size


def files_below(folder: str) -> Iterator[tuple[str, int]]:
    """Yield every file below a folder with its inode; there may be ten thousand. Raises nothing."""
    folders = [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        yield entry.path, entry.inode()
        except OSError:
            continue
