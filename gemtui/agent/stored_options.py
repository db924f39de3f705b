"""The options of a run that is still to come, as JSON holds them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from gemtui.agent.options import AgentOptions, option_value, run_options, with_values
from gemtui.agent.run_option import Kept
from gemtui.errors import OptionError
from gemtui.policy.file.levels import CAPABILITIES

_PERMISSIONS = "permissions"


def to_dict(options: AgentOptions) -> dict[str, Any]:
    """Return all that is set and does not belong to one folder, session or process."""
    found: dict[str, Any] = {}
    for each in run_options():
        value = option_value(options, each.name)
        if each.kept is not Kept.NOWHERE and value != each.default:
            place = found.setdefault(_PERMISSIONS, {}) if each.name in CAPABILITIES else found
            place[each.name] = msgspec.to_builtins(value, enc_hook=os.fspath)
    return found


def from_dict(stored: Mapping[str, Any], *, cwd: Path, resume: str | None = None) -> AgentOptions:
    """Return the options that were stored, for a session in a folder. Raises OptionError."""
    names = {each.name for each in run_options() if each.kept is not Kept.NOWHERE}
    given = {name: value for name, value in stored.items() if name in names - set(CAPABILITIES)}
    levels = stored.get(_PERMISSIONS)
    if not isinstance(levels, dict | None) or set(levels or ()) - set(CAPABILITIES):
        raise OptionError(f"these are no options of a run: permissions are {levels!r}")
    return with_values(AgentOptions(cwd=cwd, resume=resume), {**given, **(levels or {})})
