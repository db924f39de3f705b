"""A form for a tool call: the tool's name, and its arguments as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message

from gemtui.jsonout import indented
from gemtui.policy.model.rules import Call
from gemtui.policy.model.tool_catalog import TOOLS, tool
from gemtui.text import Clean, clean, clean_line, size
from gemtui.ui.draw.lines import own
from gemtui.ui.kit.clean_text_area import TextArea
from gemtui.ui.kit.clean_widgets import Input, Label, Option, OptionList, Static

MOST_SHOWN = 20_000
"""The most characters of arguments to show; longer ones are cut and read-only."""
MOST_OFFERED = 8


class CallForm(Vertical):
    """A form with a tool call: the tool's name, and its arguments as JSON.

    `Changed` is posted whenever `call` or `problem` may have changed. A recorded call that the user
    doesn't edit is returned exactly as recorded, even if it is not shown completely. `others`:
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

    class Changed(Message):
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
            yield Label(own("Tool"))
            yield Input(id="tool", placeholder=own("tool name, such as mcp_server_tool"))
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
        return None if isinstance(args, str) or not name else Call(tool=name, args=args)

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
        self.post_message(self.Changed())

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
        value = json.loads(text or "{}")
    except json.JSONDecodeError as error:
        return f"line {error.lineno}, column {error.colno}: {clean_line(error.msg)}"
    except RecursionError:
        return "nested too deeply"
    return value if isinstance(value, dict) else "the arguments must be an object: {…}"


def _template(name: str) -> str:
    known = tool(name)
    required = () if known is None else known.required
    return indented(dict.fromkeys(required, "")) if required else "{}"


def _more(name: str, text: str) -> Clean:
    """Return a note with the tool's other arguments, or saying that it is unknown.

    `name`: the tool's name. `text`: the arguments in the form.
    """
    known = tool(name)
    if known is None:
        own = name.startswith("mcp_")
        return Clean("" if own else "Not a built-in tool of Gemini CLI.")
    rest = [each for each in known.arguments if f'"{each}"' not in text]
    return Clean(f"also accepts {', '.join(rest)}" if rest else "")
