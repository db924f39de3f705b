"""What the next run may do: folders, mode, tools, limits; and whether the folder keeps that."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from textual import events, on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widget import Widget

from gemtui.agent.approval import Away
from gemtui.agent.options import AgentOptions
from gemtui.errors import OptionError
from gemtui.policy.edit.store import PolicyFile
from gemtui.policy.file.levels import CAPABILITIES, Level, PermissionPolicy, check_tools
from gemtui.policy.model.rules import ApprovalMode
from gemtui.policy.model.tool_catalog import TOOLS
from gemtui.runs.before_run import told_before
from gemtui.text import clean_line
from gemtui.ui.draw.lines import own
from gemtui.ui.draw.theme import look_of
from gemtui.ui.kit.clean_widgets import Dialog, Input, Label, Select, Static, Words
from gemtui.ui.kit.dialog_guard import LOW
from gemtui.ui.kit.dialogs import FormScreen
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.tick import Tick
from gemtui.ui.rules.form import NameSuggester, tool_hint
from gemtui.ui.run.option_fields import options_of, texts_of

AS_IT_IS = ""
"""The choice that says nothing: the CLI's own way."""
_MODES = {
    AS_IT_IS: "Gemini CLI's default",
    ApprovalMode.DEFAULT: "default: writes and commands need a yes",
    ApprovalMode.AUTO_EDIT: "auto_edit: files may be written",
    ApprovalMode.PLAN: "plan: look, change nothing",
    ApprovalMode.YOLO: "yolo: everything is allowed",
}
_LEVELS = {
    AS_IT_IS: "set by the mode (ask if none)",
    Level.ALLOW: "allow",
    Level.ASK: "ask (denied unless “Ask me” is on)",
    Level.DENY: "deny",
}
_AWAY: Mapping[str, str] = {
    Away.WAIT: "the question waits, for days if needed",
    Away.REFUSE: "the call is denied",
}
_TICKS = {
    "ask": "before each call that needs approval",
    "sandbox": "in Gemini CLI's own sandbox",
    "trust": "this folder, for one run",
    "remember": "these options for this folder",
}
_GROUPS: Mapping[str, Mapping[str, str]] = {
    "": {
        "model": "Model",
        "cwd": "Folder",
        "include_directories": "More folders",
        "resume": "Session",
    },
    "What it may do": {
        "approval_mode": "Mode",
        "ask": "Ask me",
        "away": "When I am away",
        "file_write": "Write files",
        "shell_execute": "Run commands",
        "network_access": "Use the network",
        "policies": "Policy",
        "only_tools": "Only tools",
        "approved_tools": "Allowed tools",
        "disallowed_tools": "Denied tools",
        "sandbox": "Sandbox",
        "trust": "Trust",
    },
    "Limits": {
        "max_turns": "Max turns",
        "timeout": "Time limit",
        "idle_timeout": "Silence limit",
    },
}
_EMPTY = {
    "model": "Gemini CLI's own choice",
    "include_directories": "only the working folder",
    "resume": "new session",
    "only_tools": "every tool",
    "approved_tools": "set by mode and policy",
    "disallowed_tools": "none",
    "max_turns": "no limit",
    "timeout": "no limit",
    "idle_timeout": "no limit",
}
"""What an empty field means."""
_TOOLS = ("only_tools", "approved_tools", "disallowed_tools")
_HINTS = {
    "model": "auto, pro, flash, or a full name",
    "cwd": "where the run works",
    "include_directories": "more folders for the tools, separated by commas",
    "resume": "full id of the session to continue",
    "approval_mode": "what tools may do without asking; the rest is denied or asked about",
    "ask": "needs gemtui's extension; deny rules still apply; weaker for MCP tools",
    "away": "what happens to questions while gemtui is closed",
    "policies": "policy files; pane 3 edits them",
    "only_tools": "the only tools available; separated by commas",
    "approved_tools": "allowed without confirmation; separated by commas",
    "disallowed_tools": "denied; separated by commas",
    "sandbox": "needs docker, podman or sandbox-exec",
    "trust": "turns on this folder's settings, hooks and MCP servers",
    "max_turns": "the run stops after this many model turns",
    "timeout": "seconds, or 90s, 10m, 2h; then the run is stopped",
    "idle_timeout": "seconds, or 90s, 10m, without output; then the run is stopped",
    "remember": "except yolo, trust and allowed tools; `gemtui run` ignores them",
}


class ChosenOptions(NamedTuple):
    """The options that are wanted now; `remember`: the folder is to keep them."""

    options: AgentOptions
    remember: bool


class OptionsScreen(FormScreen[ChosenOptions]):
    """Closes with what is wanted, or with None; `remembers`: the folder keeps some already."""

    BINDINGS = bindings(Where.OPTIONS)
    VERTICAL_BREAKPOINTS = LOW
    AUTO_FOCUS = "Input"

    def __init__(
        self,
        options: AgentOptions,
        policies: Sequence[PolicyFile] = (),
        *,
        remembers: bool = False,
    ) -> None:
        super().__init__()
        self._options, self._remembers = options, remembers
        self._texts = texts_of(options)
        self._policies = {
            AS_IT_IS: "only Gemini CLI's own policies",
            **{str(file.path): clean_line(file.name) for file in policies},
        }
        if options.policies:
            names = ", ".join(path.stem for path in options.policies)
            self._policies.setdefault(_paths(options.policies), clean_line(names))

    def compose(self) -> ComposeResult:
        """One row each, with room below for what is wrong with it."""
        keys = own("tab next   ctrl+s apply   esc close")
        with Dialog(own("The next run"), keys, id="options"):
            with VerticalScroll(id="option-fields", can_focus=False):
                with VerticalScroll(id="told-before"):
                    yield Static(id="told-lines")
                for title, fields in _GROUPS.items():
                    if title:
                        yield Static(own(title), classes="group")
                    for name, label in fields.items():
                        yield from self._row(name, label)
            yield Static(id="told-summary")
            yield from self._row("remember", "Remember")
            yield Static(id="hint")
            yield from self.buttons()

    def _row(self, name: str, label: str) -> Iterator[Widget]:
        yield Horizontal(Label(own(label)), self._field(name), classes="row")
        yield Static(id=f"{name}-problem", classes="problem")

    def _field(self, name: str) -> Widget:
        options = self._options
        if name in _TICKS:
            ticked = self._remembers if name == "remember" else getattr(options, name)
            return Tick(own(_TICKS[name]), ticked, id=name)
        if name == "approval_mode":
            return _select(name, _MODES, options.approval_mode)
        if name == "away":
            return _select(name, _AWAY, options.away)
        if name in CAPABILITIES:
            return _select(name, _LEVELS, getattr(options.permissions, name, None))
        if name == "policies":
            return _select(name, self._policies, _paths(options.policies))
        suggester = NameSuggester([tool.name for tool in TOOLS]) if name in _TOOLS else None
        return Input(
            self._texts[name],
            placeholder=own(_EMPTY.get(name, "")),
            id=name,
            suggester=suggester,
        )

    def on_mount(self) -> None:
        """Fields that mean nothing yet take no keys."""
        self._say_away()
        self._tell_before()

    @on(Tick.Changed, "#ask")
    def _say_away(self) -> None:
        self.query_one("#away", Select).disabled = not self._ticked("ask")

    # --- what a run does that nobody is asked about ---------------------------------------------

    @on(Select.Changed, "#approval_mode")
    @on(Input.Blurred, "#cwd")
    @work(exclusive=True, group="told")
    async def _tell_before(self) -> None:
        """Say it of the folder and the mode that stand here, above all fields and in one line."""
        try:
            report = await asyncio.to_thread(told_before, self._wanted())
        except OptionError:
            return
        lines = [clean_line(words) for words in report.lines()]
        self.query_one("#told-before").display = bool(lines)
        self.query_one("#told-lines", Static).update(Content("\n").join(map(Content, lines)))
        summary = self.query_one("#told-summary", Static)
        summary.display = bool(lines)
        mark = look_of(self.app, 1).glyphs.warning
        summary.update(clean_line(f"{mark} {report.summary() or 'settings changed'}: see above"))

    # --- hints ---------------------------------------------------------------------------------

    @on(Input.Changed)
    def _edited(self, event: Input.Changed) -> None:
        self.query_one(f"#{event.input.id}-problem").remove_class("-wrong")
        self._say_hint()

    @on(events.DescendantFocus)
    def _say_hint(self) -> None:
        """What the field with the focus is for."""
        field = self.focused
        name = "" if field is None else field.id or ""
        words: Words = own(_HINTS.get(name, ""))
        if name in _TOOLS and isinstance(field, Input) and field.value.strip():
            words = tool_hint(field.value)
        self.query_one("#hint", Static).update(words)

    def _say_problem(self, error: OptionError) -> None:
        """Beside the field that it is about, which gets the focus."""
        name = error.option or "cwd"
        problem = self.query_one(f"#{name}-problem", Static)
        problem.update(clean_line(f"{look_of(self.app, 1).glyphs.failed} {error.what}"))
        problem.add_class("-wrong")
        self.query_one(f"#{name}").focus()
        self.call_after_refresh(problem.scroll_visible, animate=False)

    # --- taking --------------------------------------------------------------------------------

    @on(Input.Submitted)
    @work(exclusive=True, group="take")
    async def action_take(self) -> None:
        """Take what stands here, if it can be run."""
        try:
            options = self._wanted()
            await asyncio.to_thread(options.check)
            check_tools(options.tools)
        except OptionError as error:
            self._say_problem(error)
        else:
            self.dismiss(ChosenOptions(options, self._ticked("remember")))

    def _wanted(self) -> AgentOptions:
        levels = {name: Level(level) for name in CAPABILITIES if (level := self._chosen(name))}
        mode = self._chosen("approval_mode")
        chosen = replace(
            self._options,
            approval_mode=ApprovalMode(mode) if mode else None,
            permissions=PermissionPolicy(**levels) if levels else None,
            policies=self._chosen_policies(),
            ask=self._ticked("ask"),
            away=Away(self._chosen("away")),
            sandbox=self._ticked("sandbox"),
            trust=self._ticked("trust"),
        )
        texts = {name: self.query_one(f"#{name}", Input).value for name in self._texts}
        return options_of(texts, chosen)

    def _chosen_policies(self) -> tuple[Path, ...]:
        chosen = self._chosen("policies")
        if chosen == _paths(self._options.policies):
            return self._options.policies
        return (Path(chosen),) if chosen else ()

    def _chosen(self, name: str) -> str:
        return str(self.query_one(f"#{name}", Select).value)

    def _ticked(self, name: str) -> bool:
        return self.query_one(f"#{name}", Tick).value


def _paths(policies: Sequence[Path]) -> str:
    """Policy files as one choice."""
    return "\0".join(map(str, policies))


def _select(id: str, choices: Mapping[str, str], value: str | None) -> Select:
    rows = [(own(label), str(choice)) for choice, label in choices.items()]
    return Select(rows, value=str(value or AS_IT_IS), id=id)
