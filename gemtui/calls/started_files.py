"""Find the files of a project that Gemini CLI's settings, or git, start as programs.

A model that may write such a file could run its own code, at the next call even, if a hook starts
the file.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from gemtui.calls.setting_effects import commands_of
from gemtui.calls.shell.git_repository import GitProgram, programs_of
from gemtui.files import resolved
from gemtui.paths import typed_path

_PROJECT: Final = re.compile(
    r"\$(?:(?:GEMINI|CLAUDE)_PROJECT_DIR|GEMINI_CWD|PWD)\b"
    r"|\$\{(?:(?:GEMINI|CLAUDE)_PROJECT_DIR|GEMINI_CWD|PWD|workspacePath)\}"
)
"""Variables of hooks that name the folder of the run."""


def starts_it(settings: Mapping[str, Any], project: Path, path: Path) -> str | None:
    """Return what starts a file of the project as a program, as a clause, or None.

    `settings`: those of Gemini CLI, merged. `project`, `path`: absolute, with links resolved. Files
    that such a program loads in turn are not found.
    """
    for command in commands_of(settings):
        folder = resolved(project / _PROJECT.sub(str(project), command.folder))
        if any(resolved(folder / name) == path for name in _names(command.words, project)):
            return "Gemini CLI's settings start it as a program"
    if any(_git_starts(each, project, path) for each in programs_of(project)):
        return "git runs it automatically, for example when you commit"
    return None


def _git_starts(named: GitProgram, project: Path, path: Path) -> bool:
    if named.hooks:
        return path.is_relative_to(resolved(named.folder / typed_path(named.command)))
    names = _names((named.command,), project)
    return any(resolved(named.folder / typed_path(name)) == path for name in names)


def _names(words: tuple[str, ...], project: Path) -> Iterator[str]:
    """Yield the paths that the words of a command may name."""
    whole = [_PROJECT.sub(str(project), word).replace("\0", "") for word in words]
    yield from whole
    pieces = [piece for word in whole for piece in _split(word)]
    for before, piece in pairwise(["", *pieces]):
        yield from (piece, piece.partition("=")[2])
        if before == "-m":
            module = piece.replace(".", "/")
            yield from (f"{module}.py", f"{module}/__main__.py")


def _split(text: str) -> list[str]:
    with suppress(ValueError):
        return [piece.strip(";&|()<>") for piece in shlex.split(text)]
    return text.split()
