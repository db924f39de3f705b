"""The options of a run that is still to come, as JSON holds them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec

from gemtui.agent.options import AgentOptions
from gemtui.errors import OptionError
from gemtui.policy.file.levels import PermissionPolicy

_PERMISSIONS = "permissions"
_OF_ONE_PROCESS = {"cwd", "resume", "environment", "approve", "abort"}
_NAMES = [each.name for each in fields(AgentOptions) if each.name not in _OF_ONE_PROCESS]


def to_dict(options: AgentOptions) -> dict[str, Any]:
    """Return all that does not belong to one folder, session or process."""
    return {
        name: msgspec.to_builtins(getattr(options, name), enc_hook=os.fspath) for name in _NAMES
    }


def from_dict(stored: Mapping[str, Any], *, cwd: Path, resume: str | None) -> AgentOptions:
    """Return the options that were stored, for a session in a folder. Raises OptionError."""
    given = {name: stored[name] for name in _NAMES if name in stored}
    try:
        if given.get(_PERMISSIONS) is not None:
            given[_PERMISSIONS] = PermissionPolicy(**given[_PERMISSIONS])
        return AgentOptions(**given, cwd=cwd, resume=resume)
    except TypeError as error:
        raise OptionError(f"these are no options of a run: {error}") from None
