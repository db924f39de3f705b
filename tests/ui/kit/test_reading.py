"""Work on a background thread whose results the event loop draws."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from gemtui.ui.kit.reading import Reading
from tests.patience import PATIENCE


async def test_work_that_waits_for_its_drawing_goes_on_when_it_is_stopped() -> None:
    reading, asked = Reading(), asyncio.Event()

    def never_draws(drawn: Callable[[], None]) -> None:
        asked.set()

    work = asyncio.create_task(asyncio.to_thread(reading.draw, 10 * PATIENCE, never_draws))
    await asked.wait()
    reading.stop()
    await asyncio.wait_for(work, PATIENCE)
