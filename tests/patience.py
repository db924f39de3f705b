"""How long tests wait for what has to happen, and how they wait where nothing tells them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 60.0
"""Seconds until something is taken for missing, on a machine that has much else to do."""
_PAUSE = 0.005


def until(look: Callable[[], T | None]) -> T:
    """Look again and again at what another process or thread does; return what is then true."""
    end = time.monotonic() + PATIENCE
    while not (seen := look()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(_PAUSE)
    return seen


async def turns_until(look: Callable[[], T | None]) -> T:
    """As `until`, while the event loop goes on."""
    async with asyncio.timeout(PATIENCE):
        while not (seen := look()):
            await asyncio.sleep(_PAUSE)
    return seen
