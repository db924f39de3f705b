"""Screens for recorded calls: choose one, list the calls behind a count, show one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widget import Widget

from gemtui.jsonout import indented
from gemtui.policy.engine.decide import Explanation
from gemtui.policy.model.rules import RecordedCall, Reference
from gemtui.text import clean_line, counted, visible
from gemtui.ui.draw.lines import BLANK, Line, Piece, flat, lay_out
from gemtui.ui.draw.theme import Look, Role
from gemtui.ui.kit import bars
from gemtui.ui.kit.filtering import FiltersRows, SearchedRows
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.row_list import RowList
from gemtui.ui.kit.screens import DIALOG
from gemtui.ui.kit.text_view import LineView
from gemtui.ui.rules.draw import call_row, call_search_text, draw_explanation
from gemtui.ui.simulator.call_scan import CallHistory, CallScanner, CallSink, ScanProgress
from gemtui.ui.simulator.simulation import Simulation, SimulatorScreen, rule_could_allow

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase

MOST = 50_000
"""The most calls to choose from; these are the newest ones."""
_ARGUMENTS = 20_000
"""The most characters of a call's arguments to show."""
GONE = "The session of this call no longer exists."


def call_list(history: CallHistory, *, empty: str) -> SearchedRows[Reference]:
    """Return a searchable list of recorded calls.

    `empty`: the text to show if there are none.
    """
    return SearchedRows[Reference](
        lambda call, look: call_row(call, history.session(call.session), look),
        lambda call: call_search_text(call, history.session(call.session)),
        empty=empty,
    )


def progress_text(progress: ScanProgress) -> str:
    """Return words for the status line on how many calls have been read."""
    calls, of = counted(progress.calls, "call"), counted(progress.total, "session")
    if progress.stopped:
        return f"stopped: {calls} in {progress.done:,} of {progress.total:,} sessions"
    if progress.ended and not progress.calls:
        return f"No recorded calls in {of}. Press w to choose other sessions."
    if progress.ended:
        unread = len(progress.problems)
        return f"{calls} in {of}" + (f", {unread:,} not fully readable" if unread else "")
    return f"reading {progress.done:,} of {of}, {calls}"


def found_text(found: SearchedRows[Reference]) -> str:
    """Return words on how many calls match the search; "" if there is no search."""
    shown = len(found.rows.items)
    return f"{shown:,} of {counted(found.total, 'call')}" if found.query_text else ""


async def _recorded(
    app: AppBase, history: CallHistory, reference: Reference | None
) -> RecordedCall | None:
    """Return a call including its arguments, which the reference doesn't contain.

    If the call's session is gone, a message says so and None is returned. None is also returned if
    `reference` is None.
    """
    if reference is None:
        return None
    recorded = await asyncio.to_thread(history.find, reference)
    if recorded is None:
        app.show_message(GONE, problem=True)
    return recorded


class PickCallScreen(FiltersRows, CallScanner[RecordedCall, Sequence[Reference]]):
    """A screen for choosing a recorded call; returns the call, or None if cancelled."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.CALLS, Where.PICK)
    AUTO_FOCUS = "RowList"

    def __init__(self, history: CallHistory) -> None:
        super().__init__()
        self.history = history

    def compose(self) -> ComposeResult:
        yield bars.BarLine(id="header")
        yield call_list(self.history, empty="reading")
        yield bars.StatusLine()
        yield bars.FooterLine()

    def on_mount(self) -> None:
        """Read the project's calls or, if it has none, all calls."""
        self.read()

    def scan_again(self) -> None:
        """Clear the list, and scan the calls again because the scope has changed."""
        self.searched.show((), fresh=True)
        self.read()

    def sink(self) -> CallSink[Sequence[Reference]]:
        """Return a sink (which processes the calls) that collects the newest calls."""
        newest: list[Reference] = []

        def feed(calls: Sequence[RecordedCall]) -> None:
            newest.extend(map(Reference.to, calls[: MOST - len(newest)]))

        return CallSink(feed=feed, state=lambda _: tuple(newest))

    def show_result(self, found: Sequence[Reference]) -> None:
        """Show the calls that have been read so far."""
        self.searched.empty = "No recorded calls here. Press w to choose other sessions."
        self.searched.show(found)

    @on(SearchedRows.Searched)
    def _say(self) -> None:
        self.show_status(found_text(self.searched), progress_text(self.progress))

    def show_scope(self) -> None:
        """Show in the header which calls are being read."""
        title = [Content.styled("Choose a recorded call", "bold")]
        self.header.show_parts(title, [Content.styled(self.scope_text, "dim")])

    @on(RowList.Opened)
    @work(exclusive=True, group="find")
    async def _chosen(self) -> None:
        recorded = await _recorded(self.gemtui, self.history, self.searched.rows.chosen)
        if recorded is not None:
            self.dismiss(recorded)


class MatchingCallsScreen(FiltersRows, SimulatorScreen):
    """Lists the calls behind a count on the replay screen, or behind a suggestion.

    `references`: the calls to list. `calls`: how many calls were counted, which may be more.
    `allowed`: whether the policy already allows these calls.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.CALL, Where.CALLS)
    AUTO_FOCUS = "RowList"
    HEADING = "Calls"

    def __init__(
        self,
        simulation: Simulation,
        history: CallHistory,
        title: str,
        references: Sequence[Reference],
        *,
        calls: int,
        allowed: bool = False,
    ) -> None:
        super().__init__(simulation)
        self._allowed = allowed
        self._history, self._title = history, title
        self._references, self._calls = references, calls

    def body(self) -> Iterable[Widget]:
        """Return a searchable list of the calls."""
        yield call_list(self._history, empty="no calls")

    def on_mount(self) -> None:
        super().on_mount()
        self.searched.show(self._references, fresh=True)

    @on(SearchedRows.Searched)
    def _say(self) -> None:
        total = self.searched.total
        glyphs = self.gemtui.glyphs
        self.show_status(
            found_text(self.searched) or counted(total, "call"),
            f"recorded results: {glyphs.ok} succeeded  {glyphs.failed} failed",
            f"the first of {self._calls:,}" if self._calls > total else "",
        )

    def about(self) -> str:
        """Return what the calls have in common, to show beside the heading."""
        return self._title

    def situation_changed(self) -> None:
        """Close the screen, because only the screen below it can update the counts."""
        self.dismiss(self.simulation.taken)

    @on(RowList.Opened)
    def _opened(self) -> None:
        if (reference := self.searched.rows.chosen) is not None:
            self._explain(reference)

    @work(exclusive=True, group=DIALOG)
    async def _explain(self, reference: Reference) -> None:
        recorded = await _recorded(self.gemtui, self._history, reference)
        if recorded is not None:
            await self.look_into(CallScreen(self.simulation, self._history, recorded))

    def can(self, action: str) -> bool:
        """Return False for "allow" if the calls are already allowed."""
        return action != "allow" or not self._allowed

    @work(exclusive=True, group=DIALOG)
    async def action_allow(self) -> None:
        recorded = await _recorded(self.gemtui, self._history, self.searched.rows.chosen)
        if recorded is not None:
            await self.allow(recorded.call, recorded.project)

    def action_session(self) -> None:
        if (reference := self.searched.rows.chosen) is not None:
            self.read_session(self._history.session(reference.session), reference.id)


class CallScreen(SimulatorScreen):
    """Shows a single recorded call: the decision, its reason and the arguments."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.CALL)
    AUTO_FOCUS = "LineView"
    HEADING = "Call details"
    DEFAULT_CSS = "CallScreen LineView { height: 1fr; padding: 0 1; }"

    def __init__(
        self, simulation: Simulation, history: CallHistory, recorded: RecordedCall
    ) -> None:
        super().__init__(simulation)
        self._history, self._recorded = history, recorded
        self._found: Explanation | None = None

    def body(self) -> Iterable[Widget]:
        yield LineView(what="the explanation")

    def on_mount(self) -> None:
        super().on_mount()
        recorded = self._recorded
        session = self._history.session(recorded.session)
        title = clean_line(recorded.session if session is None else session.title)
        self.show_status(f"the call {recorded.ended}", title)
        self.situation_changed()

    @work(exclusive=True, group="answer")
    async def situation_changed(self) -> None:  # type: ignore[override]
        """Show what the simulated policy decides about the call, and why."""
        call = self._recorded.call
        found = await asyncio.to_thread(lambda: self.simulation.engine().explain(call))
        if self.is_open:
            self._found = found
            self.query_one(LineView).show(_explained(self._recorded, found))
            self.refresh_bindings()

    def can(self, action: str) -> bool:
        """Return False for "allow" unless a rule could allow the call."""
        return action != "allow" or (self._found is not None and rule_could_allow(self._found))

    @work(exclusive=True, group=DIALOG)
    async def action_allow(self) -> None:
        await self.allow(self._recorded.call, self._recorded.project)

    def action_session(self) -> None:
        recorded = self._recorded
        self.read_session(self._history.session(recorded.session), recorded.id)


def _explained(recorded: RecordedCall, found: Explanation) -> Callable[[Look], list[Line]]:
    text = visible(indented(dict(recorded.call.args)))
    cut = len(text) > _ARGUMENTS
    shown = text[:_ARGUMENTS].split("\n")

    def draw(look: Look) -> list[Line]:
        name = Piece(flat(f"Arguments of {recorded.call.tool[:200]}"), look[Role.HEADING])
        drawn = [Line((name,))]
        for line in shown:
            drawn += lay_out((Piece(line, look[Role.CODE]),), look, whole=True)
        if cut:
            words = f"{look.glyphs.ellipsis} cut off; {len(text):,} characters in all"
            drawn.append(Line((Piece(words, look[Role.MUTED]),)))
        return draw_explanation(found, look, (*drawn, BLANK))

    return draw
