"""Follow what sessions in any terminal do: their files by events, their processes by looking."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from pathlib import Path

from gemtui.own_folders import make_own_folder
from gemtui.sessions.live import LiveFolder, LiveSession

TICK = 2.0
"""Seconds between two looks without an event: none tells that a process was killed."""
_STEP, _GATHER = 50, 200
"""Milliseconds of silence after which a change is told, and after which at the latest."""


async def follow_live(show: Callable[[tuple[LiveSession, ...]], None]) -> None:
    """Call `show` on the loop with what is found, and again with each change, until cancelled."""
    folder = LiveFolder()
    await asyncio.to_thread(_prepare, folder)
    shown: tuple[LiveSession, ...] | None = None
    async with aclosing(_stirs(folder.folder)) as stirs:
        async for _ in stirs:
            live = await asyncio.to_thread(folder.look)
            if live != shown:
                shown = live
                show(live)


def _prepare(live: LiveFolder) -> None:
    """The folder has to be there to be watched."""
    with suppress(OSError):
        make_own_folder(live.folder)
    live.clear()


async def _stirs(folder: Path) -> AsyncGenerator[None]:
    """At once, at every change of an entry of the folder, and at least every `TICK` seconds."""
    from watchfiles import awatch  # after the first rows: it takes its time

    yield
    stop = asyncio.Event()
    with suppress(OSError, RuntimeError, ValueError):  # watchfiles' own are RuntimeErrors
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
    while True:  # it can't be watched
        await asyncio.sleep(TICK)
        yield
