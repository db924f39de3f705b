"""The seal: a secret token in the arguments of the calls that a gated run allows.

A gated run is one that asks the user for approval. Its policy allows calls that a headless run
would otherwise be denied, but only if their arguments contain this token, which is new for each
run. The token does not affect the call, and users needn't see it. The CLI stores the token with the
arguments, so `unsealed` removes it when they are read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

PROPERTY = "gemtui_gate"
"""The argument that holds the token, except in shell calls.

In shell calls, the token is in `dir_path`.
"""
_SHELL, _FOLDER = "run_shell_command", "dir_path"
_MARK = r"gemtui-[0-9a-f]{32}"
_IN_FOLDER = re.compile(rf"/?(?:{_MARK}/\.\.(?:/+|\Z))+(?=(?P<rest>.*))", re.DOTALL)
NOTICE = "[System] Tool input parameters were modified by a hook before execution."
"""How the output of a call whose arguments a hook has changed ends."""
_CHANGED = re.compile(rf"\s*{re.escape(NOTICE)}\s*\Z")


def new_seal() -> str:
    """Return a new random token for one run, which can't be guessed."""
    return f"gemtui-{os.urandom(16).hex()}"


def sealed(tool: str, arguments: Mapping[str, Any], seal: str) -> dict[str, Any]:
    """Return a call's arguments with the token, replacing an earlier token.

    When the CLI checks the parts of a shell command one by one, it only passes on `command` and
    `dir_path`. So in shell calls, the token is put into `dir_path`, as a component followed by
    `..`, which cancels it out; no such folder need exist.
    """
    plain = unsealed(arguments)
    if tool != _SHELL:
        return {**plain, PROPERTY: seal}
    folder = plain.get(_FOLDER)
    if not isinstance(folder, str) or not folder:
        folder = "."
    root = "/" if folder.startswith("/") else ""
    return {**plain, _FOLDER: f"{root}{seal}/../{folder.removeprefix('/')}"}


def seal_pattern(seal: str, *, shell: bool) -> str:
    """Return the pattern by which a policy rule recognises calls that contain `seal`.

    `shell`: whether the rule is for shell calls, which hold the token in a different argument.
    """
    carries = rf'"{_FOLDER}":"/?{seal}/\.\./' if shell else f'"{PROPERTY}":"{seal}"'
    return rf"\x00{carries}"


def unsealed(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a call's arguments without the token that gemtui added to them.

    If there is no token, the same object is returned.
    """
    folder, mark = arguments.get(_FOLDER), arguments.get(PROPERTY)
    match = _IN_FOLDER.match(folder) if isinstance(folder, str) else None
    marked = isinstance(mark, str) and re.fullmatch(_MARK, mark) is not None
    if match is None and not marked:
        return arguments
    plain = dict(arguments)
    if marked:
        del plain[PROPERTY]
    if match is not None and isinstance(folder, str):
        rest = match["rest"]
        plain[_FOLDER] = f"/{rest}" if folder.startswith("/") else rest
        if plain[_FOLDER] == ".":
            del plain[_FOLDER]
    return plain


def as_returned(tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a call's arguments as they are once a token was put in and taken out again.

    This may change how a command's folder is written, but never which folder it is.
    """
    return unsealed(sealed(tool, arguments, new_seal()))


def carries(arguments: Mapping[str, Any], seal: str) -> bool:
    """Return whether a call's arguments contain this very token where policies look for it."""
    folder = arguments.get(_FOLDER)
    return arguments.get(PROPERTY) == seal or (isinstance(folder, str) and seal in folder)


def is_sealed(arguments: object) -> bool:
    """Return whether a call's arguments contain a token that gemtui added to them."""
    return isinstance(arguments, Mapping) and unsealed(arguments) is not arguments


def changed_by_hook(output: str) -> bool:
    """Return whether the CLI's output says that a hook changed the arguments.

    In stored calls that have the token, gemtui removes this notice, because the change was gemtui's
    own: it added the token.
    """
    return _CHANGED.search(output) is not None


def without_notice(output: str) -> str:
    """Return a tool's output without the notice that a hook changed the arguments."""
    return _CHANGED.sub("", output)
