"""gemtui's own strict check of commands that Gemini CLI would run without asking.

The CLI allows commands it considers safe. However, it splits words at more whitespace characters
than bash does, misses abbreviations of options that have effects, and ignores git's configuration
and variables (assets/gemini-cli.md#safe-commands). Therefore a command runs unasked only if this
check passes as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from gemtui.calls.env_files import env_files as env_files_of
from gemtui.calls.env_files import is_risky, risky_variables
from gemtui.calls.git_repository import why_not_read_only
from gemtui.calls.shell.parser import unwrapped
from gemtui.calls.shell.program_table import CommandFolders
from gemtui.calls.shell.reads_only import git_subcommand, program, why_acts
from gemtui.calls.shell.words import PlainWord, Unclear, first_unseen_character, plain_commands
from gemtui.errors import reason_of
from gemtui.files import resolved
from gemtui.text import clean_line, visible_line

_BUILTINS: Final = frozenset(("cd", "echo", "false", "pwd", "true"))
"""Commands built into bash, which bash doesn't look up in PATH."""

_LOADED: Final = ("BASH_ENV", "LD_AUDIT", "LD_LIBRARY_PATH", "LD_PRELOAD", "GCONV_PATH", "LOCPATH")
_LOADED_PREFIX: Final = "DYLD_"
"""The prefix of variables that, like those in `_LOADED`, load code into programs."""


def why_ask(
    command: str,
    *,
    project: Path,
    dir_path: str = "",
    environ: Mapping[str, str] = os.environ,
    env_files: Sequence[Path] | None = None,
) -> str | None:
    """Return why the user must be asked about a command that the CLI considers safe.

    The reason is a clause. None means that the command only reads the project, so it may run
    unasked. `project`: the run's folder. `dir_path`: the call's argument of that name. `environ`:
    the run's environment. `env_files`: the `.env` files the run reads; None means find them.
    """
    unseen = first_unseen_character(command)
    if unseen is not None:
        return unseen
    folders = command_folders(project, dir_path)
    if isinstance(folders, str):
        return folders
    try:
        commands = plain_commands(unwrapped(command))
    except Unclear as unclear:
        return str(unclear)
    if env_files is None:
        env_files = found_env_files(project, environ)
    acts = why_commands_act(commands, folders)
    if acts is not None:
        return acts
    for path in env_files:
        why = _why_env_file(path)
        if why is not None:
            return why
    for command_words in commands:
        why = _why_environ(command_words, folders, environ) or _why_git(command_words, folders)
        if why is not None:
            return why
    return None


def command_folders(project: Path, dir_path: str) -> CommandFolders | str:
    """Return where a call runs its command, or a clause saying why that is uncertain.

    `project`: the run's folder. `dir_path`: the call's argument of that name.
    """
    root = resolved(project)
    if not dir_path:
        return CommandFolders(project=root, folder=root)
    if first_unseen_character(dir_path) or "%" in dir_path or dir_path.startswith(("@", "~")):
        return "its folder's name is ambiguous"
    folder = resolved(root / dir_path)
    if not folder.is_relative_to(root):
        return "its folder is outside of the project"
    if not folder.is_dir():
        return "its folder does not exist"
    return CommandFolders(project=root, folder=folder)


def why_commands_act(
    commands: Sequence[Sequence[PlainWord]], folders: CommandFolders
) -> str | None:
    """Return why one of several commands may do more than read, judging by its words.

    The reason is a clause; None if all of them only read.
    """
    if len(commands) > 1 and any(program(words) == "cd" for words in commands):
        return "it changes the working directory for the commands after it"
    for words in commands:
        why = why_acts(words, folders)
        if why is not None:
            return why
    return None


def found_env_files(project: Path, environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the `.env` files that a run may read.

    Whether the run ignores local files is unknown here, so both cases are covered.
    """
    every = env_files_of(project, environ, ignore_local=False)
    without_local = env_files_of(project, environ, ignore_local=True)
    return tuple(dict.fromkeys((*every, *without_local)))


def _why_env_file(path: Path) -> str | None:
    shown = clean_line(str(path))
    try:
        names = risky_variables(path)
    except OSError as error:
        return f"{shown} can't be read: {reason_of(error)}"
    if not names:
        return None
    return f"{shown} sets {visible_line(names[0][:60])}, which can change what a command runs"


def _why_environ(
    words: Sequence[PlainWord], folders: CommandFolders, environ: Mapping[str, str]
) -> str | None:
    name = program(words)
    if f"BASH_FUNC_{name}%%" in environ:
        return f"the environment has a function named {name}"
    for variable, value in environ.items():
        if variable in _LOADED or variable.startswith(_LOADED_PREFIX):
            entries = _entries(variable, value)
            if not all(folders.is_outside(entry or ".") for entry in entries):
                return f"{variable} refers to files of the project"
    if name == "git":
        for variable in sorted(environ):
            if variable.startswith("GIT_") and is_risky(variable):
                return f"{visible_line(variable[:60])} is set, which can change what git runs"
    if name == "rg" and "RIPGREP_CONFIG_PATH" in environ:
        return "RIPGREP_CONFIG_PATH is set, which can change what ripgrep runs"
    return None if name in _BUILTINS or name == "rg" else _why_path(name, folders, environ)


def _entries(variable: str, value: str) -> Iterable[str]:
    """Return the paths in a variable's value; "" means the current folder."""
    if variable in ("LD_PRELOAD", "LD_AUDIT"):  # the loader finds the others itself
        return (entry for entry in value.replace(":", " ").split() if "/" in entry)
    return [value] if variable == "BASH_ENV" else value.split(":")


def _why_path(name: str, folders: CommandFolders, environ: Mapping[str, str]) -> str | None:
    """Return why PATH may not lead to a program outside the project, as a clause.

    `name`: the command's name, which is looked up in PATH. The reason is that PATH finds a program
    in the project, or none. Returns None if PATH finds a program outside the project.
    """
    for entry in environ.get("PATH", os.defpath).split(":"):
        file = folders.folder / entry / name
        if not os.path.lexists(file):
            continue
        if not folders.is_outside(file.parent) or not folders.is_outside(file):
            return f"PATH finds a program `{name}` inside the project"
        if os.access(file, os.X_OK) and file.is_file():
            return None
    return f"PATH contains no program `{name}`"


def _why_git(words: Sequence[PlainWord], folders: CommandFolders) -> str | None:
    if program(words) != "git":
        return None
    looks = git_subcommand(words) in ("status", "diff")
    return why_not_read_only(folders.project, folders.folder, looks_at_files=looks)
