"""The usage of all sessions today, and of the shown one, below the prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial

from gemtui.errors import ConfigError
from gemtui.stats.prices import Prices, load_prices
from gemtui.stats.report import Sums
from gemtui.stats.spent import sums_since
from gemtui.ui.kit.full_screen import background
from gemtui.ui.run.labels import spent_words
from gemtui.ui.run.pane_base import RunPane, RunPart


class Spending(RunPart):
    """Today's usage and the prices, as of the last update."""

    def __init__(self, screen: RunPane) -> None:
        super().__init__(screen)
        self._prices: Prices | None = None
        self._today: Sums | None = None

    @background("costs", exclusive=True)
    async def look(self) -> None:
        """Sum up today's usage; unreadable prices are only reported by stats and doctor."""
        if not self.screen.is_current:
            return
        app, now = self.screen.gemtui, self.screen.gemtui.clock().astimezone()
        try:
            self._prices = prices = await asyncio.to_thread(load_prices)
        except ConfigError:
            return
        day = now.replace(hour=0, minute=0, second=0, microsecond=0)
        today = partial(sums_since, home=app.start.home, cache=app.start.cache)
        self._today = await asyncio.to_thread(today, app.summaries(), prices, day)
        self.screen.say_options()

    def words(self) -> Iterator[str]:
        """Yield the context's usage, and the costs of the conversation and of the day."""
        run, panes = self.screen.run_shown, self.screen.panes
        shown = panes.before if run is None else run.transcript()
        app = self.screen.gemtui
        return spent_words(
            shown, self._today, self._prices, app.clock(), day_budget=app.config.day_budget
        )
