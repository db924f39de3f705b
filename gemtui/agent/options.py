"""A run's options.

Each option is declared only once, as a field of `AgentOptions` with a `RunOption`. The command
line, the dialog, the summary of the next run, the queue and a folder's remembered options are all
derived from these declarations.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum, auto
from functools import cache
from math import inf
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, cast

from gemtui.agent.approval import Approve, Away
from gemtui.agents import RUNNABLE, WORDS, Agent
from gemtui.errors import OptionError
from gemtui.files import is_folder
from gemtui.paths import typed_path
from gemtui.policy.file.levels import (
    CAPABILITIES,
    Level,
    PermissionPolicy,
    Permissions,
    approval_mode,
    check_tools,
)
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
    """The places where an option's value is saved for later runs."""

    NOWHERE = auto()
    """The value is not saved, because it belongs to one folder, session or process."""
    QUEUE = auto()
    """The value is saved with the queued prompts of a run."""
    FOLDER = auto()
    """The value is saved with queued prompts and, unless dangerous, for the folder."""


def _never(_value: Any) -> bool:
    return False


@dataclass(kw_only=True, eq=False)
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
    * `agents`: the agents that have the option.
    * `name`: the field's name. `kind`, `default`, `values`: given by the kinds of options below.
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
    agents: Container[Agent] = (Agent.GEMINI,)
    name: str = ""
    kind: ClassVar[OptionKind] = OptionKind.OBJECT
    default: ClassVar[Any] = None
    values: ClassVar[tuple[str, ...]] = ()

    def check(self, value: Any) -> None:
        """Raise OptionError for a value of the right type that can't be used."""


Given = TypeVar("Given")
ValueT = TypeVar("ValueT")
AnyPath = str | os.PathLike[str]


@dataclass(kw_only=True, eq=False)
class _Field(RunOption, Generic[Given, ValueT]):
    """A field of `AgentOptions`: accepts values of type `Given` and keeps them as `ValueT`.

    It is a descriptor, so that the constructor that a type checker sees accepts what the field
    accepts. `types`: the types that a given value may have; None is always accepted.
    """

    types: ClassVar[tuple[type, ...]] = (object,)

    def __set_name__(self, _owner: type, name: str) -> None:
        self.name = name

    def __get__(self, options: object | None, _owner: type) -> ValueT:
        value: ValueT = self.default if options is None else options.__dict__[self.name]
        return value

    def __set__(self, options: object, value: Given) -> None:
        _require(self.name, value, self.types)
        options.__dict__[self.name] = self.kept_as(value)

    def kept_as(self, value: Given) -> ValueT:
        """Convert a value to the type of the field, or raise OptionError."""
        return cast(ValueT, value)


class TextOption(_Field[str | None, str | None]):
    """A text."""

    kind = OptionKind.TEXT
    types = (str,)


class NumberOption(_Field[int | None, int | None]):
    """An integer that isn't negative."""

    kind = OptionKind.NUMBER
    types = (int,)

    def check(self, value: Any) -> None:
        """Raise OptionError for a negative number."""
        if value < 0:
            raise _wrong(self.name, f"must be 0 or more, not {value}")


class SecondsOption(_Field[float | None, float | None]):
    """A time limit of more than 0 seconds."""

    kind = OptionKind.SECONDS
    types = (int, float)

    def check(self, value: Any) -> None:
        """Raise OptionError for a time limit that isn't more than 0 seconds."""
        if not value > 0:
            raise _wrong(self.name, f"must be more than 0 seconds, not {value}")


class DollarsOption(_Field[float | None, float | None]):
    """An amount of more than 0 US dollars."""

    kind = OptionKind.DOLLARS
    types = (int, float)

    def check(self, value: Any) -> None:
        """Raise OptionError for an amount that isn't more than 0 dollars."""
        if not 0 < value < inf:
            raise _wrong(self.name, f"must be more than 0 dollars, not {value}")


class SwitchOption(_Field[bool, bool]):
    """A switch, which is off by default."""

    kind = OptionKind.SWITCH
    types = (bool,)
    default = False


class ModeOption(_Field[ApprovalMode | str | None, ApprovalMode | None]):
    """An approval mode, which may be given by its name."""

    kind = OptionKind.CHOICE
    types = (str,)
    values = tuple(ApprovalMode)

    def kept_as(self, value: ApprovalMode | str | None) -> ApprovalMode | None:
        """Return the mode with this name."""
        return None if value is None else approval_mode(value)


class AwayOption(_Field[Away | str, Away]):
    """An option that says how to treat questions while nobody is there to answer."""

    kind = OptionKind.CHOICE
    types = (str,)
    values = tuple(Away)
    default = Away.WAIT

    def kept_as(self, value: Away | str) -> Away:
        """Return the value with this name."""
        try:
            return Away(value)
        except ValueError:
            raise OptionError(f"away must be one of {', '.join(Away)}, not {value!r}") from None


class AgentOption(_Field[Agent | str, Agent]):
    """An option that says which agent runs."""

    kind = OptionKind.CHOICE
    types = (str,)
    values = RUNNABLE
    default = Agent.GEMINI

    def kept_as(self, value: Agent | str) -> Agent:
        """Return the agent with this name."""
        if value not in RUNNABLE:
            raise OptionError(f"agent must be one of {', '.join(RUNNABLE)}, not {value!r}")
        return Agent(value)


class PathOption(_Field[AnyPath | None, Path | None]):
    """A path, which may be given as a string, where `~` is the home directory."""

    kind = OptionKind.PATH
    types = (str, os.PathLike)

    def kept_as(self, value: AnyPath | None) -> Path | None:
        """Return the path."""
        return None if value is None else typed_path(value)


class PathsOption(_Field[Iterable[AnyPath], tuple[Path, ...]]):
    """Paths, which may be given as strings."""

    kind = OptionKind.PATHS
    default = ()

    def kept_as(self, value: Iterable[AnyPath]) -> tuple[Path, ...]:
        """Return the paths."""
        items = _items(self.name, value)
        for at, path in enumerate(items):
            _require(f"{self.name}[{at}]", path, PathOption.types)
        return tuple(map(typed_path, items))


class NamesOption(_Field[Iterable[str], tuple[str, ...]]):
    """Names, such as those of tools."""

    kind = OptionKind.NAMES
    default = ()

    def kept_as(self, value: Iterable[str]) -> tuple[str, ...]:
        """Return the names."""
        return _names(self.name, value)


class AllOrNamesOption(_Field[Iterable[str] | None, tuple[str, ...] | None]):
    """Names of tools; None means all tools, () means none."""

    kind = OptionKind.NAMES

    def kept_as(self, value: Iterable[str] | None) -> tuple[str, ...] | None:
        """Return the names."""
        return None if value is None else _names(self.name, value)


class VariablesOption(_Field[Mapping[str, str] | None, Mapping[str, str]]):
    """Environment variables."""

    types = (Mapping,)

    def kept_as(self, value: Mapping[str, str] | None) -> Mapping[str, str]:
        """Return a copy of the variables."""
        for pair in (variables := dict(value or {})).items():
            if not all(isinstance(word, str) for word in pair):
                raise OptionError(f"{self.name} must map strings to strings, not {pair!r}")
        return variables


class CallbackOption(_Field[Approve | None, Approve | None]):
    """A function that answers questions."""

    def kept_as(self, value: Approve | None) -> Approve | None:
        """Return the function."""
        if value is not None and not callable(value):
            raise OptionError(f"{self.name} must be a function, not {value!r}")
        return value


class EventOption(_Field[asyncio.Event | None, asyncio.Event | None]):
    """An event."""


@dataclass(kw_only=True, eq=False)
class LevelsOption(_Field[PermissionPolicy | None, PermissionPolicy | None]):
    """Permission levels, each of which is an option of its own."""

    levels: tuple[RunOption, ...]
    types = (PermissionPolicy,)


class LevelOption(RunOption):
    """One permission level."""

    kind = OptionKind.CHOICE
    values = tuple(Level)


def _is_yolo(mode: ApprovalMode | None) -> bool:
    return mode is ApprovalMode.YOLO


def _is_allow(level: Level | None) -> bool:
    return level is Level.ALLOW


_LEVELS = {
    "": "set by the mode (ask if none)",
    Level.ALLOW: "allow",
    Level.ASK: "ask (denied unless “Ask me” is on)",
    Level.DENY: "deny",
}
_TOOLS, _ENDS = "Permissions", "Limits"
"""The headings of the option groups in the dialog."""


@dataclass(frozen=True, kw_only=True)
class AgentOptions:
    """The options of one run. None, or an empty value, leaves the choice to the CLI.

    Each option is declared only here, with its kind, its labels and its rules. Its kind says which
    values are accepted: a mode may be given by its name, a path as a string (where `~` is the home
    directory), and a sequence as any iterable except a string. Raises OptionError for any other
    value.

    `only_tools`: None means all tools, () means none. `policies` are loaded between gemtui's own
    deny rules and its own allow rules. `approve` answers questions and may be called for several at
    once; if it raises an exception, the call is denied.
    """

    agent: AgentOption = AgentOption(
        help="The agent that runs.",
        flags=("--agent",),
        label="Agent",
        hint="the agent that gets the prompt",
        choices={agent: WORDS[agent].program for agent in RUNNABLE},
        brief="{}",
        agents=RUNNABLE,
    )
    model: TextOption = TextOption(
        help="Model, as the agent names it: auto, pro, flash, opus, ...",
        flags=("-m", "--model"),
        metavar="M",
        label="Model",
        hint="a name that the agent knows: pro, flash, opus, sonnet, or a full name",
        empty="the agent's own choice",
        agents=RUNNABLE,
    )
    cwd: PathOption = PathOption(
        help="Work in DIR.",
        flags=("-C", "--cwd"),
        metavar="DIR",
        label="Folder",
        hint="working folder",
        kept=Kept.NOWHERE,
        agents=RUNNABLE,
    )
    include_directories: PathsOption = PathsOption(
        help="Another folder that tools may use; repeatable.",
        flags=("--include-directory",),
        metavar="DIR",
        label="More folders",
        hint="more folders for the tools, separated by commas",
        empty="only the working folder",
        brief="{}",
        unit="more folder",
        agents=RUNNABLE,
    )
    worktree: SwitchOption = SwitchOption(
        help="Work in a new git worktree outside the repository, on its own branch.",
        flags=("--worktree",),
        label="Worktree",
        hint="your files are not changed; /worktrees lists them and applies changes",
        tick="in a new git worktree",
        brief="worktree",
        agents=RUNNABLE,
    )
    resume: TextOption = TextOption(
        help="Continue this session: an ID as for `gemtui show`; `latest` is the one updated last.",
        flags=("--resume", "-r"),
        metavar="ID",
        label="Session",
        hint="full id of the session to continue, or latest",
        empty="new session",
        kept=Kept.NOWHERE,
        agents=RUNNABLE,
    )
    approval_mode: ModeOption = ModeOption(
        agents=RUNNABLE,
        help="What tools may do without asking; plan: read only; yolo: everything.",
        flags=("--approval-mode",),
        group=_TOOLS,
        label="Mode",
        hint="what tools may do without asking; the rest is denied or asked about",
        choices={
            "": "the agent's default",
            ApprovalMode.DEFAULT: "default: writes and commands need approval",
            ApprovalMode.AUTO_EDIT: "auto_edit: file edits are allowed",
            ApprovalMode.PLAN: "plan: read-only, no changes",
            ApprovalMode.YOLO: "yolo: everything is allowed",
        },
        dangerous=_is_yolo,
        danger="yolo",
    )
    ask: SwitchOption = SwitchOption(
        help=(
            "Ask in this terminal before each call that needs approval. Requires gemtui's "
            "extension."
        ),
        flags=("--ask",),
        group=_TOOLS,
        label="Ask me",
        hint="requires gemtui's extension; deny rules still apply; less reliable for MCP tools",
        tick="before each call that needs approval",
        brief="asks me",
        agents=RUNNABLE,
    )
    away: AwayOption = AwayOption(
        help="How to handle an approval request while nobody is there to answer it.",
        group=_TOOLS,
        label="When I'm away",
        hint="how to handle approval requests while gemtui is closed",
        choices={
            Away.WAIT: "wait for my answer, for days if necessary",
            Away.REFUSE: "deny the call",
        },
        needs="ask",
        brief="denies requests while I'm away",
        agents=RUNNABLE,
    )
    permissions: LevelsOption = LevelsOption(
        agents=RUNNABLE,
        help="What groups of tools may do.",
        levels=(
            LevelOption(
                name="file_write",
                agents=RUNNABLE,
                help="Whether tools may write and edit files.",
                flags=("--file-write",),
                group=_TOOLS,
                label="Write files",
                choices=_LEVELS,
                brief="write {}",
            ),
            LevelOption(
                name="shell_execute",
                agents=RUNNABLE,
                help="Whether tools may run shell commands.",
                flags=("--shell",),
                group=_TOOLS,
                label="Run commands",
                choices=_LEVELS,
                brief="shell {}",
                dangerous=_is_allow,
                danger="the allowed commands",
            ),
            LevelOption(
                name="network_access",
                agents=RUNNABLE,
                help="Whether tools may search the web and fetch pages.",
                flags=("--network",),
                group=_TOOLS,
                label="Use the network",
                choices=_LEVELS,
                brief="net {}",
            ),
        ),
    )
    policies: PathsOption = PathsOption(
        agents=RUNNABLE,
        help="A policy file, or the name of one of gemtui's policies; repeatable.",
        flags=("--policy",),
        metavar="NAME|FILE",
        group=_TOOLS,
        label="Policy",
        hint="policy files; edit them in pane 3",
        empty="only the agent's own policies",
        brief="policy {}",
    )
    only_tools: AllOrNamesOption = AllOrNamesOption(
        help="Make only this tool available, such as read_file; repeatable.",
        flags=("--only-tool",),
        metavar="T",
        group=_TOOLS,
        label="Only tools",
        hint="the only tools available; separated by commas",
        empty="every tool",
        brief="only {}",
        unit="tool",
    )
    approved_tools: NamesOption = NamesOption(
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
    )
    disallowed_tools: NamesOption = NamesOption(
        help="Deny this tool; repeatable.",
        flags=("--deny-tool",),
        metavar="T",
        group=_TOOLS,
        label="Denied tools",
        hint="tools that are denied; separated by commas",
        empty="none",
        brief="{} denied",
        unit="tool",
    )
    sandbox: SwitchOption = SwitchOption(
        help="Run in Gemini CLI's sandbox.",
        flags=("--sandbox", "-s"),
        group=_TOOLS,
        label="Sandbox",
        hint="requires docker, podman or sandbox-exec",
        tick="in Gemini CLI's own sandbox",
        brief="sandbox",
    )
    trust: SwitchOption = SwitchOption(
        help="Trust the folder for this run only.",
        flags=("--trust", "--skip-trust"),
        group=_TOOLS,
        label="Trust",
        hint="enables this folder's settings, hooks and MCP servers",
        tick="this folder, for one run",
        brief="trust",
        dangerous=bool,
        danger="trust",
    )
    max_turns: NumberOption = NumberOption(
        help="Stop after N model turns.",
        flags=("--max-turns",),
        metavar="N",
        group=_ENDS,
        label="Max turns",
        hint="the run stops after this many model turns",
        empty="no limit",
        brief="{}",
        unit="turn",
        agents=RUNNABLE,
    )
    timeout: SecondsOption = SecondsOption(
        help="Stop the run after this time: seconds, or a value such as 90s, 10m or 2h.",
        flags=("--timeout",),
        metavar="S",
        group=_ENDS,
        label="Time limit",
        hint="the run is stopped after this time: seconds, or 90s, 10m, 2h",
        empty="no limit",
        brief="timeout {}",
        agents=RUNNABLE,
    )
    idle_timeout: SecondsOption = SecondsOption(
        help=(
            "Stop the run if it prints nothing for this long: seconds, or a value such as 90s, "
            "10m or 2h."
        ),
        flags=("--idle-timeout",),
        metavar="S",
        group=_ENDS,
        label="Silence limit",
        hint="the run is stopped after this long without output: seconds, or 90s, 10m",
        empty="no limit",
        brief="silence {}",
        agents=RUNNABLE,
    )
    budget: DollarsOption = DollarsOption(
        help="Once the run has cost USD dollars, stop it before its next model call.",
        flags=("--budget",),
        metavar="USD",
        group=_ENDS,
        label="Budget",
        hint="US dollars at list prices; once spent, no more model calls are made",
        empty="no limit",
        brief="budget {}",
    )
    wait_for_quota: SwitchOption = SwitchOption(
        help=(
            "If the quota is used up, wait until it is renewed and continue, provided the renewal "
            "time is known."
        ),
        flags=("--wait-for-quota",),
        group=_ENDS,
        label="Quota",
        hint="only if Gemini CLI or Google says when the quota will be renewed",
        tick="wait for the quota to reset, then continue",
        brief="waits for the quota",
    )
    extensions: NamesOption = NamesOption(help="The extensions to enable.", kept=Kept.QUEUE)
    mcp_servers: NamesOption = NamesOption(help="The MCP servers to enable.", kept=Kept.QUEUE)
    environment: VariablesOption = VariablesOption(
        help="Environment variables to add to the process.",
        kept=Kept.NOWHERE,
        agents=RUNNABLE,
    )
    prompt_in_argv: SwitchOption = SwitchOption(
        help=(
            "Pass the prompt as a command-line argument, where `ps` shows it, instead of on stdin."
        ),
        kept=Kept.QUEUE,
    )
    approve: CallbackOption = CallbackOption(
        help="A function that is asked for approval before tool calls.",
        kept=Kept.NOWHERE,
        agents=RUNNABLE,
    )
    abort: EventOption = EventOption(
        help="An event that aborts the run when it is set.",
        kept=Kept.NOWHERE,
        agents=RUNNABLE,
    )

    def __post_init__(self) -> None:
        """Raise OptionError for a number of a session, or a tool's name that must be a mistake.

        Blanks around the id of the session are removed, as by the CLI, which would read a number as
        a place in its own list, and so continue a session that gemtui has made no backup of.
        """
        if isinstance(self.resume, str):
            object.__setattr__(self, "resume", self.resume.strip())
            if self.resume.isdecimal():
                raise OptionError(
                    f"{self.resume} is a number: name the session by its full id", option="resume"
                )
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
        for option in _declared():
            value = getattr(self, option.name)
            if value is not None:
                option.check(value)
            if value != option.default and self.agent not in option.agents:
                what = f"{WORDS[self.agent].program} has no such option in gemtui"
                raise _wrong(option.name, what, ": ")
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
    options: list[RunOption] = []
    for option in _declared():
        options += option.levels if isinstance(option, LevelsOption) else [option]
    return tuple(options)


@cache
def _declared() -> tuple[RunOption, ...]:
    return tuple(vars(AgentOptions)[field.name] for field in fields(AgentOptions))


def option_value(options: AgentOptions, name: str) -> Any:
    """Return the value of the option, or the permission level, that has this name."""
    return getattr(options.permissions if name in CAPABILITIES else options, name, None)


def with_values(options: AgentOptions, values: Mapping[str, Any]) -> AgentOptions:
    """Return a copy of the options with some values replaced. Raises OptionError.

    `values`: maps names of options and permission levels to their new values.
    """
    levels = {
        name: level
        for name in CAPABILITIES
        if (level := values.get(name, option_value(options, name))) is not None
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
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+) *([smh]?)", text.strip(), re.ASCII)
    if match is None:
        raise OptionError(
            f"{text.strip()!r} is not a duration: give seconds, or a value such as 90s, 10m or 2h"
        )
    return float(match[1]) * _UNITS[match[2]]


def dollars_text(amount: float) -> str:
    """Format US dollars: `$2.00`, or `$0.005` if cents are too coarse."""
    return f"${amount:,.2f}" if round(amount, 2) == round(amount, 6) else f"${amount:,.6g}"


def dollars(text: str) -> float:
    """Parse an amount of US dollars: `2`, `0.50`, `$2`. Raises OptionError."""
    match = re.fullmatch(r"\$? ?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)", text.strip(), re.ASCII)
    if match is None:
        raise OptionError(
            f"{text.strip()!r} is not an amount of money: give US dollars, such as 2 or 0.50"
        )
    return float(match[1])


def _require(name: str, value: object, kinds: tuple[type, ...]) -> None:
    number = isinstance(value, bool) and int in kinds  # bool is a subclass of int
    if value is not None and (number or not isinstance(value, kinds)):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise OptionError(f"{name} must be {names}, not {value!r}")


def _items(name: str, value: object) -> tuple[Any, ...]:
    if isinstance(value, str | bytes | os.PathLike) or not isinstance(value, Iterable):
        raise OptionError(f"{name} must be a list, not {value!r}: write [{value!r}]")
    return tuple(value)


def _names(name: str, value: object) -> tuple[str, ...]:
    """Return names as a tuple. Raises OptionError for anything but a list of strings.

    A string is rejected, because its characters would be treated as names, and nothing would be
    denied. `name`: the option's name.
    """
    items = _items(name, value)
    for at, item in enumerate(items):
        if not isinstance(item, str):
            raise OptionError(f"{name}[{at}] must be a name, not {item!r}")
    return items
