"""Show what a draft policy decides about a tool call while the user types it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from textual import on, work
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.timer import Timer
from textual.widget import Widget

from gemtui.policy.edit.document import Document
from gemtui.policy.engine.decide import Explanation
from gemtui.policy.examples import Example, try_examples, with_example
from gemtui.policy.model.rules import ApprovalMode, Call, Decision
from gemtui.text import Clean
from gemtui.ui.draw.lines import Line, Piece
from gemtui.ui.draw.theme import Look, Role
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.screens import DIALOG
from gemtui.ui.kit.text_view import LineView
from gemtui.ui.rules.draw import draw_explanation
from gemtui.ui.simulator.base import SimulatorScreen, rule_could_allow
from gemtui.ui.simulator.call_form import CallForm
from gemtui.ui.simulator.call_scan import CallHistory
from gemtui.ui.simulator.simulation import Simulation


def _with_example(document: Document, call: Call, mode: ApprovalMode) -> tuple[Example, Document]:
    """Return the call as an example, and the document with this example added.

    The example expects the decision of the document's own rules. Blocking: call this on a
    background thread.
    """
    asked = Example(tool=call.tool, args=call.args, mode=mode)
    (tried,) = try_examples([asked], document.policy)
    example = replace(asked, expected=tried.decision or Decision.DENY)
    made = Document.parse(with_example(document.text, example), source=document.source)
    made.check()
    return example, made


class PolicyAnswer(LineView):
    """Shows the explanation of a decision, or a line of text in its place."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(what="the explanation", id=id)
        self.shown: Explanation | None = None

    def answer(self, found: Explanation) -> None:
        """Show an explanation; keep the scroll position if it is about the same call."""
        fresh = self.shown is None or self.shown.call != found.call
        self.shown = found
        self.show(lambda look: draw_explanation(found, look), fresh=fresh)

    def show_text(self, words: Clean) -> None:
        """Show a line of text in place of an explanation."""
        self.shown = None

        def draw(look: Look) -> list[Line]:
            return [Line((Piece(words, look[Role.MUTED]),))]

        self.show(draw)


REST = 0.12
"""How many seconds the form must be unchanged before the decision is computed."""


class TryScreen(SimulatorScreen):
    """A form for a call, with the decision about it beside or below the form."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.TRY)
    AUTO_FOCUS = "#args"
    HEADING = "Try a call"
    DEFAULT_CSS = """
    TryScreen {
        & #try-panes { layout: horizontal; height: 1fr; }
        & #try-call { width: 46; padding: 0 1; }
        & #answer { width: 1fr; height: 1fr; padding: 0 1; }
        &.-extra #try-call { width: 60; }
        &.-narrow #try-panes { layout: vertical; }
        &.-narrow #try-call { width: 1fr; height: auto; max-height: 60%; margin-bottom: 1; }
        &.-narrow #args { max-height: 6; }
    }
    """

    def __init__(self, simulation: Simulation, history: CallHistory, *, call: Call | None = None) -> None:
        super().__init__(simulation)
        self._history, self._begin_with = history, call
        self._resting: Timer | None = None

    def body(self) -> Iterable[Widget]:
        others = [f"mcp_{each.server}_{each.name}" for each in self.simulation.draft.setup.mcp_tools]
        form = Vertical(CallForm(others=others), id="try-call")
        yield Horizontal(form, PolicyAnswer(id="answer"), id="try-panes")

    @property
    def form(self) -> CallForm:
        return self.query_one(CallForm)

    @property
    def answer(self) -> PolicyAnswer:
        return self.query_one(PolicyAnswer)

    def on_mount(self) -> None:
        """Fill the form with the initial call, if there is one."""
        super().on_mount()
        if self._begin_with is not None:
            self.form.fill(self._begin_with)
        self.form.focus_args()

    # --- deciding ------------------------------------------------------------------------------

    @on(CallForm.Changed)
    def _written(self) -> None:
        if self._resting is not None:
            self._resting.stop()
        self._resting = self.set_timer(REST, self.situation_changed)

    def situation_changed(self) -> None:
        """Decide the call in the form, and show the decision."""
        call = self.form.call
        if call is None:
            self.answer.show_text(Clean("The arguments are not valid JSON yet."))
            self.refresh_bindings()
        else:
            self._decide(call)

    @work(exclusive=True, group="answer")
    async def _decide(self, call: Call) -> None:
        slow = self.set_timer(0.5, lambda: self.show_status("deciding"))
        try:
            found = await asyncio.to_thread(lambda: self.simulation.engine().explain(call))
        finally:
            slow.stop()
        if self.is_open:
            self.show_status()
            self.answer.answer(found)
            self.refresh_bindings()

    # --- keys ----------------------------------------------------------------------------------

    def can(self, action: str) -> bool:
        """Return False for "allow" unless a rule could allow the call."""
        shown = self.answer.shown if self.is_mounted else None
        return action != "allow" or (shown is not None and rule_could_allow(shown))

    @work(exclusive=True, group=DIALOG)
    async def action_recorded(self) -> None:
        from gemtui.ui.simulator.calls import PickCallScreen

        recorded = await self.app.push_screen_wait(PickCallScreen(self._history))
        if recorded is not None:
            self.form.fill(recorded.call)
            self.form.focus_args()

    @work(exclusive=True, group=DIALOG)
    async def action_allow(self) -> None:
        if (call := self.form.call) is not None:
            await self.allow(call)

    @work(exclusive=True, group=DIALOG)
    async def action_keep(self) -> None:
        """Add the call to the draft as an example, which is tested from then on.

        The example expects what the draft's own rules decide in a headless run.
        """
        if (call := self.form.call) is None:
            self.gemtui.show_message("The arguments are not valid JSON yet.")
            return
        draft, mode = self.simulation.draft, self.simulation.mode
        seen = draft.document
        if seen.locked:
            self.gemtui.show_message(seen.locked, problem=True)
            return
        kept, document = await asyncio.to_thread(_with_example, seen, call, mode)
        if draft.document is seen:
            draft.change(document, "add an example")
            words = f"Added as an example, not saved yet: {kept.text.partition(': ')[2]}"
            self.gemtui.show_message(words)
            self.show_context()

    def action_close(self) -> None:
        """Close the list of tool names if it is open; otherwise close the screen."""
        if self.form.offering:
            self.form.close_offer()
        else:
            super().action_close()
