"""Following the states of the sessions that are open in any terminal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from pathlib import Path

from gemtui.paths import make_own_folder
from gemtui.sessions.live import LiveFolder, LiveSession

TICK = 2.0
"""Seconds between two checks without an event; a killed process causes no event."""
_STEP, _GATHER = 50, 200
"""Milliseconds of silence before a change is reported, and the longest delay."""


async def follow_live(show: Callable[[tuple[LiveSession, ...]], None]) -> None:
    """Call `show` in the event loop with the live sessions, again after each change.

    The coroutine runs until it is cancelled.
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
    """Create the folder so that it can be watched."""
    with suppress(OSError):
        make_own_folder(live.folder)
    live.clear()


async def _stirs(folder: Path) -> AsyncGenerator[None]:
    """Yield immediately, after every change in the folder, and every `TICK` seconds."""
    from watchfiles import awatch  # slow, so imported after the first rows

    yield
    stop = asyncio.Event()
    with suppress(OSError, RuntimeError, ValueError):  # watchfiles raises RuntimeErrors
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
