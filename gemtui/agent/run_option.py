"""The declaration of a run option: its kind, labels, flags, storage and dangers.

Each field of `AgentOptions` has a `RunOption`. The command line, the dialog, the summary of the
next run, the queue and a folder's remembered options are all derived from these declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from pathlib import Path
from types import UnionType
from typing import Any, get_args


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
