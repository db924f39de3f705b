"""The options of a run; `gemtui run` and the config file use the same names."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemtui.agent.approval import Approval, ApprovalRequest, Away
from gemtui.errors import OptionError
from gemtui.files import is_folder
from gemtui.paths import typed_path
from gemtui.policy.file.levels import (
    PermissionPolicy,
    Permissions,
    approval_mode,
    check_names,
    check_near_misses,
)
from gemtui.policy.model.rules import ApprovalMode

Approve = Callable[[ApprovalRequest], Awaitable[Approval]]
"""Answers a question of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """The options of one run. None, or an empty value, leaves the choice to the CLI.

    A mode may be given by its name, a path as text, where `~` is a home directory, and a sequence
    as any iterable, but not as one text. Raises OptionError for a value that is none of these.

    `only_tools`: no other tool exists. `approved_tools`: need no confirmation. `policies`: policy
    files that are loaded between our denies and our allows. `resume`: the full id of a session.
    `max_turns`: 0 or more. `timeout`, `idle_timeout`: seconds. `environment`: added to that of this
    process. `trust`: trust the folder, for this run. `prompt_in_argv`: pass the prompt as
    `--prompt=…`, where `ps` shows it, instead of by a file on stdin. `ask`: a person is asked
    before each call that the policy asks about, by questions in the run's folder. `approve` answers
    these, several at once if need be; it refuses by raising. `away`: what becomes of a question
    while nobody is there. `abort`: setting this event ends the run.
    """

    cwd: Path | None = None
    model: str | None = None
    max_turns: int | None = None
    approval_mode: ApprovalMode | None = None
    permissions: PermissionPolicy | None = None
    only_tools: tuple[str, ...] | None = None
    approved_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    policies: tuple[Path, ...] = ()
    include_directories: tuple[Path, ...] = ()
    sandbox: bool = False
    extensions: tuple[str, ...] = ()
    mcp_servers: tuple[str, ...] = ()
    resume: str | None = None
    timeout: float | None = None
    idle_timeout: float | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    trust: bool = False
    prompt_in_argv: bool = False
    ask: bool = False
    approve: Approve | None = None
    away: Away = Away.WAIT
    abort: asyncio.Event | None = None

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
            sandbox: bool = False,
            extensions: Iterable[str] = (),
            mcp_servers: Iterable[str] = (),
            resume: str | None = None,
            timeout: float | None = None,
            idle_timeout: float | None = None,
            environment: Mapping[str, str] = ...,
            trust: bool = False,
            prompt_in_argv: bool = False,
            ask: bool = False,
            approve: Approve | None = None,
            away: Away | str = Away.WAIT,
            abort: asyncio.Event | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        """Make what was given what the fields are: one text in place of names would be no deny."""
        for kinds, names in _KINDS:
            for name in names:
                _require(name, getattr(self, name), kinds)
        taken: dict[str, object] = {name: _texts(name, getattr(self, name)) for name in _NAMES}
        for name in _FOLDERS:
            paths = _items(name, getattr(self, name))
            for at, path in enumerate(paths):
                _require(f"{name}[{at}]", path, _PATH)
            taken[name] = tuple(map(typed_path, paths))
        taken["environment"] = environment = dict(self.environment or {})
        for pair in environment.items():
            if not all(isinstance(word, str) for word in pair):
                raise OptionError(f"environment must map texts to texts, not {pair!r}")
        if self.approve is not None and not callable(self.approve):
            raise OptionError(f"approve must be a function, not {self.approve!r}")
        if self.cwd is not None:
            taken["cwd"] = typed_path(self.cwd)
        if self.approval_mode is not None:
            taken["approval_mode"] = approval_mode(self.approval_mode)
        taken["away"] = _away(self.away)
        for name, value in taken.items():
            object.__setattr__(self, name, value)

    @property
    def asks(self) -> bool:
        """Whether a person is asked in this run."""
        return self.ask or self.approve is not None

    @property
    def tools(self) -> Permissions:
        """The part of the options that is about tools."""
        return Permissions(
            mode=self.approval_mode,
            levels=self.permissions,
            only_tools=self.only_tools,
            approved_tools=self.approved_tools,
            disallowed_tools=self.disallowed_tools,
        )

    def check(self) -> None:
        """Raise OptionError, naming the option, for a value that can't be used.

        The contents of policy files are checked where the command is made.
        """
        check_names(self.tools)
        check_near_misses(self.tools)
        for name in ("timeout", "idle_timeout"):
            seconds = getattr(self, name)
            if seconds is not None and not seconds > 0:
                raise _wrong(name, f"must be more than 0 seconds, not {seconds}")
        if self.max_turns is not None and self.max_turns < 0:
            raise _wrong("max_turns", f"must be 0 or more, not {self.max_turns}")
        if self.cwd is not None and not is_folder(self.cwd):
            raise _wrong("cwd", f"{self.cwd} is no folder", ": ")
        for path in self.include_directories:
            if not is_folder(path):  # the CLI would not start
                raise _wrong("include_directories", f"{path} is no folder", ": ")


def _wrong(option: str, what: str, joint: str = " ") -> OptionError:
    return OptionError(f"{option}{joint}{what}", option=option, what=what)


_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


def seconds_text(limit: float) -> str:
    """Return a time limit in the largest unit that fits, as `seconds` reads it: `10m`, `90s`."""
    unit = next(unit for unit in "hms" if unit == "s" or limit % _UNITS[unit] == 0)
    return f"{limit / _UNITS[unit]:g}{unit}"


def seconds(text: str) -> float:
    """Return a time limit as people write it: `90`, `90s`, `10m`, `1.5h`. Raises OptionError."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+) *([smh]?)", text.strip(), re.ASCII)
    if found is None:
        raise OptionError(f"{text.strip()!r} is no time: write seconds, or such as 90s, 10m, 2h")
    return float(found[1]) * _UNITS[found[2]]


AnyPath = str | os.PathLike[str]
_NAMES = ("only_tools", "approved_tools", "disallowed_tools", "extensions", "mcp_servers")
_FOLDERS = ("policies", "include_directories")
_PATH = (str, os.PathLike)
_KINDS: tuple[tuple[tuple[type, ...], tuple[str, ...]], ...] = (
    (_PATH, ("cwd",)),
    ((str,), ("model", "approval_mode", "resume")),
    ((int,), ("max_turns",)),
    ((int, float), ("timeout", "idle_timeout")),
    ((bool,), ("sandbox", "trust", "prompt_in_argv", "ask")),
    ((PermissionPolicy,), ("permissions",)),
    ((Mapping,), ("environment",)),
)
"""What a field may be given as, beside None; names and folders are looked at one by one."""


def _away(word: str) -> Away:
    try:
        return Away(word)
    except ValueError:
        raise OptionError(f"away must be one of {', '.join(Away)}, not {word!r}") from None


def _require(name: str, value: object, kinds: tuple[type, ...]) -> None:
    if value is not None and not isinstance(value, kinds):
        words = " or ".join(kind.__name__ for kind in kinds)
        raise OptionError(f"{name} must be {words}, not {value!r}")


def _items(name: str, value: object) -> tuple[Any, ...]:
    if isinstance(value, str | bytes | os.PathLike) or not isinstance(value, Iterable):
        raise OptionError(f"{name} must be a list, not {value!r}: write [{value!r}]")
    return tuple(value)


def _texts(name: str, value: object) -> tuple[str, ...] | None:
    """A sequence of names; only the list of tools that exist may be missing."""
    if value is None and name == "only_tools":
        return None
    items = _items(name, value)
    bad = next((at for at, each in enumerate(items) if not isinstance(each, str)), None)
    if bad is not None:
        raise OptionError(f"{name}[{bad}] must be a name, not {items[bad]!r}")
    return items
