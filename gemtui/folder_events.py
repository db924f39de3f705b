"""The system's events of folders, so that nothing needs to look at them again and again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from struct import Struct

from gemtui.system import OWN, Unported, require

_CHANGED = 0x2 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
"""Entries that are written, moved, created or deleted, and the folder itself deleted or moved."""
ATTRIBUTES = 0x4
"""Permissions and times, also when a file is only touched."""
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_EVENT = Struct("iIII")
_READ = 65536


class FolderEvents:
    """Events of the entries of folders, but not of what is in their subfolders; only on Linux.

    `more`: further kinds of events to report, such as `ATTRIBUTES`. Raises OSError if the system
    reports no events.
    """

    def __init__(self, more: int = 0) -> None:
        self._mask = _CHANGED | more
        self._folders: dict[int, Path] = {}
        require(Unported.WATCH)
        import ctypes  # slow, so not imported earlier

        self._libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(self._libc, "inotify_init1"):
            raise OSError("not Linux")
        self._handle = self._checked(self._libc.inotify_init1(OWN | _NONBLOCK))

    def _checked(self, result: int) -> int:
        if result < 0:
            import ctypes

            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result

    def add(self, folder: Path) -> bool:
        """Watch a folder as well, and return whether it is a new one. Raises OSError."""
        place = os.fsencode(folder)
        number = self._checked(self._libc.inotify_add_watch(self._handle, place, self._mask))
        is_new = number not in self._folders
        self._folders[number] = folder
        return is_new

    def read(self) -> set[Path]:
        """Return the paths that have had events since the last call.

        A folder's own path stands for everything in it.
        """
        paths: set[Path] = set()
        with suppress(BlockingIOError):
            while data := os.read(self._handle, _READ):
                start = 0
                while start < len(data):
                    number, _, _, length = _EVENT.unpack_from(data, start)
                    start += _EVENT.size + length
                    name = data[start - length : start].rstrip(b"\0")
                    folder = self._folders.get(number)
                    if folder is None:  # events were lost
                        paths.update(self._folders.values())
                    else:
                        paths.add(folder / os.fsdecode(name))
        return paths

    async def wait(self, seconds: float | None) -> None:
        """Return when there are events to read, or after some seconds; None is without end."""
        loop, stirred = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._handle, stirred.set)
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(stirred.wait(), seconds)
        finally:
            loop.remove_reader(self._handle)

    def close(self) -> None:
        """Stop watching."""
        os.close(self._handle)


class Stirs:
    """Says when something in folders may have changed; see `watching`."""

    def __init__(self, events: FolderEvents | None, folders: tuple[Path, ...]) -> None:
        self._events, self._folders = events, folders

    async def next(self, pause: float, longest: float | None) -> None:
        """Return `pause` seconds after the next change, or after `longest` seconds without any.

        Changes since the last call count, too. Where the system doesn't report events, this returns
        after `pause` seconds.
        """
        with suppress(OSError):  # a folder that can't be watched is looked at again and again
            if self._events is not None and not self._add_all(self._events):
                await self._events.wait(longest)
        await asyncio.sleep(pause)
        if self._events is not None:
            self._events.read()

    def _add_all(self, events: FolderEvents) -> bool:
        """Watch those of the folders that are there; return whether one of them is a new one."""
        new = False
        for folder in self._folders:
            with suppress(FileNotFoundError):
                new |= events.add(folder)
        return new


@contextmanager
def watching(*folders: Path) -> Iterator[Stirs]:
    """Watch the entries of folders, which need not exist yet, as long as the `with` block runs."""
    events = None
    try:
        with suppress(OSError):
            events = FolderEvents()
        yield Stirs(events, folders)
    finally:
        if events is not None:
            events.close()
