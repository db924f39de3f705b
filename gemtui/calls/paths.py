"""Find the file that a tool call names, as Gemini CLI 0.61 does.

The CLI removes NULs and a leading `@`, then decodes percent escapes such as `%2e`, and then follows
links. So `a%2etxt` means the file `a.txt` (assets/gemini-cli.md#effects).
"""

from __future__ import annotations

import ntpath
import os
import posixpath
import re
import stat
import sys
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any
from urllib.parse import unquote_to_bytes

from gemtui.errors import GemtuiError
from gemtui.files import is_file, path_exists

_MALFORMED = re.compile("%(?![0-9A-Fa-f]{2})")
_SLASHES = re.compile(r"[/\\]")
_ROOT = os.path.abspath(os.sep)  # noqa: PTH100


PATH_ARGUMENTS = ("file_path", "absolute_path", "path", "notebook_path")
"""The arguments with which tools name a file, from the newest name to the oldest.

The last one is that of Claude Code and Qwen Code for notebooks.
"""


def asked_path(arguments: Mapping[str, Any]) -> str:
    """Return the file named in a call's arguments; "" if there is none."""
    named = (arguments.get(key) for key in PATH_ARGUMENTS)
    return next((path for path in named if isinstance(path, str) and path), "")


def absolute(folder: str, path: str) -> str:
    """Return an absolute path for `path`, which is relative to `folder`.

    The result is normalised, but links aren't followed. It is one of the folder's system.
    """
    if is_windows(folder):
        return ntpath.normpath(ntpath.join(folder, path))
    return "/" + posixpath.normpath(posixpath.join(folder, path)).lstrip("/")


def within(folder: str, path: str) -> bool:
    """Return whether `path` is `folder` or is inside it; both must be absolute."""
    folder, path = _folded(folder), _folded(path)
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def folded(path: str) -> str:
    """Return what paths have in common that are the same on a disk that ignores case, as macOS'."""
    return unicodedata.normalize("NFC", path).casefold()


def _folded(path: str) -> str:
    if is_windows(path):
        return path.lower().replace("\\", "/")
    return folded(path) if sys.platform == "darwin" else path


def percent_decoded(path: str) -> str:
    """Decode percent escapes such as `%20` in a path.

    If one of them is invalid, the path is returned unchanged, as in the CLI.
    """
    if "%" in path and not _MALFORMED.search(path):
        with suppress(ValueError):
            return unquote_to_bytes(path).decode()
    return path


def cli_spelling(real: str) -> str:
    """Return the spelling of a real path that the CLI resolves to this path.

    Percent signs are escaped, because the CLI decodes them.
    """
    return real.replace("%", "%25")


def real_path(path: str) -> str:
    """Return an absolute path with escapes decoded and links followed.

    If that fails, return the path unchanged; never raises.
    """
    with suppress(OSError, ValueError):
        return follow(path)
    return path


def follow(path: str) -> str:
    """Return an absolute path with escapes decoded and links followed.

    The last components of the path need not exist. Raises OSError where the CLI reports an error (a
    link to itself, or a folder that can't be entered), and ValueError for a NUL.
    """
    path = absolute(_ROOT, percent_decoded(path))
    try:
        return os.path.realpath(path, strict=True)
    except (FileNotFoundError, NotADirectoryError):
        return os.path.realpath(path)
    except OSError as error:
        if "too long" in str(error).lower():
            return path
        raise


def tool_path(path: str, project: str) -> str:
    """Return the real path of the file that a tool call's argument `path` names.

    `project`: the run's absolute folder. Raises OSError and ValueError like `follow`.
    """
    return follow(named_path(path, project))


def named_path(path: str, project: str, *, on_disk: bool = True) -> str:
    """Return the absolute path that a tool call's argument `path` means.

    Percent escapes are kept, and links aren't followed. `project`: the run's absolute folder.
    `on_disk`: as in `without_at`.
    """
    return absolute(project, without_at(path.replace("\0", ""), project, on_disk=on_disk))


def recorded_paths(path: str, project: str = "") -> tuple[str, ...]:
    """Return the normalised paths that a past call's argument `path` may have meant.

    The disk isn't read, because it may have changed since. Therefore links aren't followed, and a
    path with a leading `@` has two meanings; the likelier one, without the `@`, comes first.
    `project`: the absolute folder of the call's session; if it is "", relative paths stay relative.
    """
    plain = path.replace("\0", "")
    spellings = (without_at(plain, project or "/", on_disk=False), plain)
    joined = (normalised(_joined(project, spelling)) for spelling in spellings)
    return tuple(dict.fromkeys(normalised(percent_decoded(path)) for path in joined))


_WINDOWS = re.compile(r"(?:\\\\\?\\)?(?:[A-Za-z]:[\\/]|\\\\[^\\?])")
"""Matches the beginning of an absolute Windows path: a drive, or a server's name."""


_NOT_NORMAL = re.compile(r"/\.{0,2}(?:/|$)")
"""Matches an empty, `.` or `..` component of an absolute path."""


def is_windows(path: str) -> bool:
    """Return whether a recorded path is an absolute path of Windows."""
    return _WINDOWS.match(path) is not None


def recorded_path(path: str, project: str = "") -> PurePath:
    """Return a path in a session as a path of the system on which it was recorded.

    Windows paths compare without regard to case, as on Windows, because Gemini CLI records projects
    there in lower case, and calls in their own (assets/gemini-cli.md#places). So do all paths on
    macOS, whose disks ignore case. `project`: the session's folder, to which a relative path
    belongs.
    """
    name = recorded_name(path, project)
    if is_windows(name):
        return PureWindowsPath(name)
    return FoldedPath(name) if sys.platform == "darwin" else PurePosixPath(name)


class FoldedPath(PurePosixPath):
    """A path on a disk that ignores case and how accents are encoded."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PurePosixPath) and folded(str(self)) == folded(str(other))

    def __hash__(self) -> int:
        return hash(folded(str(self)))

    def is_relative_to(self, *other: str | os.PathLike[str]) -> bool:
        """Return whether the path is `other` or inside it."""
        above = PurePosixPath(*other).parts
        return list(map(folded, self.parts[: len(above)])) == list(map(folded, above))

    def relative_to(self, *other: str | os.PathLike[str], **_: Any) -> FoldedPath:
        """Return the path relative to `other`. Raises ValueError if it isn't inside it."""
        above = PurePosixPath(*other)
        if not self.is_relative_to(above):
            raise ValueError(f"{self} is not in {above}")
        return FoldedPath(*self.parts[len(above.parts) :])


def recorded_name(path: str, project: str = "") -> str:
    """Return the text of `recorded_path`, which takes a fraction of its time."""
    whole = normalised(_joined(project, path))
    if not is_windows(whole):
        return whole
    return str(PureWindowsPath(whole.removeprefix("\\\\?\\")))


def file_key(path: str, project: str = "") -> str:
    """Return what all texts of paths have in common for which `recorded_path` is equal."""
    return _folded(recorded_name(path, project))


def in_project(text: str, project: str | None) -> str:
    """Return text in which paths of files in the project's folder are relative to it.

    These are the paths at the start of a line. `project`: the session's folder; None or "" if it
    isn't known.
    """
    names = _SLASHES.split((project or "").rstrip("/\\"))
    if not any(names):
        return text
    folder = r"[/\\]".join(map(re.escape, names))
    ignores_case = sys.platform == "darwin" or is_windows(project or "")
    case = re.IGNORECASE if ignores_case else re.NOFLAG
    return re.sub(rf"^{folder}[/\\](?=\S)", "", text, flags=re.MULTILINE | case)


def separator(path: PurePath) -> str:
    """Return what separates the names in a recorded path."""
    return "\\" if isinstance(path, PureWindowsPath) else "/"


def typed_place(path: Path, folder: Path) -> Path:
    """Return the absolute path that a person typed, relative to `folder`.

    A path of Windows stays as it is: sessions recorded there may be read on another system.
    """
    return path if is_windows(str(path)) else Path(os.path.normpath(folder / path))


def written_file(path: str, project: Path | None) -> Path:
    """Return the absolute path of a file named in a tool call.

    `project`: the folder that relative paths refer to. Raises GemtuiError if the file no longer
    exists or is not a regular file.
    """
    recorded = recorded_path(path, str(project or ""))
    if isinstance(recorded, PureWindowsPath):
        raise GemtuiError(f"{recorded} is on the Windows computer where the session was recorded")
    file = Path(path) if project is None else project / path
    if not file.is_absolute():
        raise GemtuiError(f"{path} is a relative path, but the folder of this session is unknown")
    if not path_exists(file):
        raise GemtuiError(f"{file} no longer exists")
    if not is_file(file):
        raise GemtuiError(f"{file} is not a regular file")
    return file


def _joined(project: str, path: str) -> str:
    if is_windows(path):
        return path
    return ntpath.join(project, path) if is_windows(project) else posixpath.join(project, path)


def normalised(path: str) -> str:
    """Return a path without `.`, `..` and repeated slashes; links aren't followed."""
    if path.startswith("/"):
        return absolute("/", path) if _NOT_NORMAL.search(path) else path
    return ntpath.normpath(path) if is_windows(path) else posixpath.normpath(path)


def is_verbatim(path: str) -> bool:
    """Return whether the CLI uses a path as it is written.

    Otherwise it decodes escapes such as `%2e`, or removes NULs or a leading `@`.
    """
    return not ("%" in path or "\0" in path or path.startswith("@"))


def without_at(path: str, project: str, *, on_disk: bool = True) -> str:
    """Return a path without the `@` with which users mark file names in prompts.

    The `@` is kept if it is part of an existing file's name. `on_disk`: if False, don't check the
    disk, and assume that no such file exists.
    """
    if len(path) < 2 or not path.startswith("@"):
        return path
    if on_disk and path_exists(absolute(project, path)):
        return path
    rest = path[1:].lstrip("/\\")
    if path[1] in "/\\":
        return rest or path
    first = _SLASHES.split(rest)[0]
    literal = on_disk and path_exists(absolute(project, f"@{first}"))
    return path if not first or literal else rest


def is_regular(path: str) -> bool:
    """Return whether a path leads to a regular file, following links. Raises OSError."""
    return stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116
