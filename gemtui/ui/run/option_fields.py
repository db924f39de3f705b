"""Conversion between a run's options and the texts of a form; pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gemtui.agent.options import (
    AgentOptions,
    dollars,
    option_value,
    run_options,
    seconds,
    seconds_text,
    with_values,
)
from gemtui.agent.run_option import OptionKind, RunOption
from gemtui.errors import OptionError
from gemtui.paths import current_folder, typed_path
from gemtui.text import Clean, short_path, visible_line
from gemtui.ui.rules.form_fields import names


def is_typed(option: RunOption) -> bool:
    """Return whether the dialog has a text field for an option."""
    chosen = option.kind in (OptionKind.SWITCH, OptionKind.CHOICE) or option.name == "policies"
    return bool(option.label) and not chosen


def texts_of(options: AgentOptions) -> dict[str, Clean]:
    """Return the texts of the fields, by the names of the options."""
    return {
        each.name: visible_line(_text(each, option_value(options, each.name)).strip())
        for each in filter(is_typed, run_options())
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


def options_of(texts: Mapping[str, str], base: AgentOptions) -> AgentOptions:
    """Return the options that the fields' texts describe.

    Unchanged fields keep the value from `base`, because a name may contain characters that can't be
    typed. Paths are relative to the run's folder. Raises OptionError, which names the option.
    """
    before = texts_of(base)
    changed = {name: text.strip() for name, text in texts.items() if text.strip() != before[name]}
    folder = base.cwd or current_folder()
    if "cwd" in changed:
        folder = current_folder() / typed_path(changed.pop("cwd"))
    made: dict[str, Any] = {"cwd": folder}
    for option in run_options():
        if (text := changed.get(option.name)) is not None:
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
            return seconds(text)
        case OptionKind.DOLLARS:
            return dollars(text)
        case OptionKind.NAMES:
            return names(text)
        case OptionKind.PATHS:
            return tuple(folder / typed_path(name) for name in names(text))
    return text


def _number(text: str) -> int:
    if not re.fullmatch("-?[0-9]+", text, re.ASCII):
        raise OptionError(f"{text} is not a whole number")
    return int(text)
