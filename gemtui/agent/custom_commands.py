"""Gemini CLI's custom commands: files `commands/NAME.toml`, typed as `/NAME`.

The CLI expands them itself, even in headless runs. See assets/gemini-cli.md#prompt.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gemtui.files import is_folder, read_small, resolved
from gemtui.paths import gemini_home

MOST = 500
"""The most files to read in each folder."""
_MOST_FOLDERS = 1000
"""The most folders to look into: a link may lead to a large part of the disk."""
_LARGEST = 200_000
_OTHER = re.compile(r"[^a-zA-Z0-9_\-.]")
_LONGEST_WORD = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomCommand:
    """A custom command.

    `name`: without the slash. `description`: taken from the file, so it is untrusted; may be "".
    `project`: whether the command belongs to the project. `runs_shell`: whether the prompt contains
    `!{...}`, a shell command that the CLI executes while expanding the prompt, if its policy allows
    that command.
    """

    name: str
    description: str
    project: bool
    runs_shell: bool


def custom_commands(folder: Path, environ: Mapping[str, str] = os.environ) -> list[CustomCommand]:
    """Return the commands of the user and of the project in `folder`, sorted by name.

    A project's command replaces the user's command of the same name. Commands from extensions and
    files the CLI would reject are left out.
    """
    own = gemini_home(environ) / "commands"
    places = ((own, False), (folder / ".gemini" / "commands", True))
    commands = {
        command.name: command
        for location, project in places
        for command in _below(location, project)
    }
    return sorted(commands.values(), key=lambda command: command.name)


def _below(folder: Path, project: bool) -> Iterator[CustomCommand]:
    for path in sorted(_files(folder))[:MOST]:
        try:
            values = tomllib.loads(read_small(path, _LARGEST).decode())
        except (OSError, ValueError, RecursionError):
            continue
        prompt, description = values.get("prompt"), values.get("description", "")
        if isinstance(prompt, str) and isinstance(description, str):
            yield CustomCommand(
                name=_name(path.relative_to(folder)),
                description=description,
                project=project,
                runs_shell="!{" in prompt,
            )


def _files(folder: Path) -> Iterator[Path]:
    """Yield the TOML files below a folder.

    Like the CLI, this follows links, but it enters each folder only once: links may form circles.
    """
    waiting = deque([folder])
    entered = set[Path]()
    while waiting and len(entered) < _MOST_FOLDERS:
        folder = waiting.popleft()
        real = resolved(folder)
        if real in entered:
            continue
        entered.add(real)
        with suppress(OSError), os.scandir(folder) as entries:
            for path in sorted(Path(entry.path) for entry in entries):
                if is_folder(path):
                    waiting.append(path)
                elif path.name.endswith(".toml"):
                    yield path


def _name(path: Path) -> str:
    """Return the command's name; for example, `git/commit.toml` is `git:commit`."""
    parts = (_OTHER.sub("_", word) for word in path.with_suffix("").parts)
    return ":".join(w if len(w) <= _LONGEST_WORD else f"{w[:47]}..." for w in parts)
