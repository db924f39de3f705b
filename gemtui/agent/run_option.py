"""Run options: kind, texts and flag of each, where it is saved, and its dangers.

Each field of `AgentOptions` carries a `RunOption`. The command line, the dialog, the summary of the
next run, the queue and the remembered options of a folder are derived from them.
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
    """An integer, 0 or more."""
    SECONDS = auto()
    """A time limit of more than 0 seconds; people may write `90s`, `10m`, `2h`."""
    DOLLARS = auto()
    """An amount of more than 0 US dollars; people may write `$2` or `0.50`."""
    SWITCH = auto()
    CHOICE = auto()
    """One of `RunOption.values`."""
    PATH = auto()
    NAMES = auto()
    """Names of tools."""
    PATHS = auto()
    OBJECT = auto()
    """A Python object, which can't be typed."""


class Kept(Enum):
    """The place where a value is saved for later runs."""

    NOWHERE = auto()
    """Nowhere: it belongs to one folder, session or process."""
    QUEUE = auto()
    """With the queued prompts of a run."""
    FOLDER = auto()
    """With the queue and with the folder's options, except for dangerous values."""


def _never(_value: Any) -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class RunOption:
    """A run option.

    * `help`: its description on the command line and in the manual.
    * `flags`: empty = it can only be set in Python.
    * `group`, `label`, `hint`: its group and its texts in the dialog, where the hint replaces
      `help`; no label = it is not in the dialog.
    * `tick`: the text beside a switch's box.
    * `empty`: the meaning of an empty field.
    * `choices`: a text for each value of a choice, with "" for none.
    * `needs`: the switch without which the option has no effect.
    * `brief`: its form in a summary of the next run; "" = it is left out. `unit`: the noun for what
      is counted there.
    * `dangerous`: whether a value lets commands run unasked, or trusts a folder that nobody has
      trusted. `danger`: a description of such a value.
    * `name`, `default`, `values`: derived from the field, and `kind`, unless it is given, from its
      type.
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


def kind_of(wanted: Any, about: object = None) -> tuple[OptionKind, tuple[str, ...]]:
    """Return the kind of a field, and the values of a choice.

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
