"""The options the run pane remembers for each folder; `gemtui run` ignores them.

Each folder has its own file, so that two gemtui processes don't overwrite each other's options.
Options that let commands run unasked are never remembered, because they would still apply after the
user has forgotten about them.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from gemtui.agent.options import AgentOptions, Kept, option_value, run_options, with_values
from gemtui.errors import OptionError
from gemtui.files import resolved, write_whole
from gemtui.jsonfile import read_object
from gemtui.jsonout import encode
from gemtui.paths import make_own_folder, state_dir
from gemtui.policy.file.levels import CAPABILITIES
from gemtui.policy.file.policy_files import policies_dir


def options_for(folder: Path) -> AgentOptions | None:
    """Return the remembered options for a run in this folder; None if there are none.

    The options may name files and folders that no longer exist. Raises OSError if the options can't
    be read; the exception's `filename` is the options file.
    """
    path = _file(folder)
    try:
        kept = read_object(path)
        if not isinstance(kept.get("folder"), str):
            raise OptionError("the folder's name is missing")
        return rememberable(from_dict(kept, cwd=folder))
    except FileNotFoundError:
        return None
    except OptionError as error:
        raise OSError(
            errno.EINVAL, f"not a valid file of run options: {error}", str(path)
        ) from None


def remember_options(options: AgentOptions) -> None:
    """Save options for the folder that they name as `cwd`. Raises OSError."""
    assert options.cwd is not None
    path = _file(options.cwd)
    kept = rememberable(options)
    for named in (*kept.policies, *kept.include_directories):
        _require_text(named)
    make_own_folder(path.parent)
    value = {"folder": str(resolved(options.cwd)), **to_dict(kept)}
    write_whole(path, (encode(value), b"\n"), durable=True)


def remember_mode(options: AgentOptions) -> None:
    """Save the approval mode and the `ask` option for the folder `options.cwd`.

    The folder's other options are kept. If the mode is dangerous, nothing is saved. Raises OSError.
    """
    assert options.cwd is not None
    if rememberable(options).approval_mode is not options.approval_mode:
        return
    before = options_for(options.cwd) or AgentOptions(cwd=options.cwd)
    after = replace(before, approval_mode=options.approval_mode, ask=options.ask)
    if after != before:
        remember_options(after)


def _require_text(path: Path) -> None:
    """Raise OSError for a path that JSON can't represent."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        problem = "the folder's name is not valid UTF-8, so gemtui can't remember these options"
        raise OSError(errno.EILSEQ, problem, str(path)) from None


def forget_options(folder: Path) -> None:
    """Delete the options that are remembered for this folder. Raises OSError."""
    _file(folder).unlink(missing_ok=True)


def rememberable(options: AgentOptions) -> AgentOptions:
    """Return a copy of the options without those that must not be remembered.

    These are dangerous options, and options for one run only.
    """
    values = {
        option.name: value
        for option in run_options()
        if option.kept is Kept.FOLDER
        and not option.dangerous(value := option_value(options, option.name))
    }
    values["policies"] = tuple(filter(_is_ours, options.policies))
    return with_values(AgentOptions(cwd=options.cwd), values)


def not_rememberable(options: AgentOptions) -> Iterator[str]:
    """Yield a description of each option that is too dangerous to remember."""
    for option in run_options():
        if option.dangerous(option_value(options, option.name)):
            yield option.danger
    if not all(map(_is_ours, options.policies)):
        yield "a policy file from outside gemtui's policy folder"


def _is_ours(policy: Path) -> bool:
    """Return whether a policy file is in gemtui's policy folder.

    Files elsewhere aren't remembered, because other people or programs can change them. For
    example, a file in the project may allow more tomorrow.
    """
    return resolved(policy).parent == resolved(policies_dir())


def _file(folder: Path) -> Path:
    name = hashlib.sha256(os.fsencode(resolved(folder))).hexdigest()[:32]
    return state_dir() / "run-options" / f"{name}.json"


_PERMISSIONS = "permissions"


def to_dict(options: AgentOptions) -> dict[str, Any]:
    """Return the options that differ from their defaults, as JSON values.

    Options that belong to one folder, session or process (`Kept.NOWHERE`) are left out.
    """
    values: dict[str, Any] = {}
    for option in run_options():
        value = option_value(options, option.name)
        if option.kept is not Kept.NOWHERE and value != option.default:
            target = values.setdefault(_PERMISSIONS, {}) if option.name in CAPABILITIES else values
            target[option.name] = msgspec.to_builtins(value, enc_hook=os.fspath)
    return values


def from_dict(stored: Mapping[str, Any], *, cwd: Path, resume: str | None = None) -> AgentOptions:
    """Return the options in a mapping that `to_dict` returned, for a run in `cwd`.

    `resume`: the id of the session to continue. Raises OptionError.
    """
    names = {option.name for option in run_options() if option.kept is not Kept.NOWHERE}
    values = {name: value for name, value in stored.items() if name in names - set(CAPABILITIES)}
    levels = stored.get(_PERMISSIONS)
    if not isinstance(levels, dict | None) or set(levels or ()) - set(CAPABILITIES):
        raise OptionError(f"not valid run options: permissions = {levels!r}")
    return with_values(AgentOptions(cwd=cwd, resume=resume), {**values, **(levels or {})})
