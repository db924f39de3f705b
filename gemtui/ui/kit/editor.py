"""Running the user's own programs in the terminal: the editor and the git tool."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from gemtui.calls.paths import written_file
from gemtui.editor import NoEditor, edited_text, editor_command, editor_program
from gemtui.processes import at_terminal, find_program

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase


def edit_file(app: AppBase, path: str, line: int | None, project: Path | None) -> None:
    """Suspend the app and open a file in the user's editor.

    `path`: the file's path as a tool call named it, absolute or relative to `project`. `line`:
    1-based line number, or None.
    """
    with app.reporting():
        file = written_file(path, project)
        command = editor_command(app.config.editor, os.environ, file, line)
        _run(app, command, editor_program(command[0]))


def _run(app: AppBase, words: Sequence[str], program: str, folder: Path | None = None) -> None:
    """Suspend the app, run a program in the terminal, and show a message if it fails.

    `words`: the command's name and arguments. `program`: the path of its executable. `folder`: the
    working directory.
    """
    try:
        with app.reporting():
            with app.suspend():
                code = at_terminal(words, program=program, folder=folder)
            if code:
                app.show_message(f"{words[0]} exited with code {code}", problem=True)
    except SuspendNotSupported:
        app.show_message("This terminal can't run another program.", problem=True)


def edit_text(app: AppBase, text: str, name: str) -> str | None:
    """Suspend the app, let the user edit `text`, and return the result.

    Returns None if no editor is set or the editor can't run here. Raises GemtuiError or OSError if
    the editor fails or its result can't be read. `name`: the name of the temporary file that holds
    the text.
    """
    try:
        return edited_text(text, name, setting=app.config.editor, suspended=app.suspend)
    except (NoEditor, SuspendNotSupported):
        return None


def open_git_tool(app: AppBase, folder: Path) -> None:
    """Suspend the app and run the user's git tool (setting `git_tool`) in a folder."""
    command = app.config.git_tool
    program = find_program(command[0]) if command else None
    if program is None:
        name = command[0] if command else "git_tool"
        app.show_message(
            f"{name} was not found on PATH. Set git_tool in gemtui's config file.", problem=True
        )
    else:
        _run(app, command, program, folder)
