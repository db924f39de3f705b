"""Running the user's git tool in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gemtui.processes import find_program
from gemtui.ui.kit.editor import run_at_terminal

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase


def open_git_tool(app: AppBase, folder: Path) -> None:
    """Run the program from the setting `git_tool` in a folder, suspending the app."""
    words = app.config.git_tool
    program = find_program(words[0]) if words else None
    if program is None:
        name = words[0] if words else "git_tool"
        app.say(f"{name} was not found on PATH: set git_tool in gemtui's config file", problem=True)
    else:
        run_at_terminal(app, words, program, what="another program", folder=folder)
