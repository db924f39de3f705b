"""Changes of the store as they happen.

By the system's events where it tells us, else by looking every two seconds, with a word why. The
store may come later, go, and come again: what is watched is then the nearest folder above it.
"""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from watchfiles import Change, awatch

from gemtui.sessions.mounts import network_file_system
from gemtui.sessions.store import Store, name_of

STEP = 20
"""Milliseconds of silence after which changes are told; also how often the system is asked."""
GATHER = 200
"""Milliseconds after which changes are told although more are coming."""
GLANCE = 500
"""Milliseconds between looks at what no event tells: whether the store is still the same folder."""
POLL = 2.0
"""Seconds between two looks without events; more where one look takes long."""
_LOOK_SHARE = 20

Mode = Literal["events", "polling"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """Files and folders of the store that changed, appeared or vanished.

    `~/.gemini/tmp` itself stands for "look at all of it". `reason`: why it is polling.
    """

    paths: frozenset[Path]
    mode: Mode
    reason: str | None = None


async def watch(home: Path, *, stop: asyncio.Event) -> AsyncGenerator[Changed]:
    """Every change of what the CLI stores below `home`, until `stop` is set or it is cancelled.

    The first `Changed` comes as soon as changes are seen and names the whole store: what happened
    before is for the caller to look at. Nothing is raised for a store that is missing or can't be
    watched. A cancellation sets `stop` as well.
    """
    kind = await asyncio.to_thread(network_file_system, home / "tmp")
    reason = f"the store is on a network file system ({kind})" if kind else None
    while reason is None and not stop.is_set():
        try:
            async with aclosing(_by_events(home, stop)) as changes:
                async for changed in changes:
                    yield changed
        except (OSError, RuntimeError) as error:  # watchfiles' own errors are RuntimeErrors
            reason = _why_not(error, home / "tmp")
    if reason is not None:
        async with aclosing(_by_looking(home, stop, f"{reason}: looking every 2 s")) as changes:
            async for changed in changes:
                yield changed


# --- events --------------------------------------------------------------------------------------


async def _by_events(home: Path, stop: asyncio.Event) -> AsyncGenerator[Changed]:
    """Changes until the store comes, goes or is replaced: then another folder is to be watched."""
    tmp, registry = home / "tmp", home / "projects.json"
    root = _nearest(tmp)
    base, folder, known = root.resolve(), _identity(root), _identity(registry)
    there = root == tmp
    first = True
    async with aclosing(_batches(base, home, stop, there=there)) as batches:
        async for batch in batches:
            paths = {tmp / path.relative_to(base) for path in batch} if there else set()
            if (now := _identity(registry)) != known:
                known = now
                paths.add(registry)
            moved = _nearest(tmp) != root or _identity(root)[:2] != folder[:2]
            if first or moved:
                paths.add(tmp)
            first = False
            if paths:
                yield Changed(paths=frozenset(paths), mode="events")
            if moved:
                return


async def _batches(
    base: Path, home: Path, stop: asyncio.Event, *, there: bool
) -> AsyncGenerator[set[Path]]:
    """What the system tells, and every half second an empty set."""
    try:
        async with aclosing(
            awatch(
                base,
                watch_filter=_filter(base, home) if there else None,
                recursive=there,
                step=STEP,
                debounce=GATHER,
                rust_timeout=GLANCE,
                yield_on_timeout=True,
                ignore_permission_denied=True,
                stop_event=stop,
            )
        ) as events:
            async for batch in events:
                yield {Path(path) for _, path in batch}
    except FileNotFoundError:
        if base.is_dir():
            raise
        yield set()


def _filter(base: Path, home: Path) -> Callable[[Change, str], bool]:
    """Only what may hold a session, or say which project a folder belongs to."""

    def concerns(change: Change, name: str) -> bool:
        path = home / "tmp" / Path(name).relative_to(base)
        if name_of(path, home) is not None or path.name == ".project_root":
            return True
        return change is not Change.modified and _may_be_folder(path.relative_to(home).parts)

    return concerns


def _may_be_folder(parts: tuple[str, ...]) -> bool:
    """Whether `tmp/…` may be a folder whose coming or going changes what is stored."""
    match parts:
        case ("tmp",) | ("tmp", _) | ("tmp", _, "chats"):
            return True
        case ("tmp", _, "chats", name):
            return "." not in name
        case _:
            return False


def _nearest(path: Path) -> Path:
    """The path, or the nearest folder above it that is there."""
    return next((each for each in (path, *path.parents) if each.is_dir()), Path("/"))


def _identity(path: Path) -> tuple[int, ...]:
    """(device, inode, size, time) of a path; () if it is not there."""
    try:
        info = path.stat()
    except OSError:
        return ()
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns


def _why_not(error: Exception, tmp: Path) -> str:
    number = error.errno if isinstance(error, OSError) else None
    text = str(error)
    if number == errno.ENOSPC or "os error 28" in text or "watch limit" in text:
        return "the system's limit of watched folders is reached (fs.inotify.max_user_watches)"
    if number == errno.EMFILE or "os error 24" in text:
        return "too many files are open or watched (fs.inotify.max_user_instances)"
    return f"{tmp} can't be watched ({text})"


# --- looking -------------------------------------------------------------------------------------


async def _by_looking(home: Path, stop: asyncio.Event, reason: str) -> AsyncGenerator[Changed]:
    """Changes found by comparing names, sizes and times."""
    before = await asyncio.to_thread(_look, home)
    changes = frozenset({home / "tmp"})
    cost = 0.0
    while True:
        if changes:
            yield Changed(paths=changes, mode="polling", reason=reason)
        if await _set_within(stop, max(POLL, _LOOK_SHARE * cost)):
            return
        start = time.monotonic()
        now = await asyncio.to_thread(_look, home)
        cost = time.monotonic() - start
        changes = _differences(before, now, home)
        before = now


async def _set_within(stop: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return False
    return True


def _look(home: Path) -> dict[Path, tuple[int, ...]]:
    found: dict[Path, tuple[int, ...]] = {each.path: each.stamp for each in Store(home).files()}
    return found | {home / "projects.json": _identity(home / "projects.json")}


def _differences(
    before: dict[Path, tuple[int, ...]], now: dict[Path, tuple[int, ...]], home: Path
) -> frozenset[Path]:
    """What differs; where files came or went, folders and markers may have done so as well."""
    paths = {path for path in before.keys() | now.keys() if before.get(path) != now.get(path)}
    if before.keys() != now.keys():
        paths.add(home / "tmp")
    return frozenset(paths)
