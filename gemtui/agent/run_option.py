"""What one option of a run is: its kind, its words, its flag, where it is kept, what is dangerous.

Each field of `AgentOptions` carries one of these. The command line, the dialog, the line about the
next run, the queue and the options of a folder are derived from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from pathlib import Path
from types import UnionType
from typing import Any, get_args


class OptionKind(Enum):
    """How a value is given, checked and written as text."""

    TEXT = auto()
    NUMBER = auto()
    """A whole number, 0 or more."""
    SECONDS = auto()
    """A time limit of more than 0 seconds; people may write `90s`, `10m`, `2h`."""
    SWITCH = auto()
    CHOICE = auto()
    """One of `RunOption.values`."""
    PATH = auto()
    NAMES = auto()
    """Names of tools."""
    PATHS = auto()
    OBJECT = auto()
    """A value of a program, which nobody types."""


class Kept(Enum):
    """Where the value is kept for later runs."""

    NOWHERE = auto()
    """It belongs to one folder, session or process."""
    QUEUE = auto()
    """With the prompts that wait behind a run."""
    FOLDER = auto()
    """There, and with the options of a folder, except for dangerous values."""


def _never(_value: Any) -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class RunOption:
    """One option.

    `help`: what it does, on the command line and in the manual. `flags`: empty = a program alone
    gives it. `group`, `label`, `hint`: its place and its words in the dialog, the hint instead of
    `help`; no label = it is not there. `tick`: what a switch says beside its box. `empty`: what an
    empty field means. `choices`: a text for each value of a choice, "" for none. `needs`: the
    switch without which it means nothing. `brief`: how a value is said in a line about the next
    run, "" = it is not; `unit`: what is counted there. `dangerous`: whether a value lets commands
    run unasked, or trusts what nobody has trusted; `danger`: such a value in words. `name`, `kind`,
    `default` and `values` follow from the field.
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


def kind_of(wanted: Any) -> tuple[OptionKind, tuple[str, ...]]:
    """Return the kind of a field of this type, and the values of a choice."""
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
