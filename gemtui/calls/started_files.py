"""Find project files that Gemini CLI's settings or git start as programs.

A model that may write such a file could make Gemini CLI or git run the model's own code. If a hook
starts the file, this happens as early as the next tool call.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from gemtui.calls.setting_effects import commands_of
from gemtui.calls.shell.git_repository import GitProgram, programs_of
from gemtui.files import read_small, resolved
from gemtui.paths import gemini_home, typed_path

_PROJECT: Final = re.compile(
    r"\$(?:(?:GEMINI|CLAUDE)_PROJECT_DIR|GEMINI_CWD|PWD)\b"
    r"|\$\{(?:(?:GEMINI|CLAUDE)_PROJECT_DIR|GEMINI_CWD|PWD|workspacePath)\}"
)
"""Variables in hook commands whose value is the run's folder."""


def starts_it(settings: Mapping[str, Any], project: Path, path: Path) -> str | None:
    """Return what starts a project file as a program, as a clause, or None.

    `settings`: Gemini CLI's settings, merged from all files. `project`, `path`: absolute, with
    links resolved. Files that such a program loads in turn are not recognised.
    """
    for command in commands_of(settings):
        folder = resolved(project / _PROJECT.sub(str(project), command.folder))
        if any(resolved(folder / name) == path for name in _names(command.words, project)):
            return "Gemini CLI's settings start it as a program"
    if any(_git_starts(each, project, path) for each in programs_of(project)):
        return "git runs it automatically, for example when you commit"
    return None


def is_program(path: Path, environ: Mapping[str, str]) -> bool:
    """Return whether a shell runs this file when its name is entered as a command.

    For that, the file must be executable, and its folder must be in PATH. So a new file doesn't
    count, because no tool makes files executable. `path`: absolute, with links resolved.
    """
    folders = (entry for entry in environ.get("PATH", "").split(":") if entry.startswith("/"))
    return os.access(path, os.X_OK) and any(resolved(Path(each)) == path.parent for each in folders)


def _git_starts(named: GitProgram, project: Path, path: Path) -> bool:
    if named.hooks:
        return path.is_relative_to(resolved(named.folder / typed_path(named.command)))
    names = _names((named.command,), project)
    return any(resolved(named.folder / typed_path(name)) == path for name in names)


def _names(words: tuple[str, ...], project: Path) -> Iterator[str]:
    """Yield all paths that the words of a command may refer to."""
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


_LARGEST: Final = 1_000_000
_HEAD: Final = re.compile(rb"\A\s*---[ \t]*\r?\n(.*?)\r?\n---", re.DOTALL)
_STARTS: Final = re.compile(rb"mcp_servers|agent_card|\\")
"""Keys in an agent file's front matter that can start programs.

A backslash counts as well, because an escape sequence could spell one of the keys.
"""


def agents_that_start(project: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the agent files of user, project and extensions that may start programs.

    A file is included if it can't be read or its front matter can't be parsed.
    """
    home = gemini_home(environ)
    folders = (project / ".gemini" / "agents", home / "agents")
    for folder in (*folders, *sorted(home.glob("extensions/*/agents"))):
        yield from filter(_may_start, sorted(folder.glob("*.md")))


def _may_start(file: Path) -> bool:
    text = None
    with suppress(OSError):
        text = read_small(file, _LARGEST)
    head = None if text is None else _HEAD.match(text)
    return head is None or _STARTS.search(head[1]) is not None
