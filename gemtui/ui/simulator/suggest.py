"""Suggest rules that would allow calls like those that succeeded in past sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar

from textual import on, work
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Rule as Ruling

from gemtui.policy.model.rules import RecordedCall, Reference, Rule
from gemtui.policy.suggest.suggest import Evidence, LeftOut, Suggestion, Suggestions
from gemtui.policy.words import LONG, condition_words, tools_words
from gemtui.sessions.catalog.summary import Summary
from gemtui.text import command_line, counted, visible_line
from gemtui.ui.draw.lines import BLANK, Line, Piece, cut, prefixed, wrap
from gemtui.ui.draw.theme import BOLD, Look, Role
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.row_list import RowList
from gemtui.ui.kit.screens import DIALOG
from gemtui.ui.kit.text_view import LineView
from gemtui.ui.rules.draw import (
    ProposalRow,
    RowHeading,
    SuggestRow,
    call_row,
    decision_pieces,
    rank,
    suggest_row,
)
from gemtui.ui.simulator.call_scan import CallHistory, CallSink, ScanProgress, ScanScreen
from gemtui.ui.simulator.calls import MatchingCallsScreen, progress_text
from gemtui.ui.simulator.simulation import Simulation


class SuggestScreen(ScanScreen[Suggestions | None]):
    """Shows suggested rules to choose from, and calls for which no rule is suggested.

    Below or beside them are the details of the row under the cursor.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.SUGGEST)
    AUTO_FOCUS = "RowList"
    HEADING = "Suggest"
    DEFAULT_CSS = """
    SuggestScreen {
        & #suggest-panes { layout: vertical; height: 1fr; margin-top: 1; }
        & RowList { height: 1fr; }
        & LineView { height: 45%; padding: 0 2; }
        & Rule.-horizontal { margin: 0; color: $foreground 30%; }
        &.-extra #suggest-panes { layout: horizontal; }
        &.-extra Rule { display: none; }
        &.-extra LineView { width: 70; height: 1fr; }
    }
    """

    def __init__(self, simulation: Simulation, history: CallHistory) -> None:
        super().__init__(simulation, history)
        self._found: Suggestions | None = None
        self._chosen: tuple[Rule, ...] = ()

    def body(self) -> Iterable[Widget]:
        """Return the list of rows, and the details of the row under the cursor."""
        rows = RowList[SuggestRow](suggest_row, stops=_stops, key=_key, empty="reading")
        ascii = self.gemtui.glyphs.ascii
        rule = Ruling(line_style="ascii" if ascii else "solid")
        yield Horizontal(rows, rule, LineView(what="the proposal"), id="suggest-panes")

    @property
    def _rows(self) -> RowList[SuggestRow]:
        return self.query_one(RowList)

    # --- reading -------------------------------------------------------------------------------

    def situation_changed(self) -> None:
        """Discard the suggestions and make new ones."""
        self.progress, self._found, self._chosen = ScanProgress(), None, ()
        self._rows.show(())
        self.show_progress()
        self.read()

    def sink(self) -> CallSink[Suggestions | None]:
        """Return a sink (which processes the calls) that makes suggestions at the end."""
        return _sink(self.simulation)

    def show_result(self, found: Suggestions | None) -> None:
        """Show the suggestions once they are complete.

        `found`: None until then.
        """
        if found is not None:
            self._found = found
            self._show_rows()

    def _show_rows(self) -> None:
        if self._found is not None:
            self._rows.show(list(_rows(self._found, self._chosen)))
            self._show_detail()

    @on(RowList.Highlighted)
    def _show_detail(self) -> None:
        row, history = self._rows.chosen, self.history
        drawing = self.query_one(LineView)
        match row:
            case ProposalRow():
                drawing.show(lambda look: draw_suggestion(row.suggestion, history.session, look))
            case LeftOut():
                drawing.show(lambda look: draw_left_out(row, history.session, look))
            case _:
                drawing.show(lambda _look: ())

    def show_progress(self) -> None:
        """Show how many calls have been read, and how many rules are selected."""
        said = [progress_text(self.progress)]
        found = self._found
        if found is not None and found.suggestions:
            said.insert(
                0, f"{len(self._chosen)} of {counted(len(found.suggestions), 'rule')} selected"
            )
        self.show_status(*said)
        self.refresh_bindings()

    # --- keys ----------------------------------------------------------------------------------

    def can(self, action: str) -> bool:
        """Return False for stopping, adding or selecting if there is nothing to act on."""
        match action:
            case "stop":
                return not self.progress.ended
            case "add":
                return bool(self._chosen)
            case "check" | "check_all":
                return self._found is not None and bool(self._found.suggestions)
            case _:
                return True

    def action_check(self) -> None:
        row = self._rows.chosen
        if isinstance(row, ProposalRow):
            self._choose(row.suggestion.rule, chosen=not row.chosen)

    def _choose(self, rule: Rule, *, chosen: bool) -> None:
        kept = tuple(each for each in self._chosen if each != rule)
        self._chosen = (*kept, rule) if chosen else kept
        self._show_rows()
        self.show_progress()

    def action_check_all(self) -> None:
        """Select all suggested rules or, if all are already selected, deselect them."""
        if self._found is None:
            return
        every = tuple(each.rule for each in self._found.suggestions)
        self._chosen = () if len(self._chosen) == len(every) else every
        self._show_rows()
        self.show_progress()

    def action_add(self) -> None:
        found = self._found
        proposed = () if found is None else tuple(each.rule for each in found.suggestions)
        self.dismiss((*self.simulation.taken, *(each for each in proposed if each in self._chosen)))

    @on(RowList.Opened)
    @work(exclusive=True, group=DIALOG)
    async def _opened(self) -> None:
        """List examples of the calls that the chosen row stands for, on another screen."""
        row = self._rows.chosen
        if row is None or isinstance(row, RowHeading):
            return
        found = row.suggestion if isinstance(row, ProposalRow) else row
        what = "this rule would allow" if isinstance(row, ProposalRow) else "get no rule"
        title = f"examples of calls that {what}"
        screen = MatchingCallsScreen(
            self.simulation, self.history, title, found.examples, calls=found.calls
        )
        await self.look_into(screen)


def _sink(simulation: Simulation) -> CallSink[Suggestions | None]:
    """Return a sink (which processes the calls) that makes suggestions at the end.

    It collects evidence from the calls. The Evidence object is created on the background thread.
    """
    made: list[Evidence] = []

    def run() -> Evidence:
        if not made:
            mode, setup = simulation.mode, simulation.draft.setup
            evidence = Evidence(
                simulation.policy, mode=mode, interactive=simulation.interactive, setup=setup
            )
            made.append(evidence)
        return made[0]

    def feed(calls: Sequence[RecordedCall]) -> None:
        run().feed(calls)

    return CallSink(feed=feed, state=lambda ended: run().suggest() if ended else None)


def _rows(found: Suggestions, chosen: Sequence[Rule]) -> Iterator[SuggestRow]:
    more = f"{found.allowed:,} of {counted(found.succeeded, 'successful call')} need no rule"
    if not found.suggestions:
        more = f"no suggestions ({more}); press w to choose other calls"
    yield RowHeading("Rules", more)
    for each in found.suggestions:
        yield ProposalRow(each, each.rule in chosen)
    if found.left_out:
        yield RowHeading("")
        yield RowHeading("Left out", "no rule is suggested for these")
        yield from found.left_out


def _stops(row: SuggestRow) -> bool:
    return not isinstance(row, RowHeading)


def _key(row: SuggestRow) -> object:
    return row.suggestion.rule if isinstance(row, ProposalRow) else row


Find = Callable[[str], Summary | None]
"""A function that returns the session with this id; None if there is none."""
_NAME = 11


def draw_suggestion(found: Suggestion, find: Find, look: Look) -> list[Line]:
    """Return lines that show a suggested rule with its evidence and examples.

    `find`: returns the session of an example, by id.
    """
    rule = found.rule
    name = Piece(f"  {tools_words(rule)}", look[Role.TEXT] + BOLD)
    lines = [*wrap((*decision_pieces(rule.decision, look), name), look.width)]
    if conditions := condition_words(rule):
        lines += _named("when", conditions, look)
    lines += _named("priority", f"{rule.priority:g}  ({rank(rule)})", look)
    seen = f"{counted(found.calls, 'call')} in {counted(found.sessions, 'session')}"
    lines += _named("evidence", seen, look)
    if found.opens:
        lines += _named(
            "also allows", visible_line(found.opens[: LONG * 4]), look, role=Role.WARNING
        )
    return [*lines, BLANK, *_examples(found.examples, find, look)]


def draw_left_out(found: LeftOut, find: Find, look: Look) -> list[Line]:
    """Return lines that show why no rule is suggested for some calls, with examples.

    `find`: returns the session of an example, by id.
    """
    first = (Piece(f"{look.glyphs.warning} {command_line(found.what[:LONG])}", look[Role.WARNING]),)
    lines = [*wrap(first, look.width)]
    lines += _named("left out", visible_line(found.why[: LONG * 4]), look)
    lines += _named("evidence", counted(found.calls, "call"), look)
    return [*lines, BLANK, *_examples(found.examples, find, look)]


def _examples(examples: Sequence[Reference], find: Find, look: Look) -> Iterator[Line]:
    yield Line((Piece("Examples", look[Role.HEADING]),))
    for each in examples:
        yield Line(cut(call_row(each, find(each.session), look), look))


def _named(name: str, value: str, look: Look, *, role: Role = Role.TEXT) -> Iterator[Line]:
    front = (Piece(f"{name:<{_NAME}} ", look[Role.MUTED]),)
    rest = (Piece(" " * (_NAME + 1), look[Role.MUTED]),)
    lines = wrap((Piece(value, look[role]),), max(1, look.width - _NAME - 1))
    yield from prefixed(lines, front, rest)
