"""Base classes of the screens that read the calls of past sessions."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

from textual import work
from textual.screen import ScreenResultType

from gemtui.text import Clean
from gemtui.ui.kit.screens import DIALOG, FullScreen
from gemtui.ui.simulator.base import SimulatorScreen
from gemtui.ui.simulator.call_scan import CallHistory, CallScan, CallScope, CallSink, ScanProgress
from gemtui.ui.simulator.scope_dialog import choose_scope, describe_scope
from gemtui.ui.simulator.simulation import Simulation, Taken

State = TypeVar("State")


class CallScanner(FullScreen[ScreenResultType], Generic[ScreenResultType, State]):
    """Reads the calls in a scope on a background thread, and shows the growing result.

    `which`: the scope, which says which calls to read; None until the first one has been
    determined. Subclasses define a sink, which processes the calls, and how to show its result.
    """

    history: CallHistory
    which: CallScope | None = None
    progress = ScanProgress()
    _scan: CallScan[State] | None = None

    def sink(self) -> CallSink[State]:
        """Return a new sink, which processes the calls of a single scan."""
        raise NotImplementedError

    def scan_again(self) -> None:
        """Start a new scan, because the scope has changed."""
        raise NotImplementedError

    def show_result(self, found: State) -> None:
        """Show the sink's result for the calls that have been read so far."""
        raise NotImplementedError

    def show_scope(self) -> None:
        """Show which calls are being read (the scope)."""
        raise NotImplementedError

    def show_progress(self) -> None:
        """Show how many calls have been read."""

    def unreadable(self) -> None:
        """Show that nothing could be read."""

    def on_unmount(self) -> None:
        self.action_stop()

    @work(exclusive=True, group="read")
    async def read(self) -> None:
        """Start a scan of the current scope.

        The first scope is the project's calls or, if it has none, all calls.
        """
        self.action_stop()
        with self.gemtui.reporting():
            if self.which is None:
                project = self.gemtui.start.project
                self.which = await asyncio.to_thread(self.history.initial_scope, project)
                self.show_scope()
            self._scan = CallScan(self.history, self.which, self.sink(), self._take)
            await self._scan.run()
            return
        self.unreadable()

    def _take(self, progress: ScanProgress, found: State) -> None:
        if self.is_open:
            self.progress = progress
            self.show_result(found)
            self.show_progress()

    @property
    def scope_text(self) -> Clean:
        """A description of the scope (the calls that are read), such as "all projects"."""
        return Clean("") if self.which is None else describe_scope(self.which, self.gemtui.clock())

    def action_stop(self) -> None:
        if self._scan is not None:
            self._scan.stop()

    @work(exclusive=True, group=DIALOG)
    async def action_which(self) -> None:
        which = await choose_scope(self.gemtui, self.history, self.which)
        if which is not None:
            self.which = which
            self.show_scope()
            self.scan_again()


class ScanScreen(SimulatorScreen, CallScanner[Taken, State], Generic[State]):
    """A simulator screen that reads recorded calls."""

    def __init__(self, simulation: Simulation, history: CallHistory) -> None:
        super().__init__(simulation)
        self.history = history

    def on_mount(self) -> None:
        """Start reading the project's calls or, if it has none, all calls."""
        self.situation_changed()

    @property
    def reading(self) -> bool:
        """Whether calls are being read."""
        return not self.progress.ended

    def about(self) -> Clean:
        """Return the scope (which calls are read), to show beside the heading."""
        return self.scope_text

    def show_scope(self) -> None:
        """Show the scope (which calls are read) beside the heading."""
        self.show_context()

    def scan_again(self) -> None:
        """Compute the decisions for the calls in the new scope."""
        self.situation_changed()

    def unreadable(self) -> None:
        """Show that reading has ended, because nothing could be read."""
        self.progress = ScanProgress(ended=True)
        self.show_progress()

    def action_again(self) -> None:
        """Reload the sessions and read their calls again."""
        self.history.forget()
        self.situation_changed()
