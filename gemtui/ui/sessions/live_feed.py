"""A watch on what the sessions in all terminals are doing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from pathlib import Path

from gemtui.extension.live import LiveFolder, LiveSession
from gemtui.paths import make_own_folder

TICK = 2.0
"""Seconds between checks that are made even without changes.

They find processes that were killed, which changes no file.
"""
_STEP, _GATHER = 50, 200
"""Milliseconds without changes before they are reported, and the longest delay."""


async def follow_live(show: Callable[[tuple[LiveSession, ...]], None]) -> None:
    """Call `show` with all live sessions now and after each change, until cancelled.

    A live session is one that a Gemini CLI process has open. `show` is called in the event loop.
    """
    folder = LiveFolder()
    await asyncio.to_thread(_prepare, folder)
    shown: tuple[LiveSession, ...] | None = None
    async with aclosing(_stirs(folder.folder)) as stirs:
        async for _ in stirs:
            live = await asyncio.to_thread(folder.read)
            if live != shown:
                shown = live
                show(live)


def _prepare(live: LiveFolder) -> None:
    """Create the folder to watch, and delete old files from it."""
    with suppress(OSError):
        make_own_folder(live.folder)
    live.clear()


async def _stirs(folder: Path) -> AsyncGenerator[None]:
    """Yield right away, after every change in the folder, and every `TICK` seconds."""
    from watchfiles import awatch  # slow, so not imported before the first rows are shown

    yield
    stop = asyncio.Event()
    with suppress(OSError, RuntimeError, ValueError):  # watchfiles raises RuntimeError
        async with aclosing(
            awatch(
                folder,
                watch_filter=None,
                recursive=False,
                step=_STEP,
                debounce=_GATHER,
                rust_timeout=round(TICK * 1000),
                yield_on_timeout=True,
                stop_event=stop,
            )
        ) as changes:
            async for _ in changes:
                yield
    while True:  # the folder can't be watched
        await asyncio.sleep(TICK)
        yield
