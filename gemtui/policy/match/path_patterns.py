"""Build patterns that allow writing only under one of a project's folders.

The engine searches a string that contains paths as the model sent them, with a NUL before and after
each key-value pair (assets/gemini-cli.md#args-text). So a pattern can match exactly one pair, but
the pattern itself has to reject paths that contain `..`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gemtui.calls.paths import is_windows

LENGTH = 2000
"""The longest pattern to build, in characters; the CLI drops patterns over 2,048."""

_SPECIAL = re.compile(r"[.*+?^${}()|\[\]\\]")
_ODD = re.compile(r'["\\\x00-\x1f\x7f]')
_GUARDED = frozenset(
    (".git", ".gemini", ".ssh", ".github", ".vscode", ".idea", ".husky", ".devcontainer")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """A file in a project, as named by a call.

    `path`: relative to the project, normalised. `root`: the project's folder with a trailing slash
    if the call named the file by an absolute path, otherwise "".
    """

    path: str
    root: str

    @property
    def folder(self) -> str:
        """The file's folder, relative to the project; "" means the project's own folder."""
        return posixpath.dirname(self.path)


def locate_in_project(path: str, project: Path | None) -> WrittenFile | str:
    """Locate a file in its project, or return why no rule is suggested for the file.

    `path`: as given in the call. `project`: the folder the session worked in; None if unknown. The
    reason is a clause.
    """
    if is_windows(path):
        return "it is an absolute path of Windows, which suggested rules don't name"
    if _ODD.search(path):
        return "its path contains quotes, backslashes or control characters"
    if ".." in path.split("/"):
        return "its path contains `..`"
    root = ""
    if path.startswith(("/", "~")):
        if project is None:
            return "it is unknown which folder the session worked in"
        if not path.startswith(root := f"{str(project).rstrip('/')}/"):
            return "it is outside of the project"
    relative = posixpath.normpath(path.removeprefix(root))
    if relative in (".", "") or relative.startswith("/"):
        return "the call names no file"
    guarded = next((part for part in relative.split("/") if part in _GUARDED), None)
    if guarded is not None:
        return f"files in {guarded} affect what is run or allowed later"
    return WrittenFile(path=relative, root=root)


def common_folder(files: Sequence[WrittenFile]) -> str:
    """Return the deepest folder that contains all of the files.

    All files must be in the same top-level folder.
    """
    return posixpath.commonpath([file.folder for file in files])


def folder_pattern(folder: str, roots: Sequence[str]) -> str:
    """Return an argsPattern for all files under `folder`.

    It matches paths that are relative to the project, and absolute paths that begin with one of
    `roots`, each of which ends in a slash.
    """
    inside = f'{_escaped(folder)}/(?!\\.\\.[/"]|[^"]*/\\.\\.[/"])[^"\\\\]+'
    return f'\\x00"file_path":"{_starts(roots)}{inside}"\\x00'


def files_pattern(names: Sequence[str], roots: Sequence[str]) -> str:
    """Return an argsPattern for exactly these files.

    `names`: their paths, relative to the project. `roots`: as for `folder_pattern`.
    """
    inside = "|".join(_escaped(name) for name in names)
    return f'\\x00"file_path":"{_starts(roots)}({inside})"\\x00'


def named_anywhere(path: str, *, folder: bool, keys: str = "file_path") -> str:
    """Return an argsPattern for every way to name a file, or the files in a folder.

    `path`: relative to the project. `folder`: whether it is a folder. `keys`: a pattern for the
    arguments to search. The result also matches `./`, `..`, absolute paths, and the same name under
    a different folder; it is meant for rules that deny or ask, which may match too much but not too
    little.
    """
    parts = '/(?:[^"]*/|)'.join(map(_escaped, path.split("/")))
    end = "/" if folder else '[/"]'
    return f'"{keys}":[^\\x00]*(?<=[/"]){parts}(?={end})'


READ_KEYS = "(?:file_path|dir_path|pattern|include)"
"""A pattern for the arguments in which reading tools get their paths."""


def _starts(roots: Sequence[str]) -> str:
    """Return a pattern's group for what may precede a path relative to the project.

    The group contains an empty alternative instead of being followed by `?`, because the CLI drops
    rules with such groups.
    """
    starts = "|".join(("\\./", *(_escaped(root) for root in roots), ""))
    return f"({starts})"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda match: f"\\{match[0]}", text)


# --- describing ----------------------------------------------------------------------------------

_FRONT = re.compile(r'(?:\\x00|\\0)?"(?:file_path|path|absolute_path)":"')
_STARTS = re.compile(r"\(\\\./(?:\\.|[^\\()])*\)")
"""Matches the group that `_starts` builds."""
_TAIL = folder_pattern("", ()).partition("/(?!")[2]
_PLAIN = re.compile(r"(?:\\[^0a-zA-Z]|[^\\.*+?^${}()|\[\]\"])+")
"""Matches a piece of a pattern that has no special meaning, only literal text."""
_END = re.compile(r'"(?:\\x00|\\0)?')


def projects_of(pattern: str) -> tuple[str, ...]:
    """Return the project folders that a pattern accepts at the start of a path.

    These are the `roots` with which `folder_pattern` or `files_pattern` built it, without final
    slashes.
    """
    front = _FRONT.match(pattern)
    starts = front and _STARTS.match(pattern[front.end() :])
    if not front or not starts:
        return ()
    inside = starts[0][1:-1]
    roots = (_unescaped(path) for path in _alternatives(inside) if path not in ("", r"\./"))
    return tuple(root.rstrip("/") for root in roots)


def describe_files(pattern: str) -> str | None:
    """Describe which files a pattern matches, as in "files below src/".

    Returns None if the pattern isn't for files, or if a description would not be exact.
    """
    named = _named_anywhere(pattern)
    if named is not None:
        return named
    front = _FRONT.match(pattern)
    if front is None:
        return None
    rest = pattern[front.end() :]
    starts = _STARTS.match(rest)
    if starts is not None:
        return _made_here(rest[starts.end() :])
    begins = _beginnings(rest)
    return f"paths that begin with {' or '.join(begins)}" if begins else None


def _named_anywhere(pattern: str) -> str | None:
    for keys in ("file_path", READ_KEYS):
        front = named_anywhere("", folder=False, keys=keys).partition("(?=[")[0]
        inside, _, end = pattern.removeprefix(front).rpartition("(?=")
        name = _unescaped(inside.replace('/(?:[^"]*/|)', "/"))
        folder = end == "/)"
        if name and named_anywhere(name, folder=folder, keys=keys) == pattern:
            return f"paths that name {name}{'/' * folder}"
    return None


def _beginnings(rest: str) -> list[str]:
    """Return the paths in a file pattern: `src/` and `test/` for `(src|test)/`.

    `rest`: what follows the key in an argsPattern. Returns [] if it has other pattern characters.
    """
    names = [rest]
    end = ""
    if rest.startswith("(") and ")" in rest:
        inside, _, end = rest[1:].rpartition(")")
        names = list(_alternatives(inside))
    fit = all(map(_PLAIN.fullmatch, names)) and (not end or _PLAIN.fullmatch(end))
    return [_unescaped(name + end) for name in names] if fit else []


def _made_here(rest: str) -> str | None:
    folder, separator, tail = rest.partition("/(?!")
    if separator:
        fits = tail == _TAIL and _PLAIN.fullmatch(folder)
        return f"files below {_unescaped(folder)}/" if fits else None
    if not rest.startswith("(") or _END.fullmatch(rest[rest.rfind(")") + 1 :]) is None:
        return None
    names = list(_alternatives(rest[1 : rest.rfind(")")]))
    if not all(_PLAIN.fullmatch(name) for name in names):
        return None
    return f"the file{'s' * (len(names) != 1)} {', '.join(map(_unescaped, names))}"


def _alternatives(text: str) -> Iterator[str]:
    name = ""
    for piece in re.findall(r"\\.|[^\\]", text):
        if piece == "|":
            yield name
            name = ""
        else:
            name += piece
    yield name


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
