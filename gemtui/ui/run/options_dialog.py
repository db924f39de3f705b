"""What the next run may do: model, folder, approval mode, levels, limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal

from gemtui.agent.options import AgentOptions
from gemtui.errors import OptionError
from gemtui.paths import current_folder, typed_path
from gemtui.policy.edit.store import PolicyFile
from gemtui.policy.file.levels import Level, PermissionPolicy
from gemtui.policy.model.rules import ApprovalMode
from gemtui.text import Clean, clean_line, short_path, visible_line
from gemtui.ui.draw.lines import own
from gemtui.ui.kit.clean_widgets import Button, Dialog, Input, Label, Select
from gemtui.ui.kit.dialog_guard import DialogScreen
from gemtui.ui.kit.keys import Where, bindings

AS_IT_IS = ""
"""The choice that says nothing: the CLI's own way."""
_MODES = {
    AS_IT_IS: "as Gemini CLI has it",
    ApprovalMode.DEFAULT: "default: writes and commands are refused",
    ApprovalMode.AUTO_EDIT: "auto_edit: files may be written",
    ApprovalMode.PLAN: "plan: look, change nothing",
    ApprovalMode.YOLO: "yolo: everything is allowed",
}
_LEVELS = {
    AS_IT_IS: "as the mode has it; without a mode: ask",
    Level.ALLOW: "allow",
    Level.ASK: "ask (refused: nobody can answer)",
    Level.DENY: "deny",
}
_CAPABILITIES = {
    "file_write": "Write files",
    "shell_execute": "Run commands",
    "network_access": "Use the network",
}


class OptionsScreen(DialogScreen[AgentOptions]):
    """Closes with the options that are wanted now, or with None."""

    BINDINGS = bindings(Where.OPTIONS)
    AUTO_FOCUS = "Input"

    def __init__(self, options: AgentOptions, policies: Sequence[PolicyFile] = ()) -> None:
        super().__init__()
        self._options = options
        self._policies = {
            AS_IT_IS: "Gemini CLI's own ones only",
            **{str(file.path): clean_line(file.name) for file in policies},
        }
        if options.policies:
            names = ", ".join(path.stem for path in options.policies)
            self._policies.setdefault(_paths(options.policies), clean_line(names))

    def compose(self) -> ComposeResult:
        """One row each."""
        options, levels = self._options, self._options.permissions or PermissionPolicy()
        with Dialog(own("The next run"), own("tab next   ctrl+s takes it   esc closes")):
            yield _row("Model", _text("model", options.model, "Gemini CLI's own choice"))
            yield _row("Folder", _text("cwd", _folder(options), ""))
            yield _row("Mode", _select("mode", _MODES, options.approval_mode))
            for name, label in _CAPABILITIES.items():
                yield _row(label, _select(name, _LEVELS, getattr(levels, name)))
            chosen = _paths(options.policies)
            yield _row("Policy", _select("policies", self._policies, chosen))
            limit = None if options.max_turns is None else str(options.max_turns)
            yield _row("Turns at most", _text("max_turns", limit, "no limit"))
            quiet = None if options.idle_timeout is None else f"{options.idle_timeout:g}"
            yield _row("Silence at most", _text("idle_timeout", quiet, "seconds; no limit"))
            yield _row("Session", _text("resume", options.resume, "a new one; else a full id"))
            yield Label(id="problem")
            with Horizontal(classes="buttons"):
                yield Button(own("Close (esc)"), id="no")
                yield Button(own("Take (ctrl+s)"), id="yes", variant="primary")

    @on(Button.Pressed, "#no")
    def action_close(self) -> None:
        """Change nothing."""
        self.dismiss(None)

    @on(Button.Pressed, "#yes")
    @on(Input.Submitted)
    def action_take(self) -> None:
        """Take what stands here, if it can be run."""
        try:
            options = self._wanted()
            options.check()
        except (OptionError, ValueError) as error:
            self.query_one("#problem", Label).update(clean_line(str(error)))
        else:
            self.dismiss(options)

    def _wanted(self) -> AgentOptions:
        levels = {name: self._level(name) for name in _CAPABILITIES}
        mode = self._chosen("mode")
        return replace(
            self._options,
            model=self._typed("model") or None,
            cwd=self._chosen_folder(),
            approval_mode=ApprovalMode(mode) if mode else None,
            permissions=PermissionPolicy(**levels) if any(levels.values()) else None,
            policies=self._chosen_policies(),
            max_turns=_number("Turns at most", self._typed("max_turns")),
            idle_timeout=_number("Silence at most", self._typed("idle_timeout")),
            resume=self._typed("resume") or None,
        )

    def _chosen_folder(self) -> Path:
        """The folder that is typed; one that is left as it was may have a name that can't be."""
        typed = self._typed("cwd")
        if typed == _folder(self._options).strip():
            return self._options.cwd or current_folder()
        return current_folder() / typed_path(typed)

    def _level(self, name: str) -> Level | None:
        chosen = self._chosen(name)
        return Level(chosen) if chosen else None

    def _chosen_policies(self) -> tuple[Path, ...]:
        chosen = self._chosen("policies")
        if chosen == _paths(self._options.policies):
            return self._options.policies
        return (Path(chosen),) if chosen else ()

    def _typed(self, id: str) -> str:
        return self.query_one(f"#{id}", Input).value.strip()

    def _chosen(self, id: str) -> str:
        return str(self.query_one(f"#{id}", Select).value)


def _folder(options: AgentOptions) -> Clean:
    return visible_line(short_path(options.cwd or current_folder()))


def _paths(policies: Sequence[Path]) -> str:
    """Policy files as one choice."""
    return "\0".join(map(str, policies))


def _number(label: str, text: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal():
        raise OptionError(f"{label}: {text} is no whole number")
    return int(text)


def _row(label: str, field: Input | Select) -> Horizontal:
    return Horizontal(Label(own(label)), field, classes="row")


def _text(id: str, value: str | None, hint: str) -> Input:
    return Input(visible_line(value or ""), placeholder=own(hint), id=id)


def _select(id: str, choices: dict[str, str], value: str | None) -> Select:
    rows = [(own(label), str(choice)) for choice, label in choices.items()]
    return Select(rows, value=str(value or AS_IT_IS), id=id)
