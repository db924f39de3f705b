"""Write to stdout asynchronously, so that a slow reader does not delay ctrl+c."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from gemtui.commands.output import to_stdout

_AHEAD = 4 * 1024 * 1024
"""The most bytes that may be waiting for the reader."""


class Writer:
    """Writes data to stdout in the background; calls `failed` if nobody reads stdout."""

    def __init__(self, failed: Callable[[], None]) -> None:
        self._failed = failed
        self._waiting: list[bytes] = []
        self._size = 0
        self._closed = False
        self._more, self._room = asyncio.Event(), asyncio.Event()
        self._task = asyncio.ensure_future(self._write())

    async def write(self, data: bytes) -> None:
        """Queue `data`, waiting while the reader is far behind.

        Data that can't be written is discarded.
        """
        if self._task.done():
            return
        self._waiting.append(data)
        self._size += len(data)
        self._more.set()
        if self._size > _AHEAD:
            self._room.clear()
            await self._room.wait()

    async def close(self) -> None:
        """Wait until everything has been written. Raises the writer's errors."""
        self._closed = True
        self._more.set()
        await self._task

    async def _write(self) -> None:
        try:
            while self._waiting or not self._closed:
                await self._more.wait()
                self._more.clear()
                data, self._waiting, self._size = self._waiting, [], 0
                await asyncio.to_thread(to_stdout, data)
                self._room.set()
        except OSError:
            self._failed()
            raise
        finally:
            self._room.set()
