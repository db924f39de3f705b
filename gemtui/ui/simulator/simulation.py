"""The simulated policy, and the base class of the screens that simulate it.

The simulated policy is the draft with the rules that the user has accepted, in a certain mode and
situation. A screen returns the accepted rules, which the policy pane adds to the draft in a single
step. The screens themselves change the draft only to save an example in it.
"""

from __future__ import annotations

import asyncio
import re
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.content import Content
from textual.widget import Widget

from gemtui.policy.edit.document import Document
from gemtui.policy.edit.store import Origin
from gemtui.policy.engine.decide import Engine, Explanation
from gemtui.policy.file.policy import Policy
from gemtui.policy.match.path_patterns import files_pattern
from gemtui.policy.model.rules import Call, CallStatus, Decision, RecordedCall, Rule
from gemtui.policy.suggest.suggest import suggest
from gemtui.sessions.catalog.summary import Summary
from gemtui.text import clean_line, counted, short_path
from gemtui.ui.kit.bars import BarLine, FooterLine, StatusLine
from gemtui.ui.kit.messages import SessionRequested
from gemtui.ui.kit.screens import FullScreen
from gemtui.ui.rules.draft import Draft, next_mode
from gemtui.ui.rules.draw import call_subject

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase
    from gemtui.ui.rules.form import RuleForm


Taken = tuple[Rule, ...]
"""The rules that the user accepted on a screen; () if there are none."""
_HIGHEST = 999
_NOT_AS_IT_IS = re.compile(r'["\\\x00-\x1f\x7f]')
"""Matches characters that JSON escapes; patterns are matched against JSON text."""


class Simulation:
    """A draft policy with added rules, in a certain approval mode and situation.

    `taken`: the rules that will be added to the draft. `project`: the folder assumed for calls
    whose folder is unknown. The policy engine is created on first use, which may take a while, so
    call `engine` on a background thread.
    """

    def __init__(self, draft: Draft, project: Path) -> None:
        self.draft, self.project = draft, project
        self.mode = draft.mode
        self.interactive = draft.asks
        self.taken: tuple[Rule, ...] = ()
        self._made: tuple[object, Engine] | None = None

    @property
    def policy(self) -> Policy:
        """All rules that apply to a run, with the added rules after the draft's own."""
        return self._with(*self.taken)

    def _with(self, *rules: Rule) -> Policy:
        around = self.draft.around
        return around.before + self._document(*rules).policy + around.after

    @property
    def document(self) -> Document:
        """The draft's document with the added rules."""
        return self._document(*self.taken)

    def _document(self, *rules: Rule) -> Document:
        document = self.draft.document
        for rule in rules:
            document = document.add(rule)
        return document

    def engine(self) -> Engine:
        """Return the policy engine for the current mode and situation."""
        key = (self.draft.revision, self.taken, self.mode, self.interactive)
        if self._made is None or self._made[0] != key:
            self._made = key, self._engine(self.policy)
        return self._made[1]

    def _engine(self, policy: Policy) -> Engine:
        return Engine(policy, mode=self.mode, interactive=self.interactive, setup=self.draft.setup)

    def next_mode(self) -> None:
        """Select the next approval mode."""
        self.mode = next_mode(self.mode)

    def add_rule(self, rule: Rule) -> None:
        """Add a rule to the simulation; the policy pane adds it to the draft later."""
        self.taken = (*self.taken, rule)

    # --- rules that allow a call ---------------------------------------------------------------

    def allowing_rule(self, call: Call, project: Path | None = None) -> tuple[Rule, str]:
        """Return a rule that allows `call`, and any doubts about it as words (or "").

        The rule is the one that would be suggested if the call had succeeded or, if there is none,
        one that is as narrow as possible. `project`: the folder in which the call was made; None
        means the simulation's. This takes as long as deciding a few calls, so call it on a
        background thread. Raises PolicyError if the file can't be edited.
        """
        place = project or self.project
        done = RecordedCall(call=call, session="", id="", ended=CallStatus.SUCCEEDED, project=place)
        setup, mode = self.draft.setup, self.mode
        found = suggest((done,), self.policy, mode=mode, interactive=self.interactive, setup=setup)
        doubt = " ".join(each.why for each in found.left_out)
        proposed = [each.rule for each in found.suggestions]
        rule = proposed[0] if proposed else narrow(call)
        return self._strong_enough(rule, call), doubt

    def _strong_enough(self, rule: Rule, call: Call) -> Rule:
        """Return the rule with a priority high enough to take effect for the call.

        Only rules of the same tier can be outranked in this way.
        """
        for _ in range(3):
            found = self._engine(self._with(*self.taken, rule)).outcome(call)
            over = found.rule
            if over is None or over.decision is Decision.ALLOW or over.tier is not rule.tier:
                break
            rule = replace(rule, priority=min(_HIGHEST, int(over.priority) + 1))
        return rule


def narrow(call: Call) -> Rule:
    """Return the narrowest rule that allows a call without a hand-written pattern.

    The rule allows a command by its prefix, a file by its path, or otherwise the whole tool.
    """
    rule = Rule(tools=(call.tool,), decision=Decision.ALLOW, priority=100)
    command, file = call.args.get("command"), call.args.get("file_path")
    if call.tool == "run_shell_command" and isinstance(command, str) and command.strip():
        return replace(rule, command_prefixes=(command.strip(),))
    if isinstance(file, str) and not _NOT_AS_IT_IS.search(file):
        return replace(rule, args_pattern=files_pattern((file.removeprefix("./"),), ()))
    return rule


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
        about = f"{allows}\n{clean_line(f'It will be added to {_policy(simulation)}.')}"
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


class SimulatorScreen(FullScreen[Taken]):
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

    @abstractmethod
    def body(self) -> Iterable[Widget]:
        """Yield the widgets between the heading and the status line."""

    @abstractmethod
    def situation_changed(self) -> None:
        """Compute the decisions again, because the mode, situation or rules have changed."""

    def on_mount(self) -> None:
        self.show_context()

    def on_screen_resume(self) -> None:
        self.show_context()

    def about(self) -> str:
        """Return the text to show beside the heading."""
        return ""

    def show_context(self) -> None:
        """Show in the header which policy is simulated, in which mode and which situation."""
        simulation = self.simulation
        name = clean_line(
            f"{simulation.draft.name}{'*' if simulation.draft.changed or simulation.taken else ''}"
        )
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
