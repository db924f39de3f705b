"""The screen with usage statistics for this project or for all projects."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType

from gemtui.errors import ConfigError
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.store.store import Problem
from gemtui.stats.activity import FileActivity, activities
from gemtui.stats.prices import Prices, load_prices
from gemtui.stats.report import Stats, counted_sessions
from gemtui.text import Clean, clean_line, counted
from gemtui.ui.draw.lines import own
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.reading import Reading
from gemtui.ui.kit.screens import FullScreen
from gemtui.ui.kit.text_view import LineView
from gemtui.ui.sessions.labels import SPANS, scope_parts, since
from gemtui.ui.sessions.stats_drawing import draw_stats

_STEP = 0.5
"""Seconds between two updates of the screen while sessions are being read.

If all sessions are in the cache, reading takes less than this, so nothing partial is shown.
"""


class StatsScreen(FullScreen[None]):
    """A screen with usage statistics, which shows partial results while reading.

    `home`: Gemini CLI's folder. `project`: the project that the statistics can be limited to, or
    None.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.STATS)

    def __init__(self, sessions: Sequence[Summary], home: Path, project: Path | None) -> None:
        super().__init__()
        self._sessions, self._home, self._project = sessions, home, project
        self._everywhere = project is None or not counted_sessions(sessions, project)
        self._span = 0

    def compose(self) -> ComposeResult:
        yield from self.framed(LineView(what="numbers"))

    def on_mount(self) -> None:
        self.query_one(LineView).focus()
        self._read()

    @work(exclusive=True, group="read")
    async def _read(self) -> None:
        reading = self.begin_reading(every=_STEP)
        self._update_header()
        self.query_one(LineView).show(lambda _look: ())
        prices, problem = None, ""
        try:
            prices = await asyncio.to_thread(load_prices)
        except ConfigError as error:
            problem = f"No costs are shown: {error}"
        await asyncio.to_thread(self._sum_up, prices, reading, problem)

    def _sum_up(self, prices: Prices | None, reading: Reading, problem: str) -> None:
        """Add up the sessions, showing partial results and finally the complete ones.

        `problem`: why there are no prices; "" if there are. Blocking: call this on a background
        thread.
        """
        project = None if self._everywhere else self._project
        sessions = counted_sessions(self._sessions, project)
        stats, unread = Stats(prices, since=since(self._span, self.gemtui.clock()), zone=None), 0
        found = activities(sessions, home=self._home, cache=self.gemtui.start.cache, cancelled=reading.is_stopped)
        for done, (session, each) in enumerate(found, 1):
            if isinstance(each, FileActivity):
                stats.add(session, each)
            unread += isinstance(each, Problem)
            if reading.is_due():
                words = own(f"{done:,} of {len(sessions):,} sessions read")
                reading.show(self._show, deepcopy(stats), words, False)
        missing = f"{counted(unread, 'session')} can't be read" if unread else ""
        words = clean_line("; ".join(filter(None, (problem, missing))))
        reading.show(self._show, stats, words, True)

    def _show(self, stats: Stats, words: Clean, whole: bool) -> None:
        self.show_status(words)
        if stats.total.sessions:
            self.query_one(LineView).show(lambda look: draw_stats(stats, look))
        elif whole:
            scope = "" if self._everywhere else ", or a to show all projects"
            self.show_status(own(f"No activity in this period. Press w to change it{scope}."))

    def _update_header(self) -> None:
        project = None if self._everywhere else self._project
        self.header.show_parts(scope_parts("Stats", project, self._span))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable changing the scope if there is no project."""
        del parameters
        return action != "scope" or self._project is not None

    def action_scope(self) -> None:
        self._everywhere = not self._everywhere
        self._read()

    def action_span(self) -> None:
        self._span = (self._span + 1) % len(SPANS)
        self._read()
