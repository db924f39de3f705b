"""The CLI's own classification of commands as known safe or dangerous.

The CLI uses the classification only if no rule matches the call, or if the matching rule has no
conditions on arguments (assets/gemini-cli.md#safe-commands). Whether a path in a command leaves the
workspace is part of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, Self

from gemtui.calls.paths import absolute, real_path, within
from gemtui.calls.shell.parser import parse_command
from gemtui.calls.shell.words import shell_words


class CommandSafety(StrEnum):
    """The classes of commands in the CLI's policy engine, which don't depend on rules.

    * SAFE: where the rules say “ask”, the command is allowed.
    * DANGEROUS: where the rules say “allow”, the user is asked, unless the mode is yolo.
    * OUTSIDE: the command runs outside the workspace; treated like DANGEROUS.
    * PLAIN: the decision of the rules is unchanged.
    """

    SAFE = "safe"
    DANGEROUS = "dangerous"
    OUTSIDE = "outside"
    PLAIN = "plain"


def judge(
    command: str, *, workspace: Path | None = None, dir_path: str | None = None
) -> CommandSafety:
    """Classify a whole command line as the CLI's policy engine does.

    `workspace`: the run's folder. Symbolic links are followed on disk, as in the CLI. If
    `workspace` is None, the disk is not read, and absolute paths count as outside. `dir_path`: the
    call's argument of that name, relative to the workspace or absolute.
    """
    try:
        command_words = [word.text for word in shell_words(command)]
    except ValueError:
        return CommandSafety.PLAIN
    folders = Workspace.of(workspace, dir_path or "")
    if folders.outside:
        return CommandSafety.OUTSIDE
    if _dangerous(command_words):
        return CommandSafety.DANGEROUS
    return CommandSafety.SAFE if _safe(command_words, folders.real()) else CommandSafety.PLAIN


_LOOK: Final = frozenset(
    (
        "__write",
        "cd",
        "echo",
        "expr",
        "false",
        "grep",
        "id",
        "pwd",
        "seq",
        "tr",
        "true",
        "uname",
        "which",
        "whoami",
    )
)
_READS_FILES: Final = frozenset(
    (
        "__read",
        "cat",
        "cut",
        "head",
        "ls",
        "nl",
        "numfmt",
        "paste",
        "rev",
        "stat",
        "tac",
        "tail",
        "uniq",
        "wc",
    )
)
_FIND_ACTS: Final = frozenset(
    ("-delete", "-exec", "-execdir", "-fls", "-fprint", "-fprint0", "-fprintf", "-ok", "-okdir")
)
_GIT_READS: Final = frozenset(("branch", "diff", "log", "show", "status"))
_GIT_WITH_VALUE: Final = frozenset(
    (
        "-C",
        "-c",
        "--config-env",
        "--exec-path",
        "--git-dir",
        "--namespace",
        "--super-prefix",
        "--work-tree",
    )
)
_GIT_ACTS: Final = frozenset(("--exec", "--ext-diff", "--output", "--paginate", "--textconv"))
_BRANCH_READS: Final = frozenset(
    ("--all", "--list", "--remotes", "--show-current", "--verbose", "-a", "-l", "-r", "-v", "-vv")
)
_SED_LINES: Final = re.compile(r"[0-9]+(?:,[0-9]+)?p")


def _dangerous(words: Sequence[str]) -> bool:
    while words and words[0] == "sudo":
        words = words[1:]
    if not words:
        return False
    first, rest = words[0], words[1:]
    if first == "rm":
        return bool(rest) and rest[0] in ("-f", "-rf", "-fr")
    if first == "ln":
        return any(
            word == "--symbolic" or (word[:1] == "-" and word[:2] != "--" and "s" in word)
            for word in rest
        )
    if first == "find":
        return not _FIND_ACTS.isdisjoint(rest)
    if _is_ripgrep(first):
        return _ripgrep_acts(rest)
    if first == "git":
        return _git_configures(rest) or _git_reads_only(rest) is False
    return first == "base64" and _base64_writes(rest)


def _safe(words: Sequence[str], folders: Workspace) -> bool:
    words = ["bash" if word == "zsh" else word for word in words]
    if _safe_alone(words, folders):
        return True
    if len(words) != 3 or words[0] != "bash" or words[1] not in ("-c", "-lc"):
        return False
    if any(char in words[2] for char in "()<>"):
        return False
    parts = parse_command(words[2]).parts
    try:
        return bool(parts) and all(_safe_part(part.text, folders) for part in parts)
    except ValueError:
        return False


def _safe_part(text: str, folders: Workspace) -> bool:
    part_words = [word.text for word in shell_words(text)]
    return not part_words or _safe_alone(part_words, folders)


def _safe_alone(words: Sequence[str], folders: Workspace) -> bool:
    """Return whether a simple command only reads, and only in the workspace.

    `words`: the command's words. `folders`: the workspace with links resolved.
    """
    if not words or folders.outside or not _only_looks(words[0], words[1:], folders):
        return False
    return not any(folders.escapes(path) for path in _paths(words[0], words[1:], folders))


def _only_looks(first: str, rest: Sequence[str], folders: Workspace) -> bool:
    """Return whether a program only reads, judging by its options but not its paths.

    `first`: the program. `rest`: its arguments.
    """
    if first == "find":
        return _FIND_ACTS.isdisjoint(rest)
    if first == "base64":
        return not _base64_writes(rest)
    if first == "git":
        return not _git_configures(rest) and _git_reads_only(rest) is True
    if first == "sed":
        return len(rest) in (2, 3) and rest[0] == "-n" and bool(_SED_LINES.fullmatch(rest[1]))
    if _is_ripgrep(first):
        return folders.trusts(first) and not _ripgrep_acts(rest)
    return first in _READS_FILES or first in _LOOK


def _paths(first: str, rest: Sequence[str], folders: Workspace) -> Iterable[str]:
    """Return the arguments that the CLI's policy engine interprets as paths to read.

    `first`: the program. `rest`: its arguments.
    """
    if first in ("base64", "cd", "find"):
        paths = [word for word in rest if not word.startswith("-")]
        return ["~"] if first == "cd" and not paths else paths
    if first == "sed":
        return rest[2:]
    if first == "grep":
        return _searched(rest, folders)
    if first in _READS_FILES:
        return _searched(rest, folders, has_pattern_file=False)
    return _searched(rest, folders, dash_is_path=True) if _is_ripgrep(first) else ()


def _searched(
    rest: Sequence[str],
    folders: Workspace,
    *,
    has_pattern_file: bool = True,
    dash_is_path: bool = False,
) -> Iterator[str]:
    """Yield arguments that may be paths: values of options, and words without a dash.

    `has_pattern_file`: whether `-f` and `--file` are followed by a file. `dash_is_path`: whether a
    lone `-` is a path rather than standard input.
    """
    left = iter(rest)
    for word in left:
        if word == "--":
            yield from left
        elif word == "-" and not dash_is_path:
            continue
        elif has_pattern_file and word.startswith(("-f", "--file")):
            yield _pattern_file(word, left)
        elif word.startswith("-") and "=" in word:
            yield word.partition("=")[2]
        elif not word.startswith("-") or folders.has(word):
            yield word


def _pattern_file(word: str, left: Iterator[str]) -> str:
    if word.startswith("--file="):
        return word[7:]
    if word in ("-f", "--file"):
        return next(left, "")
    return word[2:]


def _is_ripgrep(program: str) -> bool:
    return program.rstrip("/").rpartition("/")[2] in ("rg", "rg.exe")


def _ripgrep_acts(rest: Sequence[str]) -> bool:
    return any(
        word in ("--pre", "--hostname-bin", "--search-zip", "-z")
        or word.startswith(("--pre=", "--hostname-bin="))
        for word in rest
    )


def _base64_writes(rest: Sequence[str]) -> bool:
    return any(word.startswith(("-o", "--output=")) or word == "--output" for word in rest)


def _git_configures(rest: Sequence[str]) -> bool:
    return any(word.startswith(("-c", "--config-env=")) or word == "--config-env" for word in rest)


def _git_reads_only(rest: Sequence[str]) -> bool | None:
    """Return whether a git subcommand only reads, judged as the CLI does.

    `rest`: git's arguments. Returns None for a subcommand that the CLI's policy engine doesn't
    know.
    """
    left = iter(rest)
    for word in left:
        if word in _GIT_WITH_VALUE:
            next(left, "")
        elif word in _GIT_READS:
            more = list(left)
            if any(m in _GIT_ACTS or m.startswith(("--output=", "--exec=")) for m in more):
                return False
            return word != "branch" or all(
                m in _BRANCH_READS or m.startswith("--format=") for m in more
            )
        elif not word.startswith("-"):
            return None
    return None


_NOWHERE: Final = "/\U0010ffff"
"""Replaces an unknown folder; no real path is inside this one."""

_LONGEST: Final = 4096
"""The longest path, in characters, that is looked up; no system has longer ones."""

_SYSTEM: Final = (
    "/usr/bin",
    "/bin",
    "/usr/local/bin",
    "/opt/homebrew/bin",
    "/opt/homebrew/Cellar",
    "/usr/local/Cellar",
    "/usr/sbin",
    "/sbin",
    "/google/bin",
    "/google/src/cloud",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """The absolute paths of a run's workspace and of the folder a command runs in.

    `known`: False if the disk must not be read; paths are then judged by their spelling alone.
    """

    workspace: str
    folder: str
    known: bool

    @classmethod
    def of(cls, workspace: Path | None, dir_path: str) -> Self:
        """Return the workspace with a command's folder.

        `workspace`: the run's folder; None if unknown. `dir_path`: the call's argument of that
        name; "" means the workspace.
        """
        root = _NOWHERE if workspace is None else absolute("/", str(workspace.absolute()))
        folder = absolute(root, dir_path) if dir_path else root
        return cls(workspace=root, folder=folder, known=workspace is not None)

    @property
    def outside(self) -> bool:
        """Whether the command's folder is outside the workspace; links are not followed."""
        return not within(self.workspace, self.folder)

    def real(self) -> Workspace:
        """Return the same workspace, with symbolic links resolved."""
        if not self.known:
            return self
        return Workspace(
            workspace=real_path(self.workspace), folder=real_path(self.folder), known=self.known
        )

    def escapes(self, path: str) -> bool:
        """Return whether a path, with links followed, leads out of the workspace."""
        if not path:
            return False
        if "$" in path or "`" in path:
            return True
        if path == "~" or path.startswith(("~/", "~\\")):
            target = absolute(os.path.expanduser("~"), path[2:])  # noqa: PTH111
        elif path.startswith("~"):
            return True
        else:
            target = absolute(self.folder, path)
        return not within(self.workspace, target) or (self.known and self._linked_out(target))

    def _linked_out(self, target: str) -> bool:
        if len(target) > _LONGEST:
            target = target[:_LONGEST].rpartition("/")[0]
        while within(self.workspace, target) and target != "/":
            if Path(target).is_symlink():
                with suppress(OSError):
                    if not within(self.workspace, os.path.realpath(target, strict=True)):
                        return True
            target = target.rpartition("/")[0] or "/"
        return False

    def has(self, name: str) -> bool:
        """Return whether the command's folder contains an entry with this name."""
        return self.known and os.path.lexists(absolute(self.folder, name))

    def trusts(self, program: str) -> bool:
        """Return whether a program is named by its absolute path in a system folder."""
        if not program.startswith("/"):
            return False
        real = real_path(program) if self.known else absolute("/", program)
        if self.workspace != "/" and within(self.workspace, real):
            return False
        return any(within(root, real) for root in _SYSTEM)
