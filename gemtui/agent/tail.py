"""Read files that another process is writing, as chunks or as new lines."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

from gemtui.files import open_regular

CHUNK = 256 * 1024
STEP = 0.02
"""Seconds between two reads of a file that has not grown."""


async def tail(path: Path, *, ended: Callable[[], bool], step: float = STEP) -> AsyncIterator[bytes]:
    """Yield what is written to `path`, in chunks of at most 256 KiB.

    `ended`: returns whether the writer has ended; what it wrote before that is still yielded.
    `step`: seconds between two reads. Each read that finds nothing new yields an empty chunk, so
    that the caller gets a chance to do other work. The file need not exist yet. If it isn't a
    regular file or can't be read, no data is yielded.
    """
    import asyncio  # the supervisor needs only NewLines, and starts sooner without it

    while (file := _opened(path)) is None:
        if ended():
            return
        yield b""
        await asyncio.sleep(step)
    with file:
        while True:
            last = ended()
            while chunk := file.read(CHUNK):
                yield chunk
                await asyncio.sleep(0)
            if last:
                return
            yield b""
            await asyncio.sleep(step)


def _opened(path: Path) -> io.FileIO | None:
    with suppress(OSError):
        return open_regular(path)
    return None


_LOOK = 4 * 1024 * 1024
"""The maximum number of bytes per read."""


class NewLines:
    """Reads a file another process is appending to, in complete lines."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self._rest = b""

    def read(self) -> list[bytes]:
        """Return the lines completed since the last call, without line feeds.

        Returns [] if the file can't be read.
        """
        try:
            with open_regular(self._path) as file:
                file.seek(self._read)
                data = file.read(_LOOK)
        except OSError:
            return []
        self._read += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        return lines
