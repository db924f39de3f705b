"""The token usage and cost of today and of the conversation on screen, and words for them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial

from gemtui.agent.options import dollars_text
from gemtui.errors import ConfigError
from gemtui.moments import start_of_day
from gemtui.stats.conversation import context_use, recorded_outlines, sums_of
from gemtui.stats.prices import Prices, load_prices
from gemtui.stats.report import Sums, sums_since
from gemtui.transcript.model import Author, Outline
from gemtui.ui.kit.screens import background
from gemtui.ui.run.panes import RunPane, RunPart


class Spending(RunPart):
    """The last computed token usage, for today and for the run on screen, with prices.

    While a run is working, token counts are read from the session file that Gemini CLI writes,
    because the event stream has none until the end (assets/gemini-cli.md#events).
    """

    def __init__(self, screen: RunPane) -> None:
        super().__init__(screen)
        self._prices: Prices | None = None
        self._today: Sums | None = None
        self._recorded: tuple[str, Sequence[Outline]] = "", ()
        """The id of the run on screen, and the messages in its session file so far."""

    @background("costs", exclusive=True)
    async def recompute(self) -> None:
        """Compute the usage again, and show it.

        If prices can't be read, the usage isn't computed; the stats screen and `gemtui doctor`
        report why.
        """
        if not self.screen.is_current:
            return
        app, now = self.screen.gemtui, self.screen.gemtui.clock().astimezone()
        try:
            self._prices = prices = await asyncio.to_thread(load_prices)
        except ConfigError:
            return
        run = self.screen.run_shown
        if run is not None and run.told is None and run.session:
            read = partial(recorded_outlines, home=app.start.home, cache=app.start.cache)
            self._recorded = run.id, await asyncio.to_thread(read, run.session)
        day = start_of_day(now.date(), None)
        today = partial(sums_since, home=app.start.home, cache=app.start.cache)
        self._today = await asyncio.to_thread(today, app.summaries(), prices, day)
        self.screen.show_options()

    def words(self) -> Iterator[str]:
        """Yield how full the context is, and the cost of the conversation and of the day."""
        run, panes = self.screen.run_shown, self.screen.panes
        shown = panes.before if run is None else run.transcript()
        app, outlines = self.screen.gemtui, None if shown is None else shown.outlines
        if run is not None and run.told is None and self._recorded[0] == run.id:
            outlines = self._recorded[1] or outlines
        return spent_words(
            outlines, self._today, self._prices, app.clock(), day_budget=app.config.day_budget
        )


def spent_words(
    shown: Sequence[Outline] | None,
    today: Sums | None,
    prices: Prices | None,
    now: datetime,
    *,
    day_budget: float = 0,
) -> Iterator[str]:
    """Yield how full the context is, and the cost of the conversation and of the day.

    `shown`: the messages that the next prompt continues; None for a new conversation. `today`: the
    day's usage, or None if it isn't known yet. `prices`: None if they aren't known yet; then
    nothing is yielded. `day_budget`: the budget for a day in US dollars, or 0 for none. The cost of
    a conversation doesn't include its subagents.
    """
    if prices is None:
        return
    if shown is not None and any(outline.author is Author.MODEL for outline in shown):
        use = context_use(shown, prices)
        percent = None if use is None else use.percent
        yield "context ?" if percent is None else f"context {percent}%"
        yield f"cost {sums_of(shown, prices, now).dollars or '?'}"
    of_day = f" of {dollars_text(day_budget)}" if day_budget else ""
    if today is not None and (today.dollars or of_day):
        yield f"today {today.dollars or dollars_text(0)}{of_day}"
