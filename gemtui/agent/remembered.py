"""The options that a person had the run pane remember for a folder; `gemtui run` reads none of it.

Each folder has a file of its own, so that of two gemtui none undoes what the other remembered. What
lets commands run unasked is never remembered: it would still hold when nobody thinks of it.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from gemtui.agent.approval import Away
from gemtui.agent.options import AgentOptions
from gemtui.errors import OptionError
from gemtui.files import resolved, write_whole
from gemtui.jsonfile import read_object
from gemtui.jsonout import encode
from gemtui.own_folders import make_own_folder
from gemtui.paths import state_dir
from gemtui.policy.edit.named_policies import policies_dir
from gemtui.policy.file.levels import CAPABILITIES, Level, PermissionPolicy
from gemtui.policy.model.rules import ApprovalMode


class _Kept(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file; names and defaults are those of `AgentOptions`."""

    folder: str
    model: str | None = None
    max_turns: int | None = None
    approval_mode: ApprovalMode | None = None
    permissions: dict[str, Level] | None = None
    only_tools: tuple[str, ...] | None = None
    disallowed_tools: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    include_directories: tuple[str, ...] = ()
    sandbox: bool = False
    timeout: float | None = None
    idle_timeout: float | None = None
    ask: bool = False
    away: Away = Away.WAIT


_SHELL = "shell_execute"
_NAMES = tuple(name for name in _Kept.__struct_fields__ if name not in ("folder", "permissions"))


def remembered(folder: Path) -> AgentOptions | None:
    """Return the options for a run in this folder; None if none are remembered.

    They are as they were: what was there then may be gone. Raises OSError, whose `filename` is the
    file, if they can't be read.
    """
    path = _file(folder)
    try:
        kept = msgspec.convert(read_object(path), _Kept)
        levels = None if kept.permissions is None else PermissionPolicy(**kept.permissions)
        given = {name: getattr(kept, name) for name in _NAMES}
        options = AgentOptions(cwd=folder, permissions=levels, **given)
    except FileNotFoundError:
        return None
    except (msgspec.ValidationError, OptionError, TypeError) as error:
        raise OSError(errno.EINVAL, f"no options of a run: {error}", str(path)) from None
    return rememberable(options)


def remember(options: AgentOptions) -> None:
    """Remember the options for their folder. Raises OSError."""
    assert options.cwd is not None
    path, kept = _file(options.cwd), rememberable(options)
    given = {name: getattr(kept, name) for name in _NAMES}
    for name in ("policies", "include_directories"):
        given[name] = tuple(map(_text, given[name]))
    given["permissions"] = _levels(kept) or None
    value = _Kept(folder=str(resolved(options.cwd)), **given)
    make_own_folder(path.parent)
    write_whole(path, (encode(msgspec.to_builtins(value)), b"\n"), durable=True)


def _text(path: Path) -> str:
    """A path as JSON can hold it. Raises OSError."""
    try:
        return str(path).encode().decode()
    except UnicodeEncodeError:
        words = "its name is not UTF-8, and can't be remembered"
        raise OSError(errno.EILSEQ, words, str(path)) from None


def forget(folder: Path) -> None:
    """Remember nothing for this folder from now on. Raises OSError."""
    _file(folder).unlink(missing_ok=True)


def rememberable(options: AgentOptions) -> AgentOptions:
    """Return what can be remembered of the options: nothing of one run, nothing dangerous."""
    given, levels = {name: getattr(options, name) for name in _NAMES}, _levels(options)
    if options.approval_mode is ApprovalMode.YOLO:
        given["approval_mode"] = None
    if levels.get(_SHELL) is Level.ALLOW:
        del levels[_SHELL]
    given["permissions"] = PermissionPolicy(**levels) if levels else None
    given["policies"] = tuple(filter(_is_ours, options.policies))
    return AgentOptions(cwd=options.cwd, **given)


def left_out(options: AgentOptions) -> Iterator[str]:
    """Yield what is dangerous in the options, and therefore not remembered, in words."""
    if options.approval_mode is ApprovalMode.YOLO:
        yield "yolo"
    if options.trust:
        yield "trust"
    if _levels(options).get(_SHELL) is Level.ALLOW:
        yield "the allowed commands"
    if options.approved_tools:
        yield "the allowed tools"
    if not all(map(_is_ours, options.policies)):
        yield "a policy file that is not gemtui's"


def _is_ours(policy: Path) -> bool:
    """Whether a policy file is where only the user writes: one in a project may allow more soon."""
    return resolved(policy).parent == resolved(policies_dir())


def _levels(options: AgentOptions) -> dict[str, Level]:
    """The levels that are named."""
    named = {name: getattr(options.permissions, name, None) for name in CAPABILITIES}
    return {name: Level(level) for name, level in named.items() if level is not None}


def _file(folder: Path) -> Path:
    name = hashlib.sha256(os.fsencode(resolved(folder))).hexdigest()[:32]
    return state_dir() / "run-options" / f"{name}.json"
