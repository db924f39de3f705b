"""A run's options.

Each option is declared only once, as a field of `AgentOptions` with a `RunOption`. The command line,
the dialog, the summary of the next run, the queue and a folder's remembered options are all derived
from these declarations.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum, StrEnum, auto
from functools import cache
from math import inf
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

from gemtui.agent.approval import Approve, Away
from gemtui.errors import OptionError
from gemtui.files import is_folder
from gemtui.paths import typed_path
from gemtui.policy.file.levels import CAPABILITIES, Level, PermissionPolicy, Permissions, approval_mode, check_tools
from gemtui.policy.model.rules import ApprovalMode


class OptionKind(Enum):
    """The type of an option's value: how it is entered, checked and printed."""

    TEXT = auto()
    NUMBER = auto()
    """An integer that isn't negative."""
    SECONDS = auto()
    """A time limit of more than 0 seconds, which users may write as `90s` or `10m`."""
    DOLLARS = auto()
    """An amount of more than 0 US dollars, which users may write as `$2` or `0.50`."""
    SWITCH = auto()
    CHOICE = auto()
    """The option accepts one of `RunOption.values`."""
    PATH = auto()
    NAMES = auto()
    """Names of tools."""
    PATHS = auto()
    OBJECT = auto()
    """A Python object, which can't be typed in."""


class Kept(Enum):
    """Where an option's value is saved for later runs."""

    NOWHERE = auto()
    """The value is not saved, because it belongs to one folder, session or process."""
    QUEUE = auto()
    """The value is saved with the queued prompts of a run."""
    FOLDER = auto()
    """The value is saved with queued prompts and, unless dangerous, for the folder."""


def _never(_value: Any) -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class RunOption:
    """The declaration of a run option.

    * `help`: the description on the command line and in the manual.
    * `flags`: the command-line flags; if empty, the option can only be set in Python.
    * `group`, `label`, `hint`: the group, label and hint in the dialog, where the hint replaces
      `help`. An option without a label is not in the dialog.
    * `tick`: the label of a switch's checkbox.
    * `empty`: what an empty field means.
    * `choices`: a label for each value of a choice; the key "" is the label for no value.
    * `needs`: the switch without which the option has no effect.
    * `brief`: the text for the option in a summary of the next run, with `{}` for the value; "" if
      the summary leaves the option out. `unit`: the noun for the items that the summary counts.
    * `kept`: where the value is saved.
    * `dangerous`: returns whether a value lets commands run unasked, or trusts a folder that the
      user hasn't trusted. `danger`: a description of such a value.
    * `name`, `default`, `values`: derived from the field. `kind` is derived from the field's type
      unless it is given.
    """

    help: str
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    group: str = ""
    label: str = ""
    hint: str = ""
    tick: str = ""
    empty: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    needs: str = ""
    brief: str = ""
    unit: str = ""
    kept: Kept = Kept.FOLDER
    dangerous: Callable[[Any], bool] = _never
    danger: str = ""
    name: str = ""
    kind: OptionKind = OptionKind.OBJECT
    default: Any = None
    values: tuple[str, ...] = ()


def option_kind(wanted: Any, about: object = None) -> tuple[OptionKind, tuple[str, ...]]:
    """Return the kind of option that a field holds and, for a choice, its values.

    `wanted`: the field's type. `about`: its declaration, which may name the kind itself.
    """
    if isinstance(about, RunOption) and about.kind is not OptionKind.OBJECT:
        return about.kind, ()
    kinds = get_args(wanted) if isinstance(wanted, UnionType) else (wanted,)
    for kind in kinds:
        if kind in _KINDS:
            return _KINDS[kind], ()
        if isinstance(kind, type) and issubclass(kind, StrEnum):
            return OptionKind.CHOICE, tuple(kind)
    return OptionKind.OBJECT, ()


_KINDS: Mapping[Any, OptionKind] = {
    bool: OptionKind.SWITCH,
    int: OptionKind.NUMBER,
    float: OptionKind.SECONDS,
    str: OptionKind.TEXT,
    Path: OptionKind.PATH,
    tuple[str, ...]: OptionKind.NAMES,
    tuple[Path, ...]: OptionKind.PATHS,
}


def _is_yolo(mode: ApprovalMode | None) -> bool:
    return mode is ApprovalMode.YOLO


def _is_allow(level: Level | None) -> bool:
    return level is Level.ALLOW


_TOOLS, _ENDS = "Permissions", "Limits"
"""The headings of the option groups in the dialog."""
_LEVELS = {
    "": "set by the mode (ask if none)",
    Level.ALLOW: "allow",
    Level.ASK: "ask (denied unless “Ask me” is on)",
    Level.DENY: "deny",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """The options of one run. None, or an empty value, leaves the choice to the CLI.

    Each option is declared only here, with its type, its default, and the labels and rules of its
    `RunOption`. A mode may be given by its name, a path as a string (where `~` is the home
    directory), and a sequence as any iterable except a string. Raises OptionError for any other
    value.

    `only_tools`: None means all tools, () means none. `policies` are loaded between gemtui's own
    deny rules and its own allow rules. `approve` answers questions and may be called for several at
    once; if it raises an exception, the call is denied.
    """

    model: Annotated[
        str | None,
        RunOption(
            help="Model, as Gemini CLI names it: auto, pro, flash, ...",
            flags=("-m", "--model"),
            metavar="M",
            label="Model",
            hint="auto, pro, flash, or a full name",
            empty="Gemini CLI's own choice",
        ),
    ] = None
    cwd: Annotated[
        Path | None,
        RunOption(
            help="Work in DIR.",
            flags=("-C", "--cwd"),
            metavar="DIR",
            label="Folder",
            hint="working folder",
            kept=Kept.NOWHERE,
        ),
    ] = None
    include_directories: Annotated[
        tuple[Path, ...],
        RunOption(
            help="Another folder that tools may use; repeatable.",
            flags=("--include-directory",),
            metavar="DIR",
            label="More folders",
            hint="more folders for the tools, separated by commas",
            empty="only the working folder",
            brief="{}",
            unit="more folder",
        ),
    ] = ()
    worktree: Annotated[
        bool,
        RunOption(
            help="Work in a new git worktree outside the repository, on its own branch.",
            flags=("--worktree",),
            label="Worktree",
            hint="your files are not changed; F7 lists worktrees and applies their changes",
            tick="in a new git worktree",
            brief="worktree",
        ),
    ] = False
    resume: Annotated[
        str | None,
        RunOption(
            help="Continue this session; accepts the same IDs as `gemtui show`.",
            flags=("--resume",),
            metavar="ID",
            label="Session",
            hint="full id of the session to continue",
            empty="new session",
            kept=Kept.NOWHERE,
        ),
    ] = None
    approval_mode: Annotated[
        ApprovalMode | None,
        RunOption(
            help="What tools may do without asking; plan: read only; yolo: everything.",
            flags=("--approval-mode",),
            group=_TOOLS,
            label="Mode",
            hint="what tools may do without asking; the rest is denied or asked about",
            choices={
                "": "Gemini CLI's default",
                ApprovalMode.DEFAULT: "default: writes and commands need approval",
                ApprovalMode.AUTO_EDIT: "auto_edit: file edits are allowed",
                ApprovalMode.PLAN: "plan: read-only, no changes",
                ApprovalMode.YOLO: "yolo: everything is allowed",
            },
            dangerous=_is_yolo,
            danger="yolo",
        ),
    ] = None
    ask: Annotated[
        bool,
        RunOption(
            help="Ask in this terminal before each call that needs approval. Requires gemtui's extension.",
            flags=("--ask",),
            group=_TOOLS,
            label="Ask me",
            hint="requires gemtui's extension; deny rules still apply; less reliable for MCP tools",
            tick="before each call that needs approval",
            brief="asks me",
        ),
    ] = False
    away: Annotated[
        Away,
        RunOption(
            help="How to handle an approval request while nobody is there to answer it.",
            group=_TOOLS,
            label="When I'm away",
            hint="how to handle approval requests while gemtui is closed",
            choices={Away.WAIT: "wait for my answer, for days if necessary", Away.REFUSE: "deny the call"},
            needs="ask",
            brief="denies requests while I'm away",
        ),
    ] = Away.WAIT
    permissions: Annotated[
        PermissionPolicy | None,
        {
            "file_write": RunOption(
                help="Whether tools may write and edit files.",
                flags=("--file-write",),
                group=_TOOLS,
                label="Write files",
                choices=_LEVELS,
                brief="write {}",
            ),
            "shell_execute": RunOption(
                help="Whether tools may run shell commands.",
                flags=("--shell",),
                group=_TOOLS,
                label="Run commands",
                choices=_LEVELS,
                brief="shell {}",
                dangerous=_is_allow,
                danger="the allowed commands",
            ),
            "network_access": RunOption(
                help="Whether tools may search the web and fetch pages.",
                flags=("--network",),
                group=_TOOLS,
                label="Use the network",
                choices=_LEVELS,
                brief="net {}",
            ),
        },
    ] = None
    policies: Annotated[
        tuple[Path, ...],
        RunOption(
            help="A policy file, or the name of one of gemtui's policies; repeatable.",
            flags=("--policy",),
            metavar="NAME|FILE",
            group=_TOOLS,
            label="Policy",
            hint="policy files; edit them in pane 3",
            empty="only Gemini CLI's own policies",
            brief="policy {}",
        ),
    ] = ()
    only_tools: Annotated[
        tuple[str, ...] | None,
        RunOption(
            help="Make only this tool available, such as read_file; repeatable.",
            flags=("--only-tool",),
            metavar="T",
            group=_TOOLS,
            label="Only tools",
            hint="the only tools available; separated by commas",
            empty="every tool",
            brief="only {}",
            unit="tool",
        ),
    ] = None
    approved_tools: Annotated[
        tuple[str, ...],
        RunOption(
            help="Allow this tool without confirmation; repeatable.",
            flags=("--allow-tool",),
            metavar="T",
            group=_TOOLS,
            label="Allowed tools",
            hint="tools that need no confirmation; separated by commas",
            empty="decided by mode and policy",
            brief="{} allowed",
            unit="tool",
            dangerous=bool,
            danger="the allowed tools",
        ),
    ] = ()
    disallowed_tools: Annotated[
        tuple[str, ...],
        RunOption(
            help="Deny this tool; repeatable.",
            flags=("--deny-tool",),
            metavar="T",
            group=_TOOLS,
            label="Denied tools",
            hint="tools that are denied; separated by commas",
            empty="none",
            brief="{} denied",
            unit="tool",
        ),
    ] = ()
    sandbox: Annotated[
        bool,
        RunOption(
            help="Run in Gemini CLI's sandbox.",
            flags=("--sandbox",),
            group=_TOOLS,
            label="Sandbox",
            hint="requires docker, podman or sandbox-exec",
            tick="in Gemini CLI's own sandbox",
            brief="sandbox",
        ),
    ] = False
    trust: Annotated[
        bool,
        RunOption(
            help="Trust the folder for this run only.",
            flags=("--trust",),
            group=_TOOLS,
            label="Trust",
            hint="enables this folder's settings, hooks and MCP servers",
            tick="this folder, for one run",
            brief="trust",
            dangerous=bool,
            danger="trust",
        ),
    ] = False
    max_turns: Annotated[
        int | None,
        RunOption(
            help="Stop after N model turns.",
            flags=("--max-turns",),
            metavar="N",
            group=_ENDS,
            label="Max turns",
            hint="the run stops after this many model turns",
            empty="no limit",
            brief="{}",
            unit="turn",
        ),
    ] = None
    timeout: Annotated[
        float | None,
        RunOption(
            help="Stop the run after this time: seconds, or a value such as 90s, 10m or 2h.",
            flags=("--timeout",),
            metavar="S",
            group=_ENDS,
            label="Time limit",
            hint="the run is stopped after this time: seconds, or 90s, 10m, 2h",
            empty="no limit",
            brief="timeout {}",
        ),
    ] = None
    idle_timeout: Annotated[
        float | None,
        RunOption(
            help=("Stop the run if it prints nothing for this long: seconds, or a value such as 90s, 10m or 2h."),
            flags=("--idle-timeout",),
            metavar="S",
            group=_ENDS,
            label="Silence limit",
            hint="the run is stopped after this long without output: seconds, or 90s, 10m",
            empty="no limit",
            brief="silence {}",
        ),
    ] = None
    budget: Annotated[
        float | None,
        RunOption(
            help="Once the run has cost USD dollars, stop it before its next model call.",
            flags=("--budget",),
            metavar="USD",
            kind=OptionKind.DOLLARS,
            group=_ENDS,
            label="Budget",
            hint="US dollars at list prices; once spent, no more model calls are made",
            empty="no limit",
            brief="budget {}",
        ),
    ] = None
    wait_for_quota: Annotated[
        bool,
        RunOption(
            help=(
                "If the quota is used up, wait until it is renewed and continue, provided the renewal time is known."
            ),
            flags=("--wait-for-quota",),
            group=_ENDS,
            label="Quota",
            hint="only if Gemini CLI or Google says when the quota will be renewed",
            tick="wait for the quota to reset, then continue",
            brief="waits for the quota",
        ),
    ] = False
    extensions: Annotated[tuple[str, ...], RunOption(help="The extensions to enable.", kept=Kept.QUEUE)] = ()
    mcp_servers: Annotated[tuple[str, ...], RunOption(help="The MCP servers to enable.", kept=Kept.QUEUE)] = ()
    environment: Annotated[
        Mapping[str, str], RunOption(help="Environment variables to add to the process.", kept=Kept.NOWHERE)
    ] = field(default_factory=dict)
    prompt_in_argv: Annotated[
        bool,
        RunOption(
            help="Pass the prompt as a command-line argument, where `ps` shows it, instead of on stdin.",
            kept=Kept.QUEUE,
        ),
    ] = False
    approve: Annotated[
        Approve | None, RunOption(help="A function that is asked for approval before tool calls.", kept=Kept.NOWHERE)
    ] = None
    abort: Annotated[
        asyncio.Event | None, RunOption(help="An event that aborts the run when it is set.", kept=Kept.NOWHERE)
    ] = None

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            cwd: AnyPath | None = None,
            model: str | None = None,
            max_turns: int | None = None,
            approval_mode: ApprovalMode | str | None = None,
            permissions: PermissionPolicy | None = None,
            only_tools: Iterable[str] | None = None,
            approved_tools: Iterable[str] = (),
            disallowed_tools: Iterable[str] = (),
            policies: Iterable[AnyPath] = (),
            include_directories: Iterable[AnyPath] = (),
            worktree: bool = False,
            sandbox: bool = False,
            extensions: Iterable[str] = (),
            mcp_servers: Iterable[str] = (),
            resume: str | None = None,
            timeout: float | None = None,
            idle_timeout: float | None = None,
            budget: float | None = None,
            wait_for_quota: bool = False,
            environment: Mapping[str, str] = ...,
            trust: bool = False,
            prompt_in_argv: bool = False,
            ask: bool = False,
            approve: Approve | None = None,
            away: Away | str = Away.WAIT,
            abort: asyncio.Event | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        """Convert the values to the types of their fields, or raise OptionError.

        A string is rejected where a list of names is expected, because its characters would be
        treated as tool names and nothing would be denied. So is the name of a tool that is known to
        be a mistake.
        """
        taken: dict[str, object] = {}
        for name, kind in _kinds():
            value = getattr(self, name)
            _require(name, value, _TAKEN.get(kind, (object,)))
            if kind is OptionKind.NAMES:
                taken[name] = _texts(name, value)
            elif kind is OptionKind.PATHS:
                taken[name] = _paths(name, value)
        _require("permissions", self.permissions, (PermissionPolicy,))
        _require("environment", self.environment, (Mapping,))
        taken["environment"] = environment = dict(self.environment or {})
        for pair in environment.items():
            if not all(isinstance(word, str) for word in pair):
                raise OptionError(f"environment must map strings to strings, not {pair!r}")
        if self.approve is not None and not callable(self.approve):
            raise OptionError(f"approve must be a function, not {self.approve!r}")
        if self.cwd is not None:
            taken["cwd"] = typed_path(self.cwd)
        if self.approval_mode is not None:
            taken["approval_mode"] = approval_mode(self.approval_mode)
        taken["away"] = _away(self.away)
        for name, value in taken.items():
            object.__setattr__(self, name, value)
        check_tools(self.tools)

    @property
    def asks(self) -> bool:
        """Whether the run asks the user, or a callback, before tool calls."""
        return self.ask or self.approve is not None

    @property
    def tools(self) -> Permissions:
        """The options that affect tools."""
        return Permissions(
            mode=self.approval_mode,
            levels=self.permissions,
            only_tools=self.only_tools,
            approved_tools=self.approved_tools,
            disallowed_tools=self.disallowed_tools,
        )

    def check(self) -> None:
        """Raise an OptionError that names the option if a value can't be used.

        The contents of policy files are checked later, when the command is built.
        """
        for name, kind in _kinds():
            value = getattr(self, name)
            if kind is OptionKind.SECONDS and value is not None and not value > 0:
                raise _wrong(name, f"must be more than 0 seconds, not {value}")
            if kind is OptionKind.DOLLARS and value is not None and not 0 < value < inf:
                raise _wrong(name, f"must be more than 0 dollars, not {value}")
            if kind is OptionKind.NUMBER and value is not None and value < 0:
                raise _wrong(name, f"must be 0 or more, not {value}")
        if self.cwd is not None and not is_folder(self.cwd):
            raise _wrong("cwd", f"{self.cwd} is not a folder", ": ")
        for path in self.include_directories:
            if not is_folder(path):  # the CLI would not start
                raise _wrong("include_directories", f"{path} is not a folder", ": ")


# --- declarations --------------------------------------------------------------------------------


@cache
def run_options() -> tuple[RunOption, ...]:
    """Return all options in declaration order, including the permission levels.

    The command line, the dialog and the summary of a run all use this order.
    """
    return tuple(_declared())


def _declared() -> Iterator[RunOption]:
    defaults = AgentOptions()
    for name, (wanted, about) in _annotated():
        if isinstance(about, RunOption):
            kind, values = option_kind(wanted, about)
            default = getattr(defaults, name)
            yield replace(about, name=name, kind=kind, default=default, values=values)
        else:
            for level, each in about.items():
                yield replace(each, name=level, kind=OptionKind.CHOICE, values=tuple(Level))


def _annotated() -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield each field's name, with the field's type and declaration."""
    hints = get_type_hints(AgentOptions, include_extras=True)
    for each in fields(AgentOptions):
        wanted, about = get_args(hints[each.name])
        yield each.name, (wanted, about)


@cache
def _kinds() -> tuple[tuple[str, OptionKind], ...]:
    return tuple((name, option_kind(*declared)[0]) for name, declared in _annotated())


def option_value(options: AgentOptions, name: str) -> Any:
    """Return the value of the option, or the permission level, that has this name."""
    return getattr(options.permissions if name in CAPABILITIES else options, name, None)


def with_values(options: AgentOptions, values: Mapping[str, Any]) -> AgentOptions:
    """Return a copy of the options with some values replaced. Raises OptionError.

    `values`: maps names of options and permission levels to their new values.
    """
    levels = {
        name: level for name in CAPABILITIES if (level := values.get(name, option_value(options, name))) is not None
    }
    others = {name: value for name, value in values.items() if name not in CAPABILITIES}
    permissions = PermissionPolicy(**levels) if levels else None
    return replace(options, **others, permissions=permissions)


# --- values --------------------------------------------------------------------------------------


def _wrong(option: str, what: str, joint: str = " ") -> OptionError:
    return OptionError(f"{option}{joint}{what}", option=option, what=what)


_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


def seconds_text(limit: float) -> str:
    """Format a time limit in the largest unit that divides it: `10m`, `90s`.

    `parse_seconds` is the inverse.
    """
    unit = next(unit for unit in "hms" if unit == "s" or limit % _UNITS[unit] == 0)
    return f"{limit / _UNITS[unit]:g}{unit}"


def parse_seconds(text: str) -> float:
    """Parse a time limit as users write it, such as `90`, `90s`, `10m` or `1.5h`.

    Returns the number of seconds. Raises OptionError.
    """
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+) *([smh]?)", text.strip(), re.ASCII)
    if found is None:
        raise OptionError(f"{text.strip()!r} is not a duration: give seconds, or a value such as 90s, 10m or 2h")
    return float(found[1]) * _UNITS[found[2]]


def dollars_text(amount: float) -> str:
    """Format US dollars: `$2.00`, or `$0.005` if cents are too coarse."""
    return f"${amount:,.2f}" if round(amount, 2) == round(amount, 6) else f"${amount:,.6g}"


def dollars(text: str) -> float:
    """Parse an amount of US dollars: `2`, `0.50`, `$2`. Raises OptionError."""
    found = re.fullmatch(r"\$? ?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)", text.strip(), re.ASCII)
    if found is None:
        raise OptionError(f"{text.strip()!r} is not an amount of money: give US dollars, such as 2 or 0.50")
    return float(found[1])


AnyPath = str | os.PathLike[str]
_PATH = (str, os.PathLike)
_TAKEN: Mapping[OptionKind, tuple[type, ...]] = {
    OptionKind.TEXT: (str,),
    OptionKind.NUMBER: (int,),
    OptionKind.SECONDS: (int, float),
    OptionKind.DOLLARS: (int, float),
    OptionKind.SWITCH: (bool,),
    OptionKind.CHOICE: (str,),
    OptionKind.PATH: _PATH,
}
"""The types accepted for each kind of option; lists are checked item by item."""


def _away(word: str) -> Away:
    try:
        return Away(word)
    except ValueError:
        raise OptionError(f"away must be one of {', '.join(Away)}, not {word!r}") from None


def _require(name: str, value: object, kinds: tuple[type, ...]) -> None:
    number = isinstance(value, bool) and int in kinds  # bool is a subclass of int
    if value is not None and (number or not isinstance(value, kinds)):
        words = " or ".join(kind.__name__ for kind in kinds)
        raise OptionError(f"{name} must be {words}, not {value!r}")


def _items(name: str, value: object) -> tuple[Any, ...]:
    if isinstance(value, str | bytes | os.PathLike) or not isinstance(value, Iterable):
        raise OptionError(f"{name} must be a list, not {value!r}: write [{value!r}]")
    return tuple(value)


def _texts(name: str, value: object) -> tuple[str, ...] | None:
    """Return an option's value, a list of names, as a tuple.

    `name`: the option's name. None is valid only for `only_tools`. Raises OptionError for any other
    value that is not a list of strings.
    """
    if value is None and name == "only_tools":
        return None
    items = _items(name, value)
    bad = next((at for at, each in enumerate(items) if not isinstance(each, str)), None)
    if bad is not None:
        raise OptionError(f"{name}[{bad}] must be a name, not {items[bad]!r}")
    return items


def _paths(name: str, value: object) -> tuple[Path, ...]:
    items = _items(name, value)
    for at, path in enumerate(items):
        _require(f"{name}[{at}]", path, _PATH)
    return tuple(map(typed_path, items))
