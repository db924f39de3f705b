"""Session files that exist only in the vault, presented as files of the store.

The vault is the folder in which gemtui saves the sessions that Gemini CLI may delete. It contains
several trees: `copy` for the copy of each file, which is brought up to date, `0`, `1`, … for
earlier versions that the copy doesn't contain, and `replaced-0`, … for damaged versions that a
restore replaced with better ones. Each tree mirrors absolute paths, as in
`copy/home/ada/.gemini/tmp/app/chats/session-….jsonl`. So every tree has the layout of the CLI's own
store, and the same rules identify its files. In the numbered trees, an earlier version of gemtui
also kept hard links to files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from gemtui.files import files_below
from gemtui.paths import vault_dir
from gemtui.sessions.read.versions import is_superseded
from gemtui.sessions.store.shelf import shelves
from gemtui.sessions.store.store import ChatFile, Store, belongings, place_of, project_folder

COPIES = "copy"
"""The tree for copies of files, which comes last.

A copy is not listed if a version in another tree has everything that it has.
"""
REPLACED = "replaced-"
"""Prefix of the trees for versions that a restore has replaced; no list shows them."""
TEMPORARY = (".new-", ".hook-", ".put-")
"""Prefixes of temporary files, written by the vault, the hook, and restores."""


def store_with_kept(home: Path) -> Store:
    """Return the CLI's store together with the files in the vault, gemtui's archive."""
    store = Store(home)
    existing_trees = trees()
    if existing_trees:
        store.add(tuple(_not_in_store(store, existing_trees)))
    return store


def _not_in_store(store: Store, trees: Sequence[Path]) -> Iterator[ChatFile]:
    in_store = {place.name: place for place in store.files()}
    listed: dict[str, list[ChatFile]] = {}
    for tree in trees:
        for entry in _below(tree, store.tmp, *(shelf.projects for shelf in shelves(store.home))):
            kept = _kept_file(tree, Path(entry.path), store.home)
            if kept is None:
                continue
            name = entry.path.removeprefix(str(tree))
            original = in_store.get(name)
            if original is not None and _is_superseded(original, kept):
                continue
            versions = listed.setdefault(name, [])
            if tree.name == COPIES and any(_is_superseded(version, kept) for version in versions):
                continue
            versions.append(kept)
            yield kept


def _below(tree: Path, *folders: Path) -> Iterator[os.DirEntry[str]]:
    for folder in folders:
        yield from files_below(f"{tree}{folder}")


def kept_at(path: Path, home: Path) -> tuple[ChatFile, ...]:
    """Return the copies of a session file in the vault, gemtui's archive of sessions.

    A copy is left out if the store still has its content. `path`: the file's path in the store.
    """
    original = None
    with suppress(OSError):
        original = place_of(path, home)
    versions: list[ChatFile] = []
    for tree in trees():
        kept = _kept_file(tree, in_tree(tree, path), home)
        if kept is None or (original is not None and _is_superseded(original, kept)):
            continue
        if tree.name == COPIES and any(_is_superseded(version, kept) for version in versions):
            continue
        versions.append(kept)
    return tuple(versions)


def trees() -> list[Path]:
    """Return the existing trees of the vault; the tree of updated copies comes last.

    The vault is gemtui's archive of sessions. Each tree mirrors absolute paths.
    """
    with suppress(OSError), os.scandir(vault_dir()) as entries:
        numbers = sorted(int(entry.name) for entry in entries if entry.name.isdecimal())
        return [vault_dir() / name for name in (*map(str, numbers), COPIES)]
    return []


def replaced_trees() -> list[Path]:
    """Return the vault's existing trees of replaced versions."""
    with suppress(OSError), os.scandir(vault_dir()) as entries:
        names = (entry.name for entry in entries)
        return [vault_dir() / name for name in names if name.startswith(REPLACED)]
    return []


def in_tree(tree: Path, path: Path) -> Path:
    """Return the path of the copy of a file in one of the vault's trees.

    `path`: the file's original, absolute path. The copy need not exist.
    """
    return Path(f"{tree}{path}")


def place_in_store(kept: Path) -> Path:
    """Return the original path of a file in the vault.

    `kept`: the file's path in the vault, which ends with the original path.
    """
    return Path("/", *kept.relative_to(vault_dir()).parts[1:])


def names_beside(place: Path, id: str, trees: Sequence[Path]) -> Iterator[tuple[Path, Path]]:
    """Yield the vault's copies of a session's tool outputs and plans.

    Each item is (path in the vault, original path). `place`: the session's file in the store. `id`:
    must be safe as a folder name (`is_plain_id`). `trees`: the vault's trees to search.
    """
    project = project_folder(place)
    folders = () if project is None else belongings(project, id)
    for tree in trees:
        for folder in folders:
            for entry in files_below(f"{tree}{folder}"):
                if not is_temporary(entry.name):
                    yield Path(entry.path), Path(entry.path.removeprefix(str(tree)))


def is_temporary(name: str) -> bool:
    """Return whether the name of a file in the vault has a prefix in `TEMPORARY`."""
    return name.startswith(TEMPORARY)


def _kept_file(tree: Path, path: Path, home: Path) -> ChatFile | None:
    with suppress(OSError):
        kept = place_of(path, home, Path(str(path).removeprefix(str(tree))))
        return None if kept is None else kept._replace(kept=True)
    return None


def _is_superseded(there: ChatFile, kept: ChatFile) -> bool:
    return is_superseded(
        kept.path, (kept.size, kept.mtime_ns), there.path, (there.size, there.mtime_ns)
    )
