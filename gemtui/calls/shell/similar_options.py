"""Decide which other commands “allow similar” allows for an approved command.

A policy rule with a prefix allows all arguments. “Allow similar” covers fewer: of programs in the
table of programs, the options and arguments that the table lists, so the user is asked about
abbreviations and about options added in future versions. Of any other program, it covers only the
very same command, and nothing if that names a file or folder of the project, or a module in it,
which may be another one later.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gemtui.calls.git_repository import same_repository
from gemtui.calls.shell.program_table import (
    PYTHON,
    CommandFolders,
    ProgramUse,
    position_of_program,
    program_table,
    why_unknown,
)
from gemtui.calls.shell.reads_only import program
from gemtui.calls.shell.unasked import why_commands_act
from gemtui.calls.shell.words import PlainWord, Unclear, plain_commands

_MORE: Final = "its options or arguments could do more than “allow similar” permits"
_LOADS: Final = ", where Python prefers modules of the folder, which can run any code"
_READS: Final = "with arguments that only read files of the project"


@dataclass(frozen=True, slots=True)
class SimilarCommands:
    """The commands that “allow similar” covers for a given one.

    * `start`: the words with which a command must start.
    * `usage`: the arguments that are covered after `start`; None means that the command must be
      exactly `start`, in the run's folder.
    """

    start: tuple[str, ...]
    usage: ProgramUse | None

    @property
    def opens(self) -> str:
        """A description of the arguments that are covered after `start`, for the user."""
        if self.usage is None:
            return ""
        if self.usage.reads:
            return _READS
        module = any(PYTHON.fullmatch(word) for word in self.start)
        return f"{self.usage.opens}{_LOADS if module else ''}"


def similar_commands(words: Sequence[PlainWord]) -> SimilarCommands:
    """Return which commands are similar to a command with these words."""
    texts = [word.text for word in words]
    at = position_of_program(texts)
    row = program_table().find(texts[at:]) if at < len(texts) else None
    if row is None:
        return SimilarCommands(tuple(texts), None)
    length, usage = row
    return SimilarCommands(tuple(texts[: at + length]), usage)


def is_covered(
    prefix: str,
    words: Sequence[PlainWord],
    commands: Sequence[Sequence[PlainWord]],
    folders: CommandFolders,
) -> bool:
    """Return whether an approved prefix covers a command.

    `prefix`: as a rule has it. `words`: the command. `commands`: all commands of the same call,
    because a `cd` affects them.
    """
    texts = [word.text for word in words]
    try:
        (approved,) = plain_commands(prefix)
    except (Unclear, ValueError):
        return False
    start = [word.text for word in approved]
    if texts[: len(start)] != start:
        return False
    similar = similar_commands(words)
    if similar.usage is None and texts != start:
        return False
    return why_not_covered(words, commands, folders) is None


def why_not_covered(
    words: Sequence[PlainWord], commands: Sequence[Sequence[PlainWord]], folders: CommandFolders
) -> str | None:
    """Return why “allow similar” doesn't even cover a command if it starts as approved.

    The arguments are those of `is_covered`. Returns None if it does.
    """
    name = program(words)
    if name == "git" and not same_repository(folders.project, folders.folder):
        return "its folder belongs to another git repository"
    if name == "cd":
        return why_commands_act(commands, folders)
    similar = similar_commands(words)
    if similar.usage is not None:
        reason = why_unknown(similar.usage, words[len(similar.start) :], folders)
        return reason if reason is None or similar.usage.reads else _MORE
    if folders.folder != folders.project:
        return "gemtui doesn't know the program, which may be another one in this folder"
    if any(word.glob is not None for word in words):
        return "its file pattern can match other files each time"
    file = next((word for word in words if _is_of_project(word.text, folders)), None)
    return None if file is None else f"{file.text}, which is in the project, can change"


def _is_of_project(text: str, folders: CommandFolders) -> bool:
    """Return whether a word names a file, folder, or link that is in the project now."""
    option = text[2:] if text.startswith("-") else ""
    for name in filter(None, (text, text.partition("=")[2], option)):
        for path in map(Path, _paths_named(name, folders)):
            inside = path.is_relative_to(folders.project) or not folders.is_outside(path)
            if inside and path != folders.project and _is_there(path):
                return True
    return False


def _paths_named(name: str, folders: CommandFolders) -> Iterator[str]:
    """Yield the paths that a program may mean by a word, without endings such as `.py`.

    For example, `app.main:run` may be a function in `app/main.py`.
    """
    module = name.partition(":")[0]
    for path in (name, module, module.replace(".", "/")):
        yield os.path.normpath(folders.folder / path)


def _is_there(path: Path) -> bool:
    """Return whether a path exists, also with an ending."""
    return os.path.lexists(path) or any(path.parent.glob(f"{glob.escape(path.name)}.*"))
