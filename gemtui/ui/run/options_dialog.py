"""The dialog for the next run's options: folders, mode, tools and limits."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from textual import events, on, work
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget

from gemtui.agent.options import (
    AgentOptions,
    OptionKind,
    RunOption,
    dollars,
    option_value,
    parse_seconds,
    run_options,
    seconds_text,
    with_values,
)
from gemtui.agents import WORDS, Agent
from gemtui.errors import OptionError
from gemtui.paths import current_folder, typed_path
from gemtui.policy.edit.store import PolicyFile
from gemtui.policy.model.tool_catalog import TOOLS
from gemtui.runs.before_run import before_run_report
from gemtui.system import Unported, why_not
from gemtui.text import clean_line, short_path, visible_line
from gemtui.ui.draw.theme import glyphs_of
from gemtui.ui.kit.clean_widgets import Dialog, Input, Select, Static, Tick, Words
from gemtui.ui.kit.dialogs import FormScreen, labelled
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.rules.form import completes, split_names, tool_hint

AS_IT_IS = ""
"""The value of a drop-down list's entry that keeps the agent's default."""
_LEFT_OUT = ("ask", "away") if why_not(Unported.ASK) else ()
_OPTIONS: Mapping[str, RunOption] = {
    option.name: option for option in run_options() if option.label and option.name not in _LEFT_OUT
}
_REMEMBER = "remember"
_HINTS = {name: each.hint for name, each in _OPTIONS.items()} | {
    _REMEMBER: "except yolo, trust and allowed tools; not used by `gemtui run`"
}


class ChosenOptions(NamedTuple):
    """The chosen options, and whether to remember them for the folder."""

    options: AgentOptions
    remember: bool


class OptionsScreen(FormScreen[ChosenOptions]):
    """A dialog that returns the chosen options, or None.

    `policies`: the policy files to choose from. `agents`: the agents to choose from. `remembers`:
    whether options are already remembered for the folder.
    """

    BINDINGS = bindings(Where.OPTIONS)
    AUTO_FOCUS = "Input"

    def __init__(
        self,
        options: AgentOptions,
        policies: Sequence[PolicyFile] = (),
        agents: Sequence[Agent] = (Agent.GEMINI,),
        *,
        remembers: bool = False,
    ) -> None:
        super().__init__()
        self._options, self._remembers = options, remembers
        self._agents = {str(agent): WORDS[agent].program for agent in agents}
        self._offered = {**_OPTIONS}
        if len(agents) == 1:
            del self._offered["agent"]
        self._texts = texts_of(options)
        self._policies = {
            AS_IT_IS: _OPTIONS["policies"].empty,
            **{str(file.path): clean_line(file.name) for file in policies},
        }
        if options.policies:
            names = ", ".join(path.stem for path in options.policies)
            self._policies.setdefault(_paths(options.policies), clean_line(names))

    def compose(self) -> ComposeResult:
        keys = "tab next   space choose   enter apply   esc close"
        with Dialog("The next run", keys, id="options"):
            with VerticalScroll(id="option-fields", can_focus=False):
                with VerticalScroll(id="told-before"):
                    yield Static(id="told-lines")
                for title, options in groupby(self._offered.values(), lambda each: each.group):
                    if title:
                        yield Static(title, classes="group")
                    for option in options:
                        yield from self._row(option.name, option.label, self._field(option))
            yield Static(id="told-summary")
            tick = Tick("these options for this folder", self._remembers, id=_REMEMBER)
            yield from self._row(_REMEMBER, "Remember", tick)
            yield Static(id="hint")
            yield from self.buttons()

    def _row(self, name: str, label: str, field: Widget) -> Iterator[Widget]:
        yield labelled(label, field)
        yield Static(id=f"{name}-problem", classes="problem")

    def _field(self, option: RunOption) -> Widget:
        name, value = option.name, option_value(self._options, option.name)
        if option.kind is OptionKind.SWITCH:
            return Tick(option.tick, value, id=name)
        if option.kind is OptionKind.CHOICE:
            choices = self._agents if name == "agent" else option.choices
            return Select(choices, value=str(value or AS_IT_IS), id=name)
        if name == "policies":
            return Select(self._policies, value=_paths(value), id=name)
        tools = option.kind is OptionKind.NAMES
        return Input(
            self._texts[name],
            placeholder=option.empty,
            id=name,
            complete=completes([tool.name for tool in TOOLS]) if tools else None,
        )

    def on_mount(self) -> None:
        self._say_needs()
        self._tell_before()

    @on(Tick.Changed)
    @on(Select.Changed, "#agent")
    def _say_needs(self) -> None:
        agent = self._agent()
        for option in self._offered.values():
            lacks = bool(option.needs) and not self._ticked(option.needs)
            self.query_one(f"#{option.name}").disabled = lacks or agent not in option.agents

    # --- what runs without asking --------------------------------------------------------------

    @on(Select.Changed, "#approval_mode")
    @on(Input.Blurred, "#cwd")
    @work(exclusive=True, group="told")
    async def _tell_before(self) -> None:
        """Show above the fields which settings would act without asking the user.

        They depend on the chosen folder and mode.
        """
        try:
            report = await asyncio.to_thread(before_run_report, self._wanted())
        except (OptionError, OSError, ValueError):  # action_take reports it
            return
        lines = [clean_line(line) for line in report.lines()]
        self.query_one("#told-before").display = bool(lines)
        self.query_one("#told-lines", Static).update(Content("\n").join(map(Content, lines)))
        summary = self.query_one("#told-summary", Static)
        summary.display = bool(lines)
        mark = glyphs_of(self.app).warning
        summary.update(clean_line(f"{mark} {report.summary() or 'settings changed'}: see above"))

    # --- hints ---------------------------------------------------------------------------------

    @on(Input.Changed)
    def _edited(self, event: Input.Changed) -> None:
        self.query_one(f"#{event.input.id}-problem").remove_class("-wrong")
        self._say_hint()

    @on(events.DescendantFocus)
    def _say_hint(self) -> None:
        field = self.focused
        name = "" if field is None else field.id or ""
        hint: Words = _HINTS.get(name, "")
        tools = name in _OPTIONS and _OPTIONS[name].kind is OptionKind.NAMES
        if tools and isinstance(field, Input) and field.value.strip():
            hint = tool_hint(field.value)
        self.query_one("#hint", Static).update(hint)

    def _say_problem(self, error: OptionError) -> None:
        """Show a problem next to the field that it is about, and focus that field."""
        name = error.option or "cwd"
        problem = self.query_one(f"#{name}-problem", Static)
        problem.update(clean_line(f"{glyphs_of(self.app).failed} {error.what}"))
        problem.add_class("-wrong")
        self.query_one(f"#{name}").focus()
        self.call_after_refresh(problem.scroll_visible, animate=False)

    # --- applying ------------------------------------------------------------------------------

    @work(exclusive=True, group="take")
    async def action_take(self) -> None:
        """Close and return the options, or show why a run isn't possible with them."""
        try:
            options = self._wanted()
            await asyncio.to_thread(options.check)
        except OptionError as error:
            self._say_problem(error)
        else:
            self.dismiss(ChosenOptions(options, self._ticked(_REMEMBER)))

    def _wanted(self) -> AgentOptions:
        agent = self._agent()
        chosen: dict[str, Any] = {"policies": self._chosen_policies()}
        for name, option in self._offered.items():
            if option.kind is OptionKind.SWITCH:
                chosen[name] = self._ticked(name)
            elif option.kind is OptionKind.CHOICE:
                chosen[name] = self._chosen(name) or None
        lacking = [name for name, option in self._offered.items() if agent not in option.agents]
        chosen |= {name: _OPTIONS[name].default for name in lacking}
        texts = {
            name: "" if name in lacking else self.query_one(f"#{name}", Input).value
            for name in self._texts
        }
        return options_from_texts(texts, with_values(self._options, chosen))

    def _chosen_policies(self) -> tuple[Path, ...]:
        chosen = self._chosen("policies")
        if chosen == _paths(self._options.policies):
            return self._options.policies
        return (Path(chosen),) if chosen else ()

    def _agent(self) -> Agent:
        chosen = self._chosen("agent") if "agent" in self._offered else self._options.agent
        return Agent(chosen)

    def _chosen(self, name: str) -> str:
        return str(self.query_one(f"#{name}", Select).value)

    def _ticked(self, name: str) -> bool:
        return self.query_one(f"#{name}", Tick).value


def _paths(policies: Sequence[Path]) -> str:
    """Return policy files' paths as one string, used as a value of a drop-down list."""
    return "\0".join(map(str, policies))


def is_typed(option: RunOption) -> bool:
    """Return whether the dialog has a text field for this option."""
    chosen = option.kind in (OptionKind.SWITCH, OptionKind.CHOICE) or option.name == "policies"
    return bool(option.label) and not chosen


def texts_of(options: AgentOptions) -> dict[str, str]:
    """Return the initial contents of each text field, by the option's name."""
    return {
        option.name: visible_line(_text(option, option_value(options, option.name)).strip())
        for option in filter(is_typed, run_options())
    }


def _text(option: RunOption, value: Any) -> str:
    if option.name == "cwd":
        return short_path(value or current_folder())
    match option.kind:
        case _ if value is None:
            return ""
        case OptionKind.NAMES:
            return ", ".join(value)
        case OptionKind.PATHS:
            return ", ".join(map(short_path, value))
        case OptionKind.SECONDS:
            return seconds_text(value)
        case OptionKind.DOLLARS:
            return f"{value:g}"
    return str(value)


def options_from_texts(texts: Mapping[str, str], base: AgentOptions) -> AgentOptions:
    """Convert the contents of the text fields to options.

    `texts`: the contents by the option's name. An unchanged field keeps its value from `base`,
    because a name may contain characters that can't be typed. Paths are relative to the run's
    folder. Raises OptionError, which names the option.
    """
    before = texts_of(base)
    changed = {name: text.strip() for name, text in texts.items() if text.strip() != before[name]}
    folder = base.cwd or current_folder()
    if "cwd" in changed:
        folder = current_folder() / typed_path(changed.pop("cwd"))
    made: dict[str, Any] = {"cwd": folder}
    for option in run_options():
        text = changed.get(option.name)
        if text is not None:
            try:
                made[option.name] = _value(option, text, folder) if text else option.default
            except OptionError as error:
                raise OptionError(str(error), option=option.name) from None
    return with_values(base, made)


def _value(option: RunOption, text: str, folder: Path) -> Any:
    match option.kind:
        case OptionKind.NUMBER:
            return _number(text)
        case OptionKind.SECONDS:
            return parse_seconds(text)
        case OptionKind.DOLLARS:
            return dollars(text)
        case OptionKind.NAMES:
            return split_names(text)
        case OptionKind.PATHS:
            return tuple(folder / typed_path(name) for name in split_names(text))
    return text


def _number(text: str) -> int:
    if not re.fullmatch("-?[0-9]+", text, re.ASCII):
        raise OptionError(f"{text} is not a whole number")
    return int(text)
