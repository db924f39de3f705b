"""A form for a tool call, and what a draft policy decides about it while the user types.

The form has the tool's name, and its arguments as JSON.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget

from gemtui.jsonout import indented
from gemtui.policy.edit.document import Document
from gemtui.policy.engine.decide import Explanation
from gemtui.policy.examples import Example, try_examples, with_example
from gemtui.policy.model.mcp_names import cli_name
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, RecordedCall
from gemtui.policy.model.tool_catalog import TOOLS, tool
from gemtui.policy.suggest.replay import POWERSHELL
from gemtui.text import clean, clean_line, size
from gemtui.ui.draw.lines import Line, Piece
from gemtui.ui.draw.theme import Look, Role
from gemtui.ui.kit.clean_widgets import Input, Label, Option, OptionList, Static
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.screens import DIALOG
from gemtui.ui.kit.text_area import TextArea
from gemtui.ui.kit.text_view import LineView
from gemtui.ui.rules.draw import draw_explanation
from gemtui.ui.simulator.call_scan import CallHistory
from gemtui.ui.simulator.simulation import Simulation, SimulatorScreen, rule_could_allow

MOST_SHOWN = 20_000
"""The most characters of arguments to show; longer ones are cut and read-only."""
MOST_OFFERED = 8


class CallForm(Vertical):
    """A form with a tool call: the tool's name, and its arguments as JSON.

    `CallChanged` is posted whenever `call` or `problem` may have changed. A recorded call that the
    user doesn't edit is returned exactly as recorded, even if it is not shown completely. `others`:
    names of tools to offer in addition to Gemini CLI's own.
    """

    DEFAULT_CSS = """
    CallForm {
        height: auto;
        & .row { height: 1; }
        & .row Label { width: 6; color: $text-muted; }
        & .row Input { width: 1fr; background: $panel; }
        & OptionList { display: none; height: auto; background: $panel; margin-left: 6; }
        &.-offering OptionList { display: block; }
        & TextArea { height: auto; min-height: 3; max-height: 10; background: $panel; padding: 0; }
        & #args-note { height: auto; max-height: 3; color: $text-muted; }
        &.-problem #args-note { color: $text-error; }
    }
    """

    class CallChanged(Message):
        """Posted when the form's call has changed, or the form contains no valid call."""

    def __init__(self, *, others: Iterable[str] = ()) -> None:
        super().__init__()
        self._others = tuple(others)
        self._template = ""
        self._taken: tuple[Call, str, str] | None = None
        self.problem = ""
        """Why the form contains no valid call; "" if it contains one."""

    def compose(self) -> ComposeResult:
        with Horizontal(classes="row"):
            yield Label("Tool")
            yield Input(id="tool", placeholder="tool name, such as mcp_server_tool")
        yield OptionList(id="tools")
        yield TextArea(id="args", longest=MOST_SHOWN)
        yield Static(id="args-note")

    def on_mount(self) -> None:
        """Fill in the shell tool's name, unless a call has already been filled in."""
        if not self._tool.value:
            self._tool.value = "run_shell_command"
            self._begin_arguments()

    @property
    def _tool(self) -> Input:
        return self.query_one("#tool", Input)

    @property
    def _args(self) -> TextArea:
        return self.query_one("#args", TextArea)

    @property
    def _offer(self) -> OptionList:
        return self.query_one("#tools", OptionList)

    # --- text ----------------------------------------------------------------------------------

    @property
    def call(self) -> Call | None:
        """The call in the form; None if it is not valid."""
        if self._taken is not None and self._taken[1:] == (self._tool.value, self._args.text):
            return self._taken[0]
        name = self._tool.value.strip()
        args = _read(self._args.text)
        if isinstance(args, str) or not name:
            return None
        if self._taken is not None:
            return replace(self._taken[0], args=args)
        return Call(tool=name, args=args)

    @property
    def is_blank(self) -> bool:
        """Whether all of the tool's required arguments are still empty."""
        call = self.call
        known = None if call is None else tool(call.tool)
        if call is None or known is None or not known.required:
            return False
        values = [call.args.get(name, "") for name in known.required]
        return all(isinstance(value, str) and not value.strip() for value in values)

    def fill(self, call: Call) -> None:
        """Fill the form with a call.

        If the call has no arguments, the tool's required ones are filled in with empty values.
        """
        name = clean_line(call.tool)[:200]
        if not call.args:
            self._tool.value = name
            self._begin_arguments()
            return
        text = indented(dict(call.args))
        large = len(text) > MOST_SHOWN
        shown = text[:MOST_SHOWN] if large else text
        self._args.read_only = large
        self._template = ""
        self._tool.value, self._args.text = name, shown
        self._taken = call, name, shown
        self._check()

    def focus_args(self) -> None:
        """Focus the arguments, with the cursor inside the first empty string."""
        area = self._args
        area.focus()
        place = area.text.find('""')
        if place >= 0 and not area.read_only:
            line = area.text.count("\n", 0, place)
            area.move_cursor((line, place - area.text.rfind("\n", 0, place)))

    @on(TextArea.Changed)
    def _written(self) -> None:
        self._check()

    @on(Input.Changed)
    def _named(self, event: Input.Changed) -> None:
        event.stop()
        self._begin_arguments()
        self._offer_names(event.value.strip())
        self._check()

    def _begin_arguments(self) -> None:
        """Fill in the tool's required arguments, unless the user has typed arguments."""
        name = self._tool.value
        if self._taken is not None and name != self._taken[1]:
            self._let_go()
        template = _template(name.strip())
        if self._args.text in ("", self._template) and self._args.text != template:
            self._args.text = self._template = template

    def _let_go(self) -> None:
        """Forget the recorded call, because it is being edited.

        Its arguments are cleared if the form doesn't show them completely.
        """
        self._taken = None
        if self._args.read_only:
            self._args.read_only = False
            self._args.text = ""

    def _check(self) -> None:
        """Show why the form is invalid or else what other arguments the tool has."""
        if self._args.read_only:
            self.problem = ""
            note = f"{size(len(self._args.text))} of a longer call (the decision uses all of it)"
        else:
            args = _read(self._args.text)
            self.problem = args if isinstance(args, str) else ""
            if not self._tool.value.strip():
                self.problem = "Enter a tool name."
            note = self.problem or _more(self._tool.value.strip(), self._args.text)
        self.set_class(bool(self.problem), "-problem")
        self.query_one("#args-note", Static).update(clean(note))
        self.post_message(self.CallChanged())

    # --- completions ---------------------------------------------------------------------------

    def _offer_names(self, typed: str) -> None:
        names = dict.fromkeys((*(each.name for each in TOOLS), *self._others))
        wanted = typed.lower()
        found = [name for name in names if wanted in name.lower()]
        found.sort(key=lambda name: not name.lower().startswith(wanted))
        offer = self._offer
        offer.clear_options()
        offer.add_options(Option(clean_line(name)) for name in found[:MOST_OFFERED])
        offer.highlighted = 0 if found else None
        exact = typed in names
        self.set_class(bool(found) and not exact and self._tool.has_focus, "-offering")

    @property
    def offering(self) -> bool:
        """Whether the list of tool names is open."""
        return self.has_class("-offering")

    def close_offer(self) -> None:
        self.remove_class("-offering")

    def on_descendant_blur(self, event: events.DescendantBlur) -> None:
        if event.widget is self._tool and self.screen.focused is not self._offer:
            self.close_offer()

    def key_down(self) -> None:
        """Move to the next tool name; open the list of names if it is closed."""
        if self._tool.has_focus:
            if self.offering:
                self._offer.action_cursor_down()
            else:
                self._offer_names("")
                self.add_class("-offering")

    def key_up(self) -> None:
        if self._tool.has_focus and self.offering:
            self._offer.action_cursor_up()

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        if self.offering:
            self._take()
        else:
            self.focus_args()

    @on(OptionList.OptionSelected)
    def _take(self) -> None:
        at = self._offer.highlighted
        self.close_offer()
        if at is not None:
            self._tool.value = str(self._offer.get_option_at_index(at).prompt)
            self._begin_arguments()
        self.focus_args()


def _read(text: str) -> dict[str, object] | str:
    """Return the arguments parsed from JSON, or a line saying why they are invalid."""
    try:
        value = json.loads(text or "{}", strict=False)  # a typed line break is part of a string
    except json.JSONDecodeError as error:
        return f"line {error.lineno}, column {error.colno}: {clean_line(error.msg)}"
    except RecursionError:
        return "nested too deeply"
    return value if isinstance(value, dict) else "the arguments must be an object: {…}"


def _template(name: str) -> str:
    known = tool(name)
    required = () if known is None else known.required
    return indented(dict.fromkeys(required, "")) if required else "{}"


def _more(name: str, text: str) -> str:
    """Return a note with the tool's other arguments, or saying that it is unknown.

    `name`: the tool's name. `text`: the arguments in the form.
    """
    known = tool(name)
    if known is None:
        own = name.startswith("mcp_")
        return "" if own else "Not a built-in tool of Gemini CLI."
    rest = [each for each in known.arguments if f'"{each}"' not in text]
    return f"also accepts {', '.join(rest)}" if rest else ""


def _with_example(document: Document, call: Call, mode: ApprovalMode) -> tuple[Example, Document]:
    """Return the call as an example, and the document with this example added.

    The example expects the decision of the document's own rules. Blocking: call this on a
    background thread.
    """
    tool = call.own if call.server else call.tool  # an agent's own name tells the server
    asked = Example(tool=tool, args=call.args, mode=mode, agent=call.agent)
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

    def show_text(self, words: str) -> None:
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

    def __init__(
        self, simulation: Simulation, history: CallHistory, *, call: Call | None = None
    ) -> None:
        super().__init__(simulation)
        self._history, self._begin_with = history, call
        self._recorded: RecordedCall | None = None
        self._resting: Timer | None = None

    def body(self) -> Iterable[Widget]:
        others = [
            cli_name(each.server, each.name) for each in self.simulation.draft.setup.mcp_tools
        ]
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

    @on(CallForm.CallChanged)
    def _written(self) -> None:
        if self._resting is not None:
            self._resting.stop()
        self._resting = self.set_timer(REST, self.situation_changed)

    def situation_changed(self) -> None:
        """Decide the call in the form, and show the decision."""
        call = self.form.call
        self.workers.cancel_group(self, "answer")  # it would decide an earlier call
        if call is None:
            self.show_status()
            self.answer.show_text("The arguments are not valid JSON yet.")
            self.refresh_bindings()
        elif self.form.is_blank:
            self.show_status()
            self.answer.show_text("Fill in the arguments first, such as a command.")
            self.refresh_bindings()
        elif self._is_powershell(call):
            self.show_status()
            self.answer.show_text(f"Not checked: {POWERSHELL}.")
            self.refresh_bindings()
        else:
            self._decide(call)

    def _is_powershell(self, call: Call) -> bool:
        """Return whether a call is a recorded one whose command was PowerShell's."""
        recorded = self._recorded
        return recorded is not None and recorded.is_powershell and recorded.call == call

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
            self._recorded = recorded
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
