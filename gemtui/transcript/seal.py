"""The mark on the arguments of calls that a gated run lets through.

The policy of such a run allows what a headless run would be refused only where the arguments carry
this mark, which is made anew for each run. It changes nothing of what a call does, and nobody need
see it: the CLI stores the arguments with it, so `unsealed` takes it out where they are read.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Any

PROPERTY = "gemtui_gate"
"""The argument that carries the mark; in shell calls `dir_path` does."""
_SHELL, _FOLDER = "run_shell_command", "dir_path"
_MARK = r"gemtui-[0-9a-f]{32}"
_IN_FOLDER = re.compile(rf"/?(?:{_MARK}/\.\.(?:/+|\Z))+(?=(?P<rest>.*))", re.DOTALL)
_CHANGED = re.compile(
    r"\s*\[System\] Tool input parameters were modified by a hook before execution\.\s*\Z"
)


def new_seal() -> str:
    """Return a mark that nobody can guess."""
    return f"gemtui-{secrets.token_hex(16)}"


def sealed(tool: str, arguments: Mapping[str, Any], seal: str) -> dict[str, Any]:
    """Return the arguments of a call with the mark; one that they had is taken out before.

    The CLI decides on each part of a shell command by `command` and `dir_path` alone, so there the
    mark is a folder that is left again at once, which need not exist.
    """
    plain = unsealed(arguments)
    if tool != _SHELL:
        return {**plain, PROPERTY: seal}
    folder = plain.get(_FOLDER)
    if not isinstance(folder, str) or not folder:
        folder = "."
    root = "/" if folder.startswith("/") else ""
    return {**plain, _FOLDER: f"{root}{seal}/../{folder.removeprefix('/')}"}


def pattern_of(seal: str, *, shell: bool) -> str:
    """Return the pattern by which a policy rule knows the arguments with the mark."""
    carries = rf'"{_FOLDER}":"/?{seal}/\.\./' if shell else f'"{PROPERTY}":"{seal}"'
    return rf"\x00{carries}"


def unsealed(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return arguments without the mark; the same object where there is none."""
    folder, mark = arguments.get(_FOLDER), arguments.get(PROPERTY)
    found = _IN_FOLDER.match(folder) if isinstance(folder, str) else None
    marked = isinstance(mark, str) and re.fullmatch(_MARK, mark) is not None
    if found is None and not marked:
        return arguments
    plain = dict(arguments)
    if marked:
        del plain[PROPERTY]
    if found is not None and isinstance(folder, str):
        rest = found["rest"]
        plain[_FOLDER] = f"/{rest}" if folder.startswith("/") else rest
        if plain[_FOLDER] == ".":
            del plain[_FOLDER]
    return plain


def is_sealed(arguments: object) -> bool:
    """Whether the arguments of a call carry a mark."""
    return isinstance(arguments, Mapping) and unsealed(arguments) is not arguments


def changed_by_hook(output: str) -> bool:
    """Return whether the CLI remarks on a tool's output that a hook changed its arguments.

    Of a stored call with the mark, this remark is taken out: the change was the mark.
    """
    return _CHANGED.search(output) is not None


def without_notice(output: str) -> str:
    """Return a tool's output without the CLI's remark that its arguments were changed by a hook."""
    return _CHANGED.sub("", output)
