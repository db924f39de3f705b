"""The folder that is worth a rule for a written file, and the pattern that lets only it pass.

The engine's text of a call's arguments has NUL marks round every top-level pair, and the path as
the model sent it (assets/gemini-cli.md#args-text): so a pattern can match exactly one pair, and has
to shut `..` out by itself.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LENGTH = 2000
"""Characters of a pattern; the CLI drops a rule beyond 2,048."""

_SPECIAL = re.compile(r"[.*+?^${}()|\[\]\\]")
_ODD = re.compile(r'["\\\x00-\x1f\x7f]')
_GUARDED = frozenset(
    (".git", ".gemini", ".ssh", ".github", ".vscode", ".idea", ".husky", ".devcontainer")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """A file below a project. `path`: relative, normal; `root`: the project's folder where the
    call named the file by its absolute path, else "".
    """

    path: str
    root: str

    @property
    def folder(self) -> str:
        """The folder that holds it, "" = the project's own."""
        return posixpath.dirname(self.path)


def place_of(path: str, project: Path | None) -> WrittenFile | str:
    """Where a file stands in its project, by the path as the call named it; else why no rule is
    proposed for it, in words.
    """
    if _ODD.search(path):
        return "its path holds quotes, backslashes or control characters"
    if ".." in path.split("/"):
        return "its path goes up by `..`"
    root = ""
    if path.startswith(("/", "~")):
        if project is None:
            return "it is not known which folder the session worked in"
        if not path.startswith(root := f"{str(project).rstrip('/')}/"):
            return "it lies outside of the project"
    relative = posixpath.normpath(path.removeprefix(root))
    if relative in (".", "") or relative.startswith("/"):
        return "it names no file"
    guarded = next((part for part in relative.split("/") if part in _GUARDED), None)
    if guarded is not None:
        return f"what stands in {guarded} decides what is run or allowed later"
    return WrittenFile(path=relative, root=root)


def common_folder(files: Sequence[WrittenFile]) -> str:
    """The deepest folder that holds all these files, which share their first folder."""
    return posixpath.commonpath([each.folder for each in files])


def below(folder: str, roots: Sequence[str]) -> str:
    """A pattern for every file below `folder`, named from the project or by its absolute path in
    one of `roots` (each with its last slash).
    """
    inside = f'{_escaped(folder)}/(?!\\.\\.[/"]|[^"]*/\\.\\.[/"])[^"\\\\]+'
    return f'\\x00"file_path":"{_starts(roots)}{inside}"\\x00'


def exactly(names: Sequence[str], roots: Sequence[str]) -> str:
    """A pattern for these files alone, in the project's own folder."""
    inside = "|".join(_escaped(name) for name in names)
    return f'\\x00"file_path":"{_starts(roots)}({inside})"\\x00'


def _starts(roots: Sequence[str]) -> str:
    """No group is followed by a quantifier, which the CLI would call unsafe."""
    starts = "|".join(("\\./", *(_escaped(root) for root in roots), ""))
    return f"({starts})"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", text)
