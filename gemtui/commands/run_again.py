"""What follows a run that a used-up quota has ended: wait until it is renewed, then continue."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from gemtui.runs.quota import MARGIN

_STEP = 30.0
"""Seconds between two looks at the clock: a machine that sleeps meanwhile is not late."""


async def wait_until(when: datetime, stopped: asyncio.Event) -> bool:
    """Wait until a while after this time; return False at once if it is stopped meanwhile."""
    while (left := (when + MARGIN - datetime.now(UTC)).total_seconds()) > 0:
        try:
            async with asyncio.timeout(min(left, _STEP)):
                await stopped.wait()
        except TimeoutError:
            continue
        return False
    return not stopped.is_set()
