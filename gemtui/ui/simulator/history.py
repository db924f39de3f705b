"""The history against a policy: what past calls would get, and rules that would change it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple

from textual import on, work
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Rule as Ruling

from gemtui.policy.model.rules import RecordedCall
from gemtui.policy.suggest.replay import ReplayCounter, ReplayCounts, ReplayDecision, RuleCount
from gemtui.policy.suggest.suggest import Evidence, Suggestion, Suggestions
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.row_list import RowList
from gemtui.ui.kit.screens import DIALOG
from gemtui.ui.kit.text_view import LineView
from gemtui.ui.rules.draw import summary
from gemtui.ui.simulator import history_rows
from gemtui.ui.simulator.call_scan import CallHistory, CallScanner, CallSink, ScanProgress
from gemtui.ui.simulator.calls import MatchingCallsScreen, progress_text
from gemtui.ui.simulator.history_rows import HistoryRow, Total
from gemtui.ui.simulator.simulation import Simulation, SimulatorScreen, Taken


class HistoryState(NamedTuple):
    """The facts about the calls that have been read.

    `suggestions`: None until all of them have been read.
    """

    counts: ReplayCounts
    suggestions: Suggestions | None


class PolicyHistoryScreen(SimulatorScreen, CallScanner[Taken, HistoryState]):
    """Shows how many past calls get each decision, by which rule, and rules that allow more.

    The numbers grow while sessions are read; then rules are suggested. Below or beside them are
    details of the row under the cursor. `at_rules`: move the cursor to the first suggested rule.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.POLICY_HISTORY)
    AUTO_FOCUS = "RowList"
    HEADING = "History"
    DEFAULT_CSS = """
    PolicyHistoryScreen {
        & #history-panes { layout: vertical; height: 1fr; margin-top: 1; }
        & RowList { height: 1fr; }
        & LineView { height: 40%; padding: 0 2; }
        & Rule.-horizontal { margin: 0; color: $foreground 30%; }
        &.-extra #history-panes { layout: horizontal; }
        &.-extra Rule { display: none; }
        &.-extra LineView { width: 70; height: 1fr; }
    }
    """

    def __init__(
        self, simulation: Simulation, history: CallHistory, *, at_rules: bool = False
    ) -> None:
        super().__init__(simulation)
        self.history = history
        self._goes_to_rules = at_rules
        self._found: HistoryState | None = None

    def body(self) -> Iterable[Widget]:
        """Return the list of rows, and the details of the row under the cursor."""
        rows = RowList[HistoryRow](
            history_rows.draw_row,
            stops=history_rows.stops,
            key=history_rows.row_key,
            empty="reading",
        )
        line = Ruling(line_style="ascii" if self.gemtui.glyphs.ascii else "solid")
        yield Horizontal(rows, line, LineView(what="the details"), id="history-panes")

    def on_mount(self) -> None:
        """Start reading the project's calls or, if it has none, all calls."""
        self.scan_again()

    @property
    def _rows(self) -> RowList[HistoryRow]:
        return self.query_one(RowList)

    # --- reading -------------------------------------------------------------------------------

    def about(self) -> str:
        """Return which calls are read, to show beside the heading."""
        return self.scope_text

    def show_scope(self) -> None:
        """Show which calls are read beside the heading."""
        self.show_context()

    def situation_changed(self) -> None:
        """Read the calls again; the old rows stay on screen until there are new ones."""
        self.progress = ScanProgress()
        self.show_progress()
        self.read()

    def action_mode(self) -> None:
        self._forget_suggestions()
        super().action_mode()

    def action_interactive(self) -> None:
        self._forget_suggestions()
        super().action_interactive()

    def scan_again(self) -> None:
        """Read the calls of another scope, or once more."""
        self._forget_suggestions()
        self.situation_changed()

    def _forget_suggestions(self) -> None:
        """Remove the suggestions, because they are rules for one mode and some calls."""
        if self._found is not None:
            self._found = self._found._replace(suggestions=None)
            self._show_rows()

    def sink(self) -> CallSink[HistoryState]:
        """Return a sink that counts decisions and, at the end, suggests rules."""
        made: list[tuple[ReplayCounter, Evidence]] = []
        simulation = self.simulation

        def run() -> tuple[ReplayCounter, Evidence]:
            # The policy engine is created here because this is a background thread.
            if not made:
                evidence = Evidence(
                    simulation.policy,
                    mode=simulation.mode,
                    interactive=simulation.interactive,
                    setup=simulation.draft.setup,
                )
                made.append((ReplayCounter(simulation.engine()), evidence))
            return made[0]

        def feed(calls: Sequence[RecordedCall]) -> None:
            counter, evidence = run()
            counter.feed(calls)
            evidence.feed(calls)

        def state(ended: bool) -> HistoryState:
            counter, evidence = run()
            return HistoryState(counter.counts(), evidence.suggest() if ended else None)

        return CallSink(feed=feed, state=state)

    def show_result(self, found: HistoryState) -> None:
        """Show what is known of the calls that have been read so far.

        Earlier suggestions stay until there are new ones.
        """
        earlier = None if self._found is None else self._found.suggestions
        self._found = found._replace(suggestions=found.suggestions or earlier)
        self._show_rows()
        if self._goes_to_rules and found.suggestions is not None:
            self._goes_to_rules = False
            self._go_to_rules()

    def _go_to_rules(self) -> None:
        """Move the cursor to the first suggested rule, unless it has been moved already."""
        if self._rows.cursor:
            return
        for number, row in enumerate(self._rows.items):
            if isinstance(row, Suggestion):
                self._rows.go(number)
                return

    def _show_rows(self) -> None:
        if self._found is not None:
            self._rows.show(history_rows.history_rows(*self._found))
            self._show_detail()

    @on(RowList.Highlighted)
    def _show_detail(self) -> None:
        row, found = self._rows.chosen, self._found
        details = self.query_one(LineView)
        self.refresh_bindings()
        if row is None or found is None:
            details.show(lambda _look: ())
            return
        find = self.history.session
        details.show(lambda look: history_rows.draw_detail(row, found.counts, find, look))

    def unreadable(self) -> None:
        """Show, in place of the numbers, that nothing could be read."""
        self.progress = ScanProgress(ended=True)
        self.show_progress()
        self._rows.empty = "No sessions could be read."

    def show_progress(self) -> None:
        """Show how many calls have been read."""
        self.show_status(progress_text(self.progress))
        self.refresh_bindings()

    # --- keys ----------------------------------------------------------------------------------

    def can(self, action: str) -> bool:
        """Return False for "stop" if nothing is being read, and for "add" beside a rule to add."""
        match action:
            case "stop":
                return not self.progress.ended
            case "add":
                return isinstance(self._rows.chosen, Suggestion)
            case _:
                return True

    def action_again(self) -> None:
        """Reload the sessions and read their calls again."""
        self.history.forget()
        self.scan_again()

    def action_add(self) -> None:
        """Add the rule under the cursor, and read again what past calls get with it."""
        row, found = self._rows.chosen, self._found
        if not isinstance(row, Suggestion) or found is None or found.suggestions is None:
            return
        others = tuple(other for other in found.suggestions.suggestions if other is not row)
        left = replace(found.suggestions, suggestions=others)
        self._found = found._replace(suggestions=left)
        self._show_rows()
        self.simulation.add_rule(row.rule)
        self.gemtui.show_message(f"Added, not saved: {summary(row.rule)}")
        self.show_context()
        self.situation_changed()

    @on(RowList.Opened)
    @work(exclusive=True, group=DIALOG)
    async def _opened(self) -> None:
        """List the calls behind the chosen row, on another screen."""
        row = self._rows.chosen
        if row is None or self._found is None:
            return
        behind = history_rows.calls_behind(row, self._found.counts)
        if behind is None:
            return
        title, references, calls = behind
        allowed = isinstance(row, Total | RuleCount) and row.decision is ReplayDecision.ALLOW
        screen = MatchingCallsScreen(
            self.simulation, self.history, title, references, calls=calls, allowed=allowed
        )
        await self.look_into(screen)
