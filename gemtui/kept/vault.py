"""Archive sessions' files: each as a copy in the vault and, while it changes, also as a hard link.

The vault is gemtui's own folder for sessions that Gemini CLI may delete. A log only grows, so a
hard link contains everything that is written to it, immediately and without extra space. But
truncating or overwriting a file affects all its links. So every check of the whole store also
copies the file, or what it has gained; the copy shares its blocks with the file if the file system
supports that. Once the file has been unchanged for a minute, the link is removed. A file that grows
again is linked again. Tool outputs and plans are archived in the same way, in their latest version.
A copy is made at once if a link is impossible (because the vault is on another file system), and
for legacy files, which the CLI overwrites. `gemtui/sessions/catalog/vault_files.py` describes the
layout.

Nothing in this module removes or replaces an archived file unless the replacement contains all of
it. So gemtui may be killed at any moment, and several programs may archive the same file at once.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from itertools import count
from pathlib import Path

from gemtui.files import files_below, locked, stat_if_possible, stat_if_present, sync_folder
from gemtui.kept.files import (
    append_rest,
    copy_file,
    flush,
    link,
    replace_with_copy,
    replace_with_link,
    temporary,
)
from gemtui.paths import make_own_file, make_own_folder, vault_dir
from gemtui.sessions.catalog.vault_files import (
    COPIES,
    REPLACED,
    TEMPORARY,
    in_tree,
    is_temporary,
    replaced_trees,
    trees,
)
from gemtui.sessions.read.versions import (
    adds_to,
    begins_with,
    holds_all,
    legacy_message_ids,
    same_version,
)
from gemtui.sessions.store.store import ChatFile, Store, folders_beside, place_of

_ON, _LOCK = "on", "lock"
_STALE = 3600
"""Seconds after which another program's temporary file counts as abandoned."""
QUIET = 60
"""Seconds without a change after which a link is replaced with a copy."""
_ROOM = 1 << 30
"""Bytes to leave free on the disk; with less space, linked files are not copied."""


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


def keep_all(
    home: Path,
    *,
    told: Callable[[int, int], None] = lambda *_: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> int:
    """Archive all of a store's files that aren't archived yet; return their number.

    Linked files are copied, too, and links to files that have been unchanged for a minute are
    removed. `told`: called with the number of files archived so far and the total. `cancelled`:
    returns whether to stop. If a file can't be archived, raises OSError after all other files have
    been archived.
    """
    links, copies = _held(home)
    files = [*_all_files(home)]
    missing = [
        Path(name)
        for name, inode, stamp in files
        if (name, inode) not in links and copies.get(name) != stamp
    ]
    problem, done = None, 0
    for at, path in enumerate(missing):
        if cancelled():
            break
        try:
            done += keep(path)
        except OSError as error:
            problem = error
        told(len(files) - len(missing) + at + 1, len(files))
    for name, inode, changed in files:
        if cancelled():
            break
        if copies.get(name) != changed or ((name, inode) in links and _is_quiet(changed)):
            try:
                (detach if _is_quiet(changed) else _copy_too)(Path(name))
            except OSError as error:
                problem = error
    for name in copies.keys() & {name for name, _ in links} - {name for name, *_ in files}:
        if cancelled():
            break
        try:
            _remove_spare(Path(name))
        except OSError as error:
            problem = error
    if problem is not None:
        raise problem
    return done


def _is_quiet(changed: tuple[int, int] | None) -> bool:
    """Return whether a file has been unchanged for a minute.

    `changed`: the file's size and modification time; None if unknown.
    """
    return changed is not None and not 0 <= time.time() - changed[1] / 1e9 < QUIET


def keep_changed(paths: Iterable[Path], home: Path) -> None:
    """Archive these files of a store, and their sessions' tool outputs and plans.

    Raises OSError.
    """
    places = []
    for path in paths:
        keep(path)
        if (place := place_of(path, home)) is not None:
            places.append(place)
    for entry in _beside(places):
        keep(Path(entry.path))


def _all_files(home: Path) -> Iterator[tuple[str, int, tuple[int, int] | None]]:
    """Yield each file of a store that the vault should contain.

    Each item is a path, an inode, and a pair of size and modification time, or None if unknown.
    """
    places = Store(home).files()
    for place in places:
        yield place.name, place.inode, (place.size, place.mtime_ns)
    for entry in _beside(places):
        facts = stat_if_possible(entry.path)
        yield (
            entry.path,
            entry.inode(),
            None if facts is None else (facts.st_size, facts.st_mtime_ns),
        )


def _beside(places: Iterable[ChatFile]) -> Iterator[os.DirEntry[str]]:
    """Yield the other files the CLI deletes with these sessions."""
    for folder in folders_beside(places):
        yield from files_below(str(folder))


def _held(home: Path) -> tuple[set[tuple[str, int]], dict[str, tuple[int, int]]]:
    """Return which of a store's files the vault has as links and which as copies.

    The linked files are pairs of path (in the store) and inode. The copied files are a mapping from
    paths to (size, modification time). Temporary files left by killed programs are deleted.
    """
    links: set[tuple[str, int]] = set()
    copies: dict[str, tuple[int, int]] = {}
    for tree in (*trees(), *replaced_trees()):
        for entry in files_below(str(in_tree(tree, home))):
            path = entry.path.removeprefix(str(tree))
            if is_temporary(entry.name):
                _remove_stale(Path(entry.path))
            elif tree.name.startswith(REPLACED):
                continue
            elif tree.name == COPIES:
                if (facts := stat_if_possible(entry.path)) is not None:
                    copies[path] = facts.st_size, facts.st_mtime_ns
            elif not path.endswith(".json"):
                links.add((path, entry.inode()))
    return links, copies


def _remove_stale(path: Path) -> None:
    with suppress(OSError), _replacing():
        ours = path.name.startswith(TEMPORARY[0])
        if ours or time.time() - path.lstat().st_ctime > _STALE:
            path.unlink()


def keep(path: Path) -> bool:
    """Archive a file of the store in its current state, if needed.

    Returns False if there was nothing to do. Symbolic links are not followed. Raises OSError.
    """
    facts = stat_if_present(path)
    if facts is None or not stat.S_ISREG(facts.st_mode):
        return False
    try:
        if path.suffix != ".json":
            copy = stat_if_present(in_tree(vault_dir() / COPIES, path))
            if copy is not None and same_version(copy, facts):
                return False
            if (linked := _link(path, facts)) is not None:
                return linked
        with _replacing():
            return _bring_up_to_date(path, facts)
    except FileNotFoundError:
        if os.path.lexists(path):
            raise
        return False  # the file has just been removed


# --- links ---------------------------------------------------------------------------------------


def _link(path: Path, facts: os.stat_result) -> bool | None:
    """Link a file into the vault; return None if that is impossible.

    Returns False if the vault already has a link to this very file, and True otherwise. Links to
    different files with the same path are numbered. A link replaces an archived file if the new
    file contains all of it, but only once there is a copy of that: what is archived must not depend
    on a link. Otherwise it gets the next number. Raises OSError.
    """
    for kept in _numbered(path):
        there = stat_if_present(kept)
        if there is None:
            make_own_folder(kept.parent)
            with suppress(FileExistsError):  # another program has just created it
                if not link(path, kept):
                    return None
                _keep_apart(path)
                return True
            there = kept.lstat()
        if os.path.samestat(there, facts):
            return False
        with _replacing():
            if _fits(facts) and begins_with(path, kept):
                _bring_up_to_date(path, facts)
                return True if replace_with_link(path, kept) else None
    raise AssertionError


def _numbered(path: Path, prefix: str = "") -> Iterator[Path]:
    return (in_tree(vault_dir() / f"{prefix}{number}", path) for number in count())


def _keep_apart(path: Path) -> None:
    """Preserve the vault's copy of a log if it has contents that the log lacks.

    The copy is renamed, because the next update would replace it.
    """
    copy = in_tree(vault_dir() / COPIES, path)
    if path.suffix == ".jsonl" and stat_if_present(copy) is not None:
        with _replacing():
            if stat_if_present(copy) is not None and not begins_with(path, copy):
                _set_aside(path, copy)
                copy.unlink()


# --- copies --------------------------------------------------------------------------------------


def detach(path: Path) -> None:
    """Replace the vault's links to a file of the store with an independent copy.

    Archived files that the copy contains are removed, too. Does nothing if there are no links, or
    if the disk is nearly full. Raises OSError.
    """
    with suppress(FileNotFoundError):
        facts, copy = path.lstat(), in_tree(vault_dir() / COPIES, path)
        names = _names(path)
        shared = any(os.path.samestat(name.lstat(), facts) for name in names)
        if not shared or not _fits(facts):
            return
        with _replacing():
            _bring_up_to_date(path, facts)
            for name in names:
                if begins_with(copy, name):
                    flush(copy)
                    sync_folder(copy.parent)
                    name.unlink()


def _copy_too(path: Path) -> None:
    """Bring the copy of a linked file up to date, unless the disk is nearly full. Raises
    OSError.
    """
    with suppress(FileNotFoundError):
        facts = path.lstat()
        if _fits(facts):
            with _replacing():
                _bring_up_to_date(path, facts)


def _fits(facts: os.stat_result) -> bool:
    return shutil.disk_usage(vault_dir()).free - facts.st_size >= _ROOM


def _remove_spare(path: Path) -> None:
    """Remove the copy of a file that the store no longer has, if a link has all of it.

    The link must have become the file's only name. Raises OSError.
    """
    copy = in_tree(vault_dir() / COPIES, path)
    with suppress(FileNotFoundError), _replacing():
        alone = (name for name in _names(path) if name.lstat().st_nlink == 1)
        held = next((name for name in alone if begins_with(name, copy)), None)
        if held is not None and not os.path.lexists(path):
            flush(held)
            sync_folder(held.parent)
            copy.unlink()


def _names(path: Path) -> list[Path]:
    """Return a file's existing paths in the vault, except that of its copy."""
    names = [in_tree(tree, path) for tree in trees() if tree.name != COPIES]
    return [name for name in names if stat_if_present(name) is not None]


def _bring_up_to_date(path: Path, facts: os.stat_result) -> bool:
    kept = in_tree(vault_dir() / COPIES, path)
    there = stat_if_present(kept)
    if there is not None and same_version(there, facts):
        return False
    if there is not None and path.suffix == ".jsonl" and begins_with(path, kept):
        append_rest(path, kept)
        return True
    return _replace_copy(path, kept)


def _replace_copy(path: Path, kept: Path) -> bool:
    """Copy a file into the vault, replacing its copy; return whether this was done.

    An incomplete legacy file is probably being written. It is not copied, unless it has been
    unchanged for a minute and the vault has no copy of it.
    """
    make_own_folder(kept.parent)
    with temporary(kept) as new:
        copy_file(path, new)
        if path.suffix == ".json" and legacy_message_ids(new) is None:
            facts = new.stat()
            if stat_if_present(kept) is not None or not _is_quiet(
                (facts.st_size, facts.st_mtime_ns)
            ):
                return False
        matters = path.suffix in (".json", ".jsonl") or not new.stat().st_size
        if matters and stat_if_present(kept) is not None and not holds_all(new, kept):
            _set_aside(path, kept)
        new.replace(kept)
    return True


def _set_aside(path: Path, kept: Path) -> None:
    """Link an archived copy to a name under which it won't be replaced."""
    for aside in _numbered(path):
        make_own_folder(aside.parent)
        with suppress(FileExistsError):
            os.link(kept, aside)
            return


# --- other versions ------------------------------------------------------------------------------


def set_others_aside(path: Path, kept: Path) -> Path | None:
    """Archive all other versions of a file that the version `kept` is going to replace.

    Lists don't show a version if `kept` has all its messages (`REPLACED`). Returns the archived
    file for the version at `path` in the store; None if there is none. Raises OSError.
    """
    there, aside = stat_if_present(path), None
    if there is None and not trees():
        return None
    make_own_folder(vault_dir())
    with _replacing():
        if there is not None:
            aside = _named_apart(path, path, "" if adds_to(path, kept) else REPLACED)
        for name in [in_tree(tree, path) for tree in trees()]:
            if name in (kept, aside) or stat_if_present(name) is None or adds_to(name, kept):
                continue
            if kept == path or not holds_all(kept, name):
                _named_apart(name, path, REPLACED)
                name.unlink()
    return aside


def archive(path: Path) -> None:
    """Archive a file of the store that is about to be removed, even an incomplete one.

    Raises OSError.
    """
    keep(path)
    with _replacing():
        for kept in (in_tree(tree, path) for tree in trees()):
            there = stat_if_present(kept)
            if there and there.st_size == path.lstat().st_size and begins_with(kept, path):
                flush(kept)
                return
        _named_apart(path, path, "")


def _named_apart(file: Path, path: Path, prefix: str) -> Path:
    """Give a version of a file a name in the vault that it keeps; return the name.

    `path`: the file's path in the store. `prefix`: of the names of the trees.
    """
    for aside in _numbered(path, prefix):
        there = stat_if_present(aside)
        if there is None:
            make_own_folder(aside.parent)
            with suppress(FileExistsError):  # the hook has just created it
                if not link(file, aside):
                    replace_with_copy(file, aside)
                sync_folder(aside.parent)
                return aside
        elif os.path.samestat(there, file.lstat()):
            return aside
    raise AssertionError


def _replacing() -> AbstractContextManager[bool]:
    """Return a context manager that holds the lock for replacing archived files.

    Raises OSError.
    """
    return locked(vault_dir() / _LOCK)
