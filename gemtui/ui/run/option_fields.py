"""The options of a run as the texts of a form, and back; pure functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gemtui.agent.options import AgentOptions, seconds, seconds_text
from gemtui.errors import OptionError
from gemtui.paths import current_folder, typed_path
from gemtui.text import Clean, short_path, visible_line
from gemtui.ui.rules.form_fields import names


def texts_of(options: AgentOptions) -> dict[str, Clean]:
    """Return what stands in the fields, by the names of the options."""
    texts = {
        "model": options.model or "",
        "cwd": short_path(options.cwd or current_folder()),
        "include_directories": ", ".join(map(short_path, options.include_directories)),
        "resume": options.resume or "",
        "only_tools": ", ".join(options.only_tools or ()),
        "approved_tools": ", ".join(options.approved_tools),
        "disallowed_tools": ", ".join(options.disallowed_tools),
        "max_turns": "" if options.max_turns is None else str(options.max_turns),
        "timeout": _time(options.timeout),
        "idle_timeout": _time(options.idle_timeout),
    }
    return {name: visible_line(text.strip()) for name, text in texts.items()}


def options_of(texts: Mapping[str, str], base: AgentOptions) -> AgentOptions:
    """Return the options that the fields describe.

    A field that is as `base` filled it keeps its value: a name may hold what can't be typed. Paths
    are seen from the folder of the run. Raises OptionError, which names the option.
    """
    before = texts_of(base)
    changed = {name: text.strip() for name, text in texts.items() if text.strip() != before[name]}
    folder = base.cwd or current_folder()
    if "cwd" in changed:
        folder = current_folder() / typed_path(changed.pop("cwd"))
    made: dict[str, Any] = {"cwd": folder}
    for name, text in changed.items():
        try:
            made[name] = _READERS[name](text, folder) if text else _NOTHING.get(name)
        except OptionError as error:
            raise OptionError(str(error), option=name) from None
    return replace(base, **made)


_NOTHING = {"include_directories": (), "approved_tools": (), "disallowed_tools": ()}
"""What an empty field means; None for all others."""


def _time(limit: float | None) -> str:
    return "" if limit is None else seconds_text(limit)


def _number(text: str, _folder: Path) -> int:
    if not re.fullmatch("-?[0-9]+", text, re.ASCII):
        raise OptionError(f"{text} is not a whole number")
    return int(text)


def _folders(text: str, folder: Path) -> tuple[Path, ...]:
    return tuple(folder / typed_path(name) for name in names(text))


_READERS: Mapping[str, Callable[[str, Path], Any]] = {
    "model": lambda text, _: text,
    "resume": lambda text, _: text,
    "include_directories": _folders,
    "only_tools": lambda text, _: names(text),
    "approved_tools": lambda text, _: names(text),
    "disallowed_tools": lambda text, _: names(text),
    "max_turns": _number,
    "timeout": lambda text, _: seconds(text),
    "idle_timeout": lambda text, _: seconds(text),
}
