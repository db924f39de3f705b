"""The common part of the screens that scan the calls of past sessions."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

from textual import work

from gemtui.text import Clean
from gemtui.ui.kit.dialog_guard import DIALOG
from gemtui.ui.simulator.base import SimulatorScreen
from gemtui.ui.simulator.call_scan import CallHistory, CallScan, CallScope, CallSink, ScanProgress
from gemtui.ui.simulator.scope_dialog import choose_scope, words
from gemtui.ui.simulator.simulation import Simulation

State = TypeVar("State")


class ScanScreen(SimulatorScreen, Generic[State]):
    """Scans the calls of the scope `which` in a thread and shows the growing result."""

    def __init__(self, simulation: Simulation, history: CallHistory) -> None:
        super().__init__(simulation)
        self.history = history
        self.which: CallScope | None = None
        self.progress = ScanProgress()
        self._reading: CallScan[State] | None = None

    def sink(self) -> CallSink[State]:
        """Return a new consumer of calls, for one scan."""
        raise NotImplementedError

    def show_result(self, found: State) -> None:
        """Show the result so far."""
        raise NotImplementedError

    def show_progress(self) -> None:
        """Show the progress of the scan."""
        raise NotImplementedError

    def on_mount(self) -> None:
        """Start with the project's calls, or with all calls if the project has none."""
        self.situation_changed()

    def on_unmount(self) -> None:
        self.action_stop()

    @property
    def reading(self) -> bool:
        """Whether a scan is in progress."""
        return not self.progress.ended

    @work(exclusive=True, group="read")
    async def read(self) -> None:
        """Start a new scan."""
        self.action_stop()
        with self.gemtui.reporting():
            if self.which is None:
                self.which = await asyncio.to_thread(
                    self.history.initial_scope, self.gemtui.start.project
                )
                self.show_context()
            self._reading = CallScan(self.history, self.which, self.sink(), self._take)
            await self._reading.run()
            return
        self.progress = ScanProgress(ended=True)
        self.unreadable()
        self.show_progress()

    def unreadable(self) -> None:
        """Handle the case that nothing could be read."""

    def _take(self, progress: ScanProgress, found: State) -> None:
        if self.is_open:
            self.progress = progress
            self.show_result(found)
            self.show_progress()

    def about(self) -> Clean:
        """Describe the scope."""
        return Clean("") if self.which is None else words(self.which, self.gemtui.clock())

    def action_stop(self) -> None:
        if self._reading is not None:
            self._reading.stop()

    @work(exclusive=True, group=DIALOG)
    async def action_which(self) -> None:
        which = await choose_scope(self.gemtui, self.history, self.which)
        if which is not None:
            self.which = which
            self.show_context()
            self.situation_changed()

    def action_again(self) -> None:
        """Load the sessions again, and scan their calls."""
        self.history.forget()
        self.situation_changed()
