"""Find risky files that a shell command may write.

These are files outside the project, and files that decide what is run later. Only the words of the
command are examined, so this is a warning rather than a barrier: a program may write other files as
well.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Final

from gemtui.calls.later_files import why_runs_later
from gemtui.calls.shell import programs
from gemtui.files import resolved

OUTSIDE: Final = "it writes outside of the project"
NAMES_OUTSIDE: Final = "it names a file outside of the project"
LEAVES: Final = "the commands after it run outside of the project"
LATER: Final = "it changes a file that affects later commands"
HARMLESS: Final = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"))
TOO_MUCH: Final = "its file names are too many or too long to check"
_MOST_PATHS: Final = 100
"""The most paths to check; a command with more gets the warning `TOO_MUCH`."""
_LONGEST: Final = 1024
"""The longest path, in characters, that is checked."""
_MOST_FOLDERS: Final = 8
"""The most folders that are tracked for one command.

If a command may run in more, its folder counts as unknown.
"""
_MOST_WORDS: Final = 64
"""The most words to which the braces in one word are expanded."""
_MOST_ENTRIES: Final = 1000
"""The most entries of a folder that are matched against a file pattern."""
_LAST: Final = frozenset(("cp", "ln", "install", "rsync", "scp", "gcp", "gln", "ginstall"))
"""Programs that write to their last operand, or to the folder given by `-t`."""
_ALL: Final = frozenset(
    (
        *("mv", "touch", "mkdir", "mkfifo", "mknod", "tee", "truncate", "rm", "rmdir", "unlink"),
        *("shred", "chmod", "chown", "chgrp", "dd", "patch", "split", "csplit", "unzip", "gmv"),
    )
)
"""Programs that write to each file they name."""
_READERS: Final = (programs.READS | programs.HARMLESS | {"find", "rg", "tree", "["}) - {"cd"}
"""Programs whose operands are only read.

Options that make them write are checked elsewhere.
"""
_FIRST_IS_TEXT: Final = frozenset(("sed", "gsed", "awk", "gawk", "mawk", "nawk", "jq", "yq"))
"""Programs whose first operand is a script, which may look like a path."""
_TARGET_OPTION: Final = re.compile(r"(?:-t|--target-directory=?)(.*)")
_VALUE: Final = re.compile(r"(?:-[A-Za-z]|[\w-]+=)(?=[~/.$])(.*)", re.DOTALL)
"""Matches a path after an option's letter or after `=`, and captures the path."""
_BRACES: Final = re.compile(r"\{([^{}]*,[^{}]*)\}")
_PATTERN: Final = re.compile(r"[*?[]")


class _TooMuchError(Exception):
    """Raised if a command names too many paths to check, or paths that are too long."""


@dataclass(frozen=True, slots=True)
class Reach:
    """A run's project, and the folders one of its commands may run in.

    The methods find the dangers in the words of this command. In `folders`, None means an unknown
    folder, in which a relative path may lead anywhere. `left`: an iterator with one item for each
    path that may still be checked.
    """

    project: Path
    folders: tuple[Path | None, ...]
    left: Iterator[int]

    @classmethod
    def of(cls, project: Path, folder: str | None) -> Reach:
        """Return the project and folder for a command that runs in `folder`.

        If `folder` is None, the command runs in the project's folder.
        """
        root = resolved(project)
        start = root if folder is None else resolved(Path(folder))
        return cls(root, (start,), iter(range(_MOST_PATHS)))

    def after_cd(self, rest: Sequence[str], *, certain: bool) -> Reach:
        """Return the reach of the commands that follow a `cd`.

        `rest`: the arguments of the `cd`. `certain`: whether all of these commands run in the new
        folder; not if the `cd` is in a subshell or may fail.
        """
        operand = next((word for word in rest if not word.startswith("-")), "~")
        unknown = rest[-1:] == ["-"]
        unknown = unknown or len(self.folders) > _MOST_FOLDERS or not self._is_checked(operand)
        led = [None if unknown else _real(operand, folder) for folder in self.folders]
        folders = dict.fromkeys((*(() if certain else self.folders), *led))
        return Reach(self.project, tuple(folders), self.left)

    @property
    def is_outside(self) -> bool:
        """Whether the command may run in a folder that is unknown or outside the project."""
        return not all(each and each.is_relative_to(self.project) for each in self.folders)

    def dangers(self, program: str, rest: Sequence[str]) -> Iterator[str]:
        """Yield why a command is dangerous, judging by the paths in its arguments."""
        with suppress(_TooMuchError):
            yield from self._why(program.rsplit("/", 1)[-1], rest)
            return
        yield TOO_MUCH

    def redirection_dangers(self, word: str) -> Iterator[str]:
        """Yield why it is dangerous to redirect output to `word`."""
        with suppress(_TooMuchError):
            yield from self._why_written(word)
            return
        yield TOO_MUCH

    def _why(self, name: str, rest: Sequence[str]) -> Iterator[str]:
        if name in _READERS:
            return
        if name == "git" and "mv" in rest:
            name, rest = "mv", rest[rest.index("mv") + 1 :]
        writes = name in _LAST or name in _ALL or _edits_in_place(name, rest)
        for word in _targets(name, rest):
            yield from self._why_written(word) if writes else self._why_named(name, word)
        if name in ("ln", "gln"):
            for word in rest:
                yield from self._why_named(name, word)

    def _why_written(self, word: str) -> Iterator[str]:
        if word in HARMLESS:
            return
        for path in self._paths(word):
            if path is None or not path.is_relative_to(self.project):
                yield OUTSIDE
            if path is not None and (why := self._why_later(path)):
                yield why

    def _why_named(self, program: str, word: str) -> Iterator[str]:
        """Yield why an argument is dangerous, for a program not known to write to it.

        Paths that neither exist nor could be created are ignored. So is `HEAD`, because it is
        usually the name of a git revision.
        """
        if word in HARMLESS or word == "HEAD":
            return
        for path in self._paths(word):
            if path is None:
                continue
            if not path.is_relative_to(self.project) and _could_be(path):
                yield NAMES_OUTSIDE
            elif program != "git" and (why := self._why_later(path)):
                yield why

    def _why_later(self, path: Path) -> str:
        """Return why writing to a path affects what is run later; "" if it doesn't.

        If files in `path` would have this effect, `path` counts as well.
        """
        why = why_runs_later(path, self.project) or why_runs_later(path / "x", self.project)
        return f"{LATER}: {why}" if why else ""

    def _paths(self, word: str) -> Iterator[Path | None]:
        for each in _without_braces(word):
            if _BRACES.search(each):  # too many to expand
                yield None
            for folder in self.folders:
                for path in (each, *_matches(each, folder)):
                    if not self._is_checked(path):
                        raise _TooMuchError
                    yield _real(path, folder)

    def _is_checked(self, path: str) -> bool:
        return len(path) <= _LONGEST and next(self.left, None) is not None


def _real(word: str, folder: Path | None) -> Path | None:
    """Return the real path that a word names; None if that can't be known.

    `folder`: where a relative path starts; None if unknown.
    """
    if "$" in word or "`" in word or "\0" in word:
        return None
    if word == "~" or word.startswith("~/"):
        word = f"{Path.home()}{word[1:]}"
    elif word.startswith("~"):
        return None
    if folder is None and not word.startswith("/"):
        return None
    return resolved((folder or Path("/")) / word)


def _matches(word: str, folder: Path | None) -> Iterator[str]:
    """Yield the paths that result from expanding the first file pattern in a path.

    Only the first component with a pattern is expanded. Reads the disk.
    """
    parts = word.split("/") if len(word) <= _LONGEST else []
    at = next((at for at, part in enumerate(parts) if _PATTERN.search(part)), None)
    place = None if at is None else _real("/".join((*parts[:at], "")) or ".", folder)
    if at is None or place is None:
        return
    with suppress(OSError, ValueError), os.scandir(place) as entries:
        for entry in islice(entries, _MOST_ENTRIES):
            if fnmatchcase(entry.name, parts[at]):
                yield "/".join((*parts[:at], entry.name, *parts[at + 1 :]))


def _targets(name: str, rest: Sequence[str]) -> Iterator[str]:
    """Yield the arguments that may be paths a program writes to."""
    operands, values, into = [], [], ""
    at = 0
    while at < len(rest):
        word = rest[at]
        at += 1
        option = _TARGET_OPTION.fullmatch(word) if name in _LAST or name == "mv" else None
        if option is not None:
            into = option[1] or (rest[at] if at < len(rest) else "")
            at += not option[1]
        elif value := _VALUE.fullmatch(word):
            values.append(value[1])
        elif not word.startswith("-"):
            operands.append(word)
    if name in _LAST:
        yield from [into] if into else operands[-1:]
        return
    yield from [into] if into else []
    yield from values
    yield from operands[1:] if name in _FIRST_IS_TEXT else operands


def _edits_in_place(name: str, rest: Sequence[str]) -> bool:
    return name in ("sed", "gsed", "perl") and any(re.match(r"-[A-Za-z]*i|--in-place", word) for word in rest)


def _could_be(path: Path) -> bool:
    """Return whether a file exists or could be created because its folder exists."""
    return os.path.lexists(path) or (path.parent != Path("/") and os.path.lexists(path.parent))


def _without_braces(word: str) -> Iterator[str]:
    """Yield the words that result when bash expands braces: `a{b,c}` gives `ab`, `ac`."""
    words = [word]
    while len(words) < _MOST_WORDS and (found := _BRACES.search(words[0])):
        first = words.pop(0)
        words += [f"{first[: found.start()]}{each}{first[found.end() :]}" for each in found[1].split(",")]
    yield from words
