"""The base class of the simulator's screens."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.content import Content
from textual.widget import Widget

from gemtui.policy.edit.store import Origin
from gemtui.policy.engine.decide import Explanation
from gemtui.policy.model.rules import Call, Decision
from gemtui.sessions.catalog.summary import Summary
from gemtui.text import Clean, clean_line, counted, short_path
from gemtui.ui.kit.bars import BarLine, FooterLine, StatusLine
from gemtui.ui.kit.messages import SessionRequested
from gemtui.ui.kit.screens import DialogGuardScreen
from gemtui.ui.rules.draw import call_subject
from gemtui.ui.simulator.simulation import Simulation, Taken

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase
    from gemtui.ui.rules.form import RuleForm


def rule_could_allow(found: Explanation) -> bool:
    """Return whether a call isn't allowed now, and a rule could change that."""
    allowed = found.decision is Decision.ALLOW and found.offered
    return not allowed and found.tool_refuses is None


async def form_allowing(
    app: AppBase, simulation: Simulation, call: Call, project: Path | None = None
) -> RuleForm | None:
    """Return a form with a rule that would allow a call.

    The form shows the call and any doubts about the rule. `project`: the folder in which the call
    was made; None means the simulation's. If no rule can be made, the reason is shown to the user
    and None is returned.
    """
    from gemtui.ui.rules.form import RuleForm

    with app.reporting():
        rule, doubt = await asyncio.to_thread(simulation.allowing_rule, call, project)
        what = f"{call.tool[:60]}  {call_subject(call)[:200]}".rstrip()
        allows = clean_line(f"This rule would allow  {what}{f', but {doubt}' if doubt else ''}")
        about = Clean(f"{allows}\n{clean_line(f'It will be added to {_policy(simulation)}.')}")
        folder = project or simulation.project
        return RuleForm(simulation.document, rule, project=folder, about=about)
    return None


def _policy(simulation: Simulation) -> str:
    """Return words for the policy that a rule would be added to."""
    opened = simulation.draft.opened
    if opened is None:
        return "a new policy"
    if opened.file.origin is Origin.OURS:
        return f"the policy {opened.file.name}"
    return f"{short_path(opened.file.path)}, which applies to every session"


class SimulatorScreen(DialogGuardScreen[Taken]):
    """A screen on top of the policy pane that returns the rules to add to the draft.

    `HEADING`: the screen's title.
    """

    DEFAULT_CSS = """
    SimulatorScreen {
        & #heading { text-style: bold; }
        & .gap { height: 1; }
    }
    """
    HEADING: ClassVar[str] = ""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__()
        self.simulation = simulation

    def read_session(self, session: Summary | None, call: str) -> None:
        """Open a session with the cursor on a tool call.

        `session`: None if the session no longer exists; a message then says so. `call`: the call's
        id.
        """
        if session is None:
            self.gemtui.show_message("This session no longer exists.", problem=True)
        else:
            self.post_message(SessionRequested(session, call))

    def compose(self) -> ComposeResult:
        yield BarLine(id="header")
        yield BarLine(id="heading")
        yield from self.body()
        yield StatusLine()
        yield FooterLine()

    def body(self) -> Iterable[Widget]:
        """Yield the widgets between the heading and the status line."""
        raise NotImplementedError

    def situation_changed(self) -> None:
        """Compute the decisions again, because the mode, situation or rules have changed."""
        raise NotImplementedError

    def on_mount(self) -> None:
        self.show_context()

    def on_screen_resume(self) -> None:
        self.show_context()

    def about(self) -> Clean:
        """Return the text to show beside the heading."""
        return Clean("")

    def show_context(self) -> None:
        """Show in the header which policy is simulated, in which mode and which situation."""
        simulation = self.simulation
        name = clean_line(f"{simulation.draft.name}{'*' if simulation.draft.changed or simulation.taken else ''}")
        self.header.show_parts(self.gemtui.tabs("app.policies"), [Content(name)])
        somebody = "interactive" if simulation.interactive else "headless"
        words = [Content.styled(f"mode {simulation.mode}, {somebody}", "not bold")]
        if simulation.taken:
            taken = f"{counted(len(simulation.taken), 'new rule')}, not saved"
            words.append(Content.styled(taken, "not bold $text-warning"))
        about = Content.styled(self.about(), "not bold")
        self.query_one("#heading", BarLine).show_parts([Content(self.HEADING), about], words)

    def _turn(self) -> None:
        self.show_context()
        self.situation_changed()

    def action_mode(self) -> None:
        self.simulation.next_mode()
        self._turn()

    def action_interactive(self) -> None:
        self.simulation.interactive = not self.simulation.interactive
        self._turn()

    def action_close(self) -> None:
        self.dismiss(self.simulation.taken)

    async def look_into(self, screen: SimulatorScreen) -> None:
        """Show a different screen on top of this one, and wait until it is closed.

        If rules were added there, the decisions on this screen are computed again.
        """
        before = self.simulation.taken
        await self.app.push_screen_wait(screen)
        self.show_context()
        if self.simulation.taken != before:
            self.situation_changed()

    async def allow(self, call: Call, project: Path | None = None) -> None:
        """Show a form with a rule that would allow a call, and add the rule if confirmed.

        `project`: the folder in which the call was made.
        """
        form = await form_allowing(self.gemtui, self.simulation, call, project)
        if form is None:
            return
        made = await self.app.push_screen_wait(form)
        if made is not None:
            self.simulation.add_rule(made)
            self._turn()
