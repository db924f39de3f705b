"""Running the user's editor in the terminal, to open a file or to edit text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from gemtui.editor import NoEditor, edited_text, editor_command, editor_program, written_file
from gemtui.errors import GemtuiError
from gemtui.processes import at_terminal

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase


def edit(app: AppBase, path: str, line: int | None, project: Path | None) -> None:
    """Open a file that a tool named in the user's editor, suspending the app."""
    try:
        place = written_file(path, project)
        words = editor_command(app.config.editor, os.environ, place, line)
        program = editor_program(words[0])
    except (GemtuiError, OSError) as error:
        app.say(str(error), problem=True)
    else:
        run_at_terminal(app, words, program, what="an editor")


def run_at_terminal(
    app: AppBase, words: Sequence[str], program: str, *, what: str, folder: Path | None = None
) -> None:
    """Run a program in the terminal while the app is suspended, and report failures.

    `words`: the command line; `program`: the path of its program. `what`: the program's kind, for
    terminals in which the app can't be suspended.
    """
    try:
        with app.suspend():
            code = at_terminal(words, program=program, folder=folder)
    except (GemtuiError, OSError) as error:
        app.say(str(error), problem=True)
    except SuspendNotSupported:
        app.say(f"This terminal can't run {what}.", problem=True)
    else:
        if code:
            app.say(f"{words[0]} ended with {code}", problem=True)


def edit_text(app: AppBase, text: str, name: str) -> str | None:
    """Open `text` in the user's editor and return the result; the app is suspended.

    `name`: the name of the temporary file that holds the text. Returns None if no editor is set, or
    none can run here. Raises GemtuiError or OSError if the editor failed or its result can't be
    read.
    """
    try:
        return edited_text(text, name, setting=app.config.editor, suspended=app.suspend)
    except (NoEditor, SuspendNotSupported):
        return None
