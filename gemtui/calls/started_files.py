"""Find project files that Gemini CLI's settings, or git, start as programs.

A model that may write such a file could run its own code. If a hook starts the file, that happens
as early as the next call.
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
from gemtui.files import read_small, resolved
from gemtui.paths import gemini_home

_PROJECT: Final = re.compile(
    r"\$(?:(?:GEMINI|CLAUDE)_PROJECT_DIR|GEMINI_CWD|PWD)\b"
    r"|\$\{(?:(?:GEMINI|CLAUDE)_PROJECT_DIR|GEMINI_CWD|PWD|workspacePath)\}"
)
"""Variables in hooks that name the run's folder."""
_HOOKS_PATH: Final = re.compile(rb"^[ \t]*hookspath[ \t]*=[ \t]*\"?([^\"\r\n#;]+)", re.I | re.M)


def starts_it(settings: Mapping[str, Any], project: Path, path: Path) -> str | None:
    """Return what starts a project file as a program, as a clause, or None.

    `settings`: Gemini CLI's settings, merged. `project`, `path`: absolute, with links resolved.
    Files that such a program loads in turn are not found.
    """
    for command in commands_of(settings):
        folder = resolved(project / _PROJECT.sub(str(project), command.folder))
        if any(resolved(folder / name) == path for name in _names(command.words, project)):
            return "Gemini CLI's settings start it as a program"
    hooks = _git_hooks(project)
    if hooks is not None and path.is_relative_to(hooks):
        return "git runs it automatically, for example when you commit"
    return None


def _names(words: tuple[str, ...], project: Path) -> Iterator[str]:
    """Yield the paths that a command's words may name."""
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


def _git_hooks(project: Path) -> Path | None:
    """Return the hooks folder named in the repository's configuration."""
    for place in (project, *project.parents):
        with suppress(OSError):
            found = _HOOKS_PATH.findall(read_small(place / ".git" / "config"))
            return resolved(place / found[-1].decode(errors="replace").strip()) if found else None
    return None


_LARGEST: Final = 1_000_000
_HEAD: Final = re.compile(rb"\A\s*---[ \t]*\r?\n(.*?)\r?\n---", re.DOTALL)
_STARTS: Final = re.compile(rb"mcp_servers|agent_card|\\")
"""A key in the front matter, or a backslash, because an escape could spell a key."""


def agents_that_start(project: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the user's and the project's agent files that may start programs.

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
