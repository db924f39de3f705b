"""Archive sessions' files, each as a copy in the vault.

The vault is gemtui's own folder for sessions that Gemini CLI may delete. A log only grows, so its
copy is brought up to date by appending what the log has gained. If a file no longer starts with its
copy, because it was truncated, overwritten or created anew, the copy is moved to another tree,
where it stays, and a new copy is made. `gemtui/sessions/catalog/vault_files.py` describes the
trees.

An earlier version of gemtui, and its hook, also kept hard links to files. They are replaced with
copies (`merge_versions`).

Nothing in this module removes or replaces an archived file unless the replacement contains all of
it. So gemtui may be killed at any moment, and several programs may archive the same file at once.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from itertools import count
from pathlib import Path

from gemtui.files import (
    files_below,
    locked,
    move_without_replacing,
    stat_if_possible,
    stat_if_present,
    sync_folder,
)
from gemtui.kept.files import append_rest, copy_file, flush, replace_with_copy, temporary
from gemtui.paths import make_own_file, make_own_folder, vault_dir
from gemtui.sessions.catalog import vault_files
from gemtui.sessions.catalog.vault_files import COPIES, REPLACED, in_tree
from gemtui.sessions.read import versions
from gemtui.sessions.store.store import ChatFile, Store, folders_beside, place_of

_ON, _LOCK = "on", "lock"
_STALE = 3600
"""Seconds after which another program's temporary file counts as abandoned."""
QUIET = 60
"""Seconds without a change after which an incomplete legacy file is archived as it is."""

Stamp = tuple[int, int]
"""A file's size, and its modification time in nanoseconds."""


def is_on() -> bool:
    """Return whether the vault is on. Never raises."""
    return os.path.lexists(vault_dir() / _ON)


def turn_on() -> None:
    """Turn the vault on, without archiving anything yet. Raises OSError.

    `keep_all` archives the existing sessions.
    """
    make_own_file(vault_dir() / _ON)


def switch_off() -> None:
    """Turn the vault off; archived files are kept. Raises OSError."""
    (vault_dir() / _ON).unlink(missing_ok=True)


# --- archiving -----------------------------------------------------------------------------------


def keep_all(
    home: Path,
    *,
    told: Callable[[int, int], None] = lambda *_: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> int:
    """Archive all of a store's files in their current state.

    Links that an earlier version of gemtui made are replaced with copies.

    Arguments:
        home: the CLI's folder with the store.
        told: called with the number of files archived so far and the total.
        cancelled: returns whether to stop.

    Returns the number of files that were copied. If a file can't be archived, raises OSError after
    all other files have been archived.
    """
    stamps, others = _archived(home)
    files = list(_all_files(home))
    due = [Path(name) for name, stamp in files if stamps.get(name) != stamp]
    copied = 0
    problem: OSError | None = None
    for number, path in enumerate(due, len(files) - len(due) + 1):
        if cancelled():
            break
        try:
            copied += keep(path)
        except OSError as error:
            problem = error
        told(number, len(files))
    for path in others:
        if cancelled():
            break
        try:
            merge_versions(path)
        except OSError as error:
            problem = error
    if problem is not None:
        raise problem
    return copied


def keep_changed(paths: Iterable[Path], home: Path) -> None:
    """Archive these files of a store, and their sessions' tool outputs and plans.

    Raises OSError.
    """
    chats = []
    for path in paths:
        keep(path)
        chat = place_of(path, home)
        if chat is not None:
            chats.append(chat)
    for entry in _beside(chats):
        keep(Path(entry.path))


def keep(path: Path) -> bool:
    """Archive a file of the store in its current state; return whether it was copied.

    A file that is already archived in this state is not copied. Symbolic links are not followed.
    Raises OSError.
    """
    facts = stat_if_present(path)
    if facts is None or not stat.S_ISREG(facts.st_mode):
        return False
    copy = _copy_of(path)
    existing = stat_if_present(copy)
    if existing is not None and versions.same_version(existing, facts):
        return False
    if not copy.parent.exists():
        make_own_folder(copy.parent)
    try:
        with _replacing():
            may_have_grown = path.suffix == ".jsonl" and stat_if_present(copy) is not None
            if may_have_grown and versions.begins_with(path, copy):
                append_rest(path, copy)
                return True
            return _copy_anew(path, copy)
    except FileNotFoundError:
        if os.path.lexists(path):
            raise
        return False  # the file has just been removed


def _copy_anew(path: Path, copy: Path) -> bool:
    """Copy a file into the vault, replacing its copy; return whether this was done.

    An incomplete legacy file is probably being written. It is not copied, unless it has been
    unchanged for a minute and the vault has no copy of it.
    """
    with temporary(copy) as new:
        copy_file(path, new)
        facts = new.stat()
        has_copy = stat_if_present(copy) is not None
        if path.suffix == ".json" and versions.legacy_message_ids(new) is None:
            is_quiet = not 0 <= time.time() - facts.st_mtime < QUIET
            if has_copy or not is_quiet:
                return False
        matters = path.suffix in (".json", ".jsonl") or not facts.st_size
        if has_copy and matters and not versions.holds_all(new, copy):
            _set_copy_aside(path, copy)
        new.replace(copy)
    return True


def _set_copy_aside(path: Path, copy: Path) -> None:
    """Move a copy to where nothing replaces it, unless another version contains it."""
    for tree in vault_files.trees():
        version = in_tree(tree, path)
        facts = stat_if_present(version)
        is_own_file = facts is not None and facts.st_nlink == 1 and version != copy
        if is_own_file and versions.begins_with(version, copy):
            return
    _set_aside(copy, path)


def _all_files(home: Path) -> Iterator[tuple[str, Stamp | None]]:
    """Yield the path and the stamp (None if unknown) of each file that the vault should contain."""
    chats = Store(home).files()
    for chat in chats:
        yield chat.name, (chat.size, chat.mtime_ns)
    for entry in _beside(chats):
        facts = stat_if_possible(entry.path)
        yield entry.path, None if facts is None else (facts.st_size, facts.st_mtime_ns)


def _beside(chats: Iterable[ChatFile]) -> Iterator[os.DirEntry[str]]:
    """Yield the other files the CLI deletes with these sessions."""
    for folder in folders_beside(chats):
        yield from files_below(str(folder))


def _archived(home: Path) -> tuple[dict[str, Stamp], set[Path]]:
    """Return what the vault has of a store's files, by their paths in the store.

    That is the stamps of the copies, and the paths of files of which it has other versions.
    Temporary files left by killed programs are deleted.
    """
    stamps: dict[str, Stamp] = {}
    others: set[Path] = set()
    for tree in (*vault_files.trees(), *vault_files.replaced_trees()):
        for entry in files_below(str(in_tree(tree, home))):
            path = entry.path.removeprefix(str(tree))
            if vault_files.is_temporary(entry.name):
                _remove_stale(Path(entry.path))
            elif tree.name == COPIES:
                facts = stat_if_possible(entry.path)
                if facts is not None:
                    stamps[path] = facts.st_size, facts.st_mtime_ns
            elif not tree.name.startswith(REPLACED):
                others.add(Path(path))
    return stamps, others


def _remove_stale(path: Path) -> None:
    with suppress(OSError), _replacing():
        ours = path.name.startswith(vault_files.TEMPORARY[0])
        if ours or time.time() - path.lstat().st_ctime > _STALE:
            path.unlink()


# --- other versions of a file --------------------------------------------------------------------


def merge_versions(path: Path) -> None:
    """Drop what the vault has twice of a file of the store.

    A version that the copy contains is dropped. If the store no longer has the file, a version that
    contains the copy takes its place. A version that is a hard link, which an earlier gemtui or its
    hook made, becomes a file of its own. Raises OSError.
    """
    copy = _copy_of(path)
    for tree in vault_files.trees():
        version = in_tree(tree, path)
        if tree.name == COPIES:
            continue
        with suppress(FileNotFoundError), _replacing():
            links = version.lstat().st_nlink
            has_copy = stat_if_present(copy) is not None
            if has_copy and versions.begins_with(copy, version):
                flush(copy)
                sync_folder(copy.parent)
                version.unlink()
                continue
            if links > 1:
                replace_with_copy(version, version)
            if has_copy and not os.path.lexists(path) and versions.begins_with(version, copy):
                version.replace(copy)


def set_others_aside(path: Path, kept: Path) -> Path | None:
    """Archive all other versions of a file that the version `kept` is going to replace.

    Lists don't show a version if `kept` has all its messages (`REPLACED`). Returns the archived
    file for the version at `path` in the store; None if there is none. Raises OSError.
    """
    exists = stat_if_present(path) is not None
    if not exists and not vault_files.trees():
        return None
    make_own_folder(vault_dir())
    with _replacing():
        for tree in vault_files.trees():
            version = in_tree(tree, path)
            if version == kept or stat_if_present(version) is None:
                continue
            if versions.adds_to(version, kept):
                continue
            if kept == path or not versions.holds_all(kept, version):
                _set_aside(version, path, REPLACED)
        if not exists:
            return None
        if versions.adds_to(path, kept):
            return _archive(path, vault_files.trees(), "")
        return _archive(path, vault_files.replaced_trees(), REPLACED)


def archive(path: Path) -> None:
    """Archive a file of the store that is about to be removed, even an incomplete one.

    Raises OSError.
    """
    keep(path)
    with _replacing():
        _archive(path, vault_files.trees(), "")


def _archive(path: Path, trees: Iterable[Path], prefix: str) -> Path:
    """Archive a file of the store where nothing replaces it, flushed to disk; return where.

    `trees`: where an archived file with the same contents may be. `prefix`: of the name of the tree
    that gets it otherwise.
    """
    size = path.lstat().st_size
    for tree in trees:
        version = in_tree(tree, path)
        facts = stat_if_present(version)
        if facts is not None and facts.st_size == size and versions.begins_with(version, path):
            flush(version)
            return version
    copy = _copy_of(path)
    make_own_folder(copy.parent)
    with temporary(copy) as new:
        copy_file(path, new)
        flush(new)
        aside = _set_aside(new, path, prefix)
    sync_folder(aside.parent)
    return aside


def _set_aside(file: Path, path: Path, prefix: str = "") -> Path:
    """Move a file of the vault to a tree where nothing replaces it; return its new path.

    `path`: the file's path in the store. `prefix`: of the tree's name.
    """
    for number in count():
        aside = in_tree(vault_dir() / f"{prefix}{number}", path)
        make_own_folder(aside.parent)
        with suppress(FileExistsError):
            move_without_replacing(file, aside)
            return aside
    raise AssertionError


def _copy_of(path: Path) -> Path:
    return in_tree(vault_dir() / COPIES, path)


def _replacing() -> AbstractContextManager[bool]:
    """Return a context manager that holds the lock for replacing archived files.

    Raises OSError.
    """
    return locked(vault_dir() / _LOCK)
