"""Watch the store for changes.

The watch uses the system's events if possible; otherwise it polls every two seconds and reports
why. The store may not exist yet, may vanish, and may come back; while it is missing, its nearest
existing parent folder is watched. Every folder is watched explicitly, and again whenever a folder
appears, vanishes, or changes its permissions. On Linux, this module uses the system's events
itself, because watchfiles checks for changes fifty times a second.
"""

from __future__ import annotations

import asyncio
import errno
import math
import os
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, closing, suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct

from gemtui.files import stat_if_possible
from gemtui.folder_events import ATTRIBUTES, FolderEvents
from gemtui.sessions.store.shelf import Shelf, shelves
from gemtui.sessions.store.store import Store, name_of

_NETWORK = frozenset(
    {"9p", "afpfs", "afs", "ceph", "cifs", "fuse.sshfs", "glusterfs", "lustre", "macfuse", "nfs"}
    | {"nfs4", "osxfuse", "smb3", "smbfs", "vboxsf", "webdav"}
)


def network_file_system(path: Path) -> str | None:
    """Return the type of the network or shared file system that `path` is on.

    Returns None if the file system is local or its type can't be determined.
    """
    import psutil  # takes 20 ms, needed only for watching

    try:
        real = os.path.realpath(path)
        partitions = psutil.disk_partitions(all=True)
    except OSError:
        return None
    mounts = [
        (partition.mountpoint.rstrip("/") + "/", partition.fstype) for partition in partitions
    ]
    above = [mount for mount in mounts if (real + "/").startswith(mount[0])]
    kind = max(above, key=lambda mount: len(mount[0]), default=("", ""))[1]
    return kind if kind in _NETWORK else None


WATCH_STEP = 0.02
"""Seconds without changes after which changes are reported."""
GATHER = 0.2
"""Seconds after which changes are reported even if more keep arriving."""
GLANCE = 5.0
"""Seconds between checks for changes that cause no event, such as a moved home folder."""
POLL = 2.0
"""Seconds between two scans when polling; more if a scan takes long."""
_LOOK_SHARE = 20

Mode = Literal["events", "polling"]


class StoreChange(Struct, frozen=True, kw_only=True):
    """Files and folders in the store that changed, appeared, or vanished.

    The path `~/.gemini/tmp` itself means that anything may have changed. `reason`: why the store is
    polled; None if it is watched by events.
    """

    paths: frozenset[Path]
    mode: Mode
    reason: str | None = None


async def watch(home: Path) -> AsyncGenerator[StoreChange]:
    """Yield every change to the CLI's store under `home`, until closed or cancelled.

    The first `StoreChange` is yielded once the watch is active, and names the whole store. Earlier
    changes are not reported. A missing or unwatchable store is not an error.
    """
    kind = await asyncio.to_thread(network_file_system, home / "tmp")
    reason = f"the store is on a network file system ({kind})" if kind else None
    while reason is None:
        try:
            async with aclosing(_by_events(home)) as changes:
                async for changed in changes:
                    yield changed
        except (OSError, RuntimeError, ValueError) as error:  # watchfiles raises RuntimeErrors
            reason = _why_not(error, home / "tmp")
    async with aclosing(_by_looking(home, reason)) as changes:
        async for changed in changes:
            yield changed


# --- events --------------------------------------------------------------------------------------


async def _by_events(home: Path) -> AsyncGenerator[StoreChange]:
    """Yield changes reported by the system, until the folders to watch change.

    That is the case as soon as one of the store's folders appears, vanishes, is replaced, or
    changes its permissions. Raises OSError if not all folders can be watched.
    """
    tmp, registry = home / "tmp", home / "projects.json"
    others = shelves(home)
    root = _nearest(tmp)
    base, folder, listed = root.resolve(), _identity(root), _identity(registry)
    there = root == tmp
    first = True
    folders = await asyncio.to_thread(_folders, base) if there else [base]
    for shelf in others:
        folders += await asyncio.to_thread(_folders_of, shelf)
    async with aclosing(_batches(folders, home, others, there=there)) as batches:
        async for batch in batches:
            paths = {path for path in batch if _is_on_shelf(path, others)}
            if there:
                paths |= {_named(tmp, path, base) for path in batch - paths}
            now = _identity(registry)
            if now != listed:
                listed = now
                paths.add(registry)
            moved = _nearest(tmp) != root or _identity(root)[:2] != folder[:2]
            is_new = any(_is_folder(path, home, others) for path in paths)
            if first or moved:
                paths.add(tmp)
            first = False
            if paths:
                yield StoreChange(paths=frozenset(paths), mode="events")
            if moved or is_new or shelves(home) != others:
                return


def _folders(tmp: Path) -> list[Path]:
    """Return the accessible folders whose entries make up the store."""
    if sys.platform == "darwin":
        return [tmp]  # on macOS, a watch includes all subfolders
    folders = [tmp]
    for project in _inside(tmp):
        chats = project / "chats"
        folders += (project, chats, *_inside(chats)) if os.path.isdir(chats) else (project,)  # noqa: PTH112
    return folders


def _folders_of(shelf: Shelf) -> list[Path]:
    """Return the folders of another agent in which sessions appear and grow."""
    folders = [shelf.projects]
    for project in _inside(shelf.projects):
        below = _inside(project)
        deeper = [inner for folder in below for inner in _inside(folder)]
        folders += [project, *below, *deeper]
    return [folder for folder in folders if shelf.is_folder(folder)]


def _is_on_shelf(path: Path, others: tuple[Shelf, ...]) -> bool:
    return any(shelf.name_of(path) is not None or shelf.is_folder(path) for shelf in others)


def _inside(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir()]
    except OSError:
        return []


def _named(tmp: Path, path: Path, base: Path) -> Path:
    """Return the path inside `tmp` for a path that was reported under `base`.

    `base`: the resolved path of `tmp`. If the reported name was truncated or is undecodable,
    returns `tmp` itself, which means that anything may have changed.
    """
    return tmp if "\ufffd" in path.name else tmp / path.relative_to(base)


async def _batches(
    folders: list[Path], home: Path, others: tuple[Shelf, ...], *, there: bool
) -> AsyncGenerator[set[Path]]:
    """Yield changed paths reported by the system, and an empty set now and then.

    `there`: whether the first of `folders` is the store's own. If not, it is the nearest existing
    parent of the missing store. `others`: the shelves whose folders are watched, too.
    """
    changes = _on_linux(folders, home) if sys.platform == "linux" else _elsewhere(folders, there)
    try:
        async with aclosing(changes) as batches:
            async for batch in batches:
                yield {
                    path
                    for path in batch
                    if _is_on_shelf(path, others) or (there and _concerns(path, folders[0], home))
                }
    except FileNotFoundError:
        if all(map(os.path.isdir, folders)):
            raise
        yield set()


async def _on_linux(folders: list[Path], home: Path) -> AsyncGenerator[set[Path]]:
    with closing(FolderEvents(ATTRIBUTES)) as events:
        for folder in folders:
            with suppress(PermissionError):
                events.add(folder)
        with suppress(FileNotFoundError, PermissionError):
            events.add(home)
        yield set()
        while True:
            await events.wait(GLANCE)
            paths, end = set[Path](), time.monotonic() + GATHER
            while time.monotonic() < end and (more := events.read()):
                paths |= more
                await asyncio.sleep(WATCH_STEP)
            yield paths


async def _elsewhere(folders: list[Path], there: bool) -> AsyncGenerator[set[Path]]:
    from watchfiles import awatch

    yield set()
    async with aclosing(
        awatch(
            *folders,
            watch_filter=None,
            recursive=there and sys.platform == "darwin",
            step=round(WATCH_STEP * 1000),
            debounce=round(GATHER * 1000),
            rust_timeout=round(GLANCE * 1000),
            yield_on_timeout=True,
            ignore_permission_denied=True,
        )
    ) as events:
        async for batch in events:
            yield {Path(path) for _, path in batch}


def _concerns(name: Path, base: Path, home: Path) -> bool:
    """Return whether a path below `base` may hold a session or identify a project."""
    if not name.is_relative_to(base):
        return False
    path = home / "tmp" / name.relative_to(base)
    named = name_of(path, home) is not None or path.name == ".project_root"
    return named or _is_folder(path, home)


def _is_folder(path: Path, home: Path, others: tuple[Shelf, ...] = ()) -> bool:
    """Return whether a path may be a folder whose state affects the stored sessions."""
    if any(shelf.is_folder(path) for shelf in others):
        return True
    match path.relative_to(home).parts if path.is_relative_to(home) else ():
        case ("tmp",) | ("tmp", _) | ("tmp", _, "chats"):
            return True
        case ("tmp", _, "chats", name):
            return "." not in name
        case _:
            return False


def _nearest(path: Path) -> Path:
    """Return the path, or its nearest existing parent folder."""
    for ancestor in (path, *path.parents):
        if os.path.isdir(ancestor):  # noqa: PTH112
            return ancestor
    return Path("/")


def _identity(path: Path) -> tuple[int, ...]:
    """Return (device, inode, size, modification time) of a path; () if it is missing."""
    info = stat_if_possible(path, follow=True)
    return () if info is None else (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns)


def _why_not(error: Exception, tmp: Path) -> str:
    number = error.errno if isinstance(error, OSError) else None
    text = str(error)
    if number == errno.ENOSPC or "os error 28" in text or "watch limit" in text:
        return (
            "the system's limit of watched folders has been reached (fs.inotify.max_user_watches)"
        )
    if number == errno.EMFILE or "os error 24" in text:
        return "too many files are open or watched (fs.inotify.max_user_instances)"
    return f"{tmp} can't be watched ({text})"


# --- scanning ------------------------------------------------------------------------------------


async def _by_looking(home: Path, reason: str) -> AsyncGenerator[StoreChange]:
    """Yield changes found by comparing names, sizes, and modification times."""
    before: dict[Path, tuple[int, ...]] | None = None
    while True:
        start = time.monotonic()
        now = await asyncio.to_thread(_look, home)
        pause = max(POLL, _LOOK_SHARE * (time.monotonic() - start))
        changes = frozenset({home / "tmp"}) if before is None else _differences(before, now, home)
        before = now
        if changes:
            word = f"checking for changes every {math.ceil(pause)} s, because {reason}"
            yield StoreChange(paths=changes, mode="polling", reason=word)
        await asyncio.sleep(pause)


def _look(home: Path) -> dict[Path, tuple[int, ...]]:
    stamps: dict[Path, tuple[int, ...]] = {file.path: file.stamp for file in Store(home).files()}
    return stamps | {home / "projects.json": _identity(home / "projects.json")}


def _differences(
    before: dict[Path, tuple[int, ...]], now: dict[Path, tuple[int, ...]], home: Path
) -> frozenset[Path]:
    """Return the changed paths, plus the whole store's path if files came or went.

    The store's path is included because folders and project markers may then also have changed.
    """
    paths = {path for path in before.keys() | now.keys() if before.get(path) != now.get(path)}
    if before.keys() != now.keys():
        paths.add(home / "tmp")
    return frozenset(paths)
