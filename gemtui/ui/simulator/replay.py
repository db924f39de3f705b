"""Show how a policy would decide the tool calls of past sessions, counted by rule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual import on, work
from textual.binding import BindingType
from textual.widget import Widget

from gemtui.policy.model.rules import Reference
from gemtui.policy.suggest.replay import ReplayCounter, ReplayCounts, ReplayDecision, RuleCount
from gemtui.policy.words import rule_source
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.row_list import RowList
from gemtui.ui.kit.screens import DIALOG
from gemtui.ui.rules.draw import Missing, ReplayRow, RowHeading, Total, replay_row, replay_rows
from gemtui.ui.simulator.call_scan import CallHistory, CallSink, ScanProgress, ScanScreen
from gemtui.ui.simulator.calls import MatchingCallsScreen, progress_text
from gemtui.ui.simulator.simulation import Simulation


class ReplayScreen(ScanScreen[ReplayCounts]):
    """Shows how many calls each rule decides; opening a count lists its calls.

    The counts grow while sessions are read.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.REPLAY)
    AUTO_FOCUS = "RowList"
    HEADING = "Replay"
    DEFAULT_CSS = "ReplayScreen RowList { height: 1fr; margin-top: 1; }"

    def __init__(self, simulation: Simulation, history: CallHistory) -> None:
        super().__init__(simulation, history)
        self._counts: ReplayCounts | None = None

    def body(self) -> Iterable[Widget]:
        yield RowList[ReplayRow](replay_row, stops=_stops, key=_key, empty="reading")

    @property
    def _rows(self) -> RowList[ReplayRow]:
        return self.query_one(RowList)

    # --- reading -------------------------------------------------------------------------------

    def situation_changed(self) -> None:
        """Count again; the old counts stay on screen until there are new ones."""
        self.progress = ScanProgress()
        self.show_progress()
        self.read()

    def sink(self) -> CallSink[ReplayCounts]:
        """Return a sink (which processes the calls) that counts decisions."""
        return _sink(self.simulation)

    def show_result(self, found: ReplayCounts) -> None:
        """Show the counts for the calls that have been read so far."""
        self._counts = found
        self._rows.show(replay_rows(found))

    def unreadable(self) -> None:
        """Show, in place of the counts, that nothing could be read."""
        super().unreadable()
        self._rows.empty = "No sessions could be read."

    def show_progress(self) -> None:
        """Show how many calls have been read."""
        self.show_status(progress_text(self.progress))
        self.refresh_bindings()

    # --- details -------------------------------------------------------------------------------

    @on(RowList.Opened)
    def _opened(self) -> None:
        row = self._rows.chosen
        if isinstance(row, Total | RuleCount) and row.calls:
            self._look_behind(row)

    @work(exclusive=True, group=DIALOG)
    async def _look_behind(self, row: Total | RuleCount) -> None:
        if self._counts is None:
            return
        title, references = _behind(row, self._counts)
        screen = MatchingCallsScreen(
            self.simulation,
            self.history,
            title,
            references,
            calls=row.calls,
            allowed=row.decision is ReplayDecision.ALLOW,
        )
        await self.look_into(screen)

    # --- keys ----------------------------------------------------------------------------------

    def can(self, action: str) -> bool:
        """Return False for "stop" if no sessions are being read."""
        return action != "stop" or self.reading


def _sink(simulation: Simulation) -> CallSink[ReplayCounts]:
    """Return a sink (which processes the calls) that counts decisions.

    Its policy engine is created on the background thread.
    """
    made: list[ReplayCounter] = []

    def run() -> ReplayCounter:
        if not made:
            made.append(ReplayCounter(simulation.engine()))
        return made[0]

    return CallSink(feed=lambda calls: run().feed(calls), state=lambda _ended: run().counts())


def _stops(row: ReplayRow) -> bool:
    return not isinstance(row, RowHeading | Missing)


def _key(row: ReplayRow) -> object:
    """Return a key by which a row can be recognised while its count grows."""
    match row:
        case Total():
            return row.decision
        case RuleCount():
            return row.rule, row.decision
        case _:
            return row


def _behind(row: Total | RuleCount, counts: ReplayCounts) -> tuple[str, tuple[Reference, ...]]:
    """Return a description of a count, and references to the calls it includes."""
    said = _TITLES[row.decision]
    if isinstance(row, RuleCount):
        by = "by no rule" if row.rule is None else f"by {rule_source(row.rule)}"
        return f"{said} {by}", row.references
    shares = (each for each in counts.by_rule if each.decision is row.decision)
    return said, tuple(call for share in shares for call in share.references)


_TITLES = {
    ReplayDecision.ALLOW: "that would be allowed",
    ReplayDecision.ASK_USER: "that would need approval",
    ReplayDecision.DENY: "that would be denied",
    ReplayDecision.NOT_OFFERED: "of tools that would not be offered",
    ReplayDecision.TOOL_REFUSES: "that the tools themselves would reject",
    ReplayDecision.NOT_CHECKED: "that are PowerShell commands",
}
