"""A policy file as it changes on the disk while somebody edits it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

from watchfiles import Change, awatch

from gemtui.errors import GemtuiError
from gemtui.policy.store import Opened, PolicyFile, open_policy

STEP = 50
"""Milliseconds of silence after which a change is told."""


async def watch_file(file: PolicyFile) -> AsyncGenerator[Opened]:
    """The file whenever it was written, as it is then; ends where its folder can't be watched.

    It is told once at the beginning, too: what happened before can't be known. A file that is
    gone, or can't be read for a moment, is not told.
    """
    stop = asyncio.Event()
    name = file.path.name

    def concerns(_change: Change, changed: str) -> bool:
        return Path(changed).name == name

    if (fresh := await asyncio.to_thread(_read, file)) is not None:
        yield fresh
    try:
        changes = awatch(
            file.path.parent,
            watch_filter=concerns,
            recursive=False,
            step=STEP,
            stop_event=stop,
            ignore_permission_denied=True,
        )
        async with aclosing(changes) as batches:
            async for _ in batches:
                if (fresh := await asyncio.to_thread(_read, file)) is not None:
                    yield fresh
    except (OSError, RuntimeError):  # watchfiles' own errors are RuntimeErrors
        return
    finally:
        stop.set()


def _read(file: PolicyFile) -> Opened | None:
    try:
        return open_policy(file)
    except (GemtuiError, OSError):
        return None
