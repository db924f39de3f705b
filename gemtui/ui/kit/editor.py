"""The command that opens a file in the user's editor."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from gemtui.errors import GemtuiError
from gemtui.files import is_file, is_there
from gemtui.processes import at_terminal, find_program

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase


_PLUS_LINE = {"vi", "vim", "nvim", "nano", "emacs", "emacsclient", "micro", "kak", "joe", "ne"}
_COLON_LINE = {"hx", "helix", "subl", "zed"}
_GOTO = {"code", "code-insiders", "codium", "cursor"}


class NoEditor(GemtuiError):
    """Neither the setting nor the environment names an editor, or it can't be understood."""


def editor_command(
    setting: str, environ: Mapping[str, str], path: Path, line: int | None = None
) -> list[str]:
    """Words to run: the setting, else $VISUAL, else $EDITOR, at `line` where the editor can.

    Raises NoEditor with the way out.
    """
    chosen = setting or environ.get("VISUAL") or environ.get("EDITOR") or ""
    try:
        words = shlex.split(chosen)
    except ValueError as error:
        raise NoEditor(f"the editor {chosen!r} can't be understood: {error}") from None
    if not words:
        raise NoEditor("no editor is set: export EDITOR, or set editor in gemtui's config file")
    return words + _place(Path(words[0]).name, path, line)


def editor_program(word: str) -> str:
    """Where the first word of an editor's command is. Raises NoEditor where it is not on PATH."""
    found = find_program(word)
    if found is None:
        raise NoEditor(f"the editor {word} was not found on PATH: install it, or set another one")
    return found


def _place(editor: str, path: Path, line: int | None) -> list[str]:
    if line is not None and editor in _PLUS_LINE:
        return [f"+{line}", str(path)]
    if line is not None and editor in _COLON_LINE:
        return [f"{path}:{line}"]
    if line is not None and editor in _GOTO:
        return ["--goto", f"{path}:{line}"]
    return [str(path)]


def written_file(path: str, project: Path | None) -> Path:
    """Where a file that a tool named is now; `path` may be relative to the project.

    Raises GemtuiError where it is gone or is no regular file.
    """
    place = Path(path) if project is None else project / path
    if not place.is_absolute():
        raise GemtuiError(f"{path} is relative, and the folder of this session is not known")
    if not is_there(place):
        raise GemtuiError(f"{place} is not there any more")
    if not is_file(place):
        raise GemtuiError(f"{place} is no regular file")
    return place


def edit(app: AppBase, path: str, line: int | None, project: Path | None) -> None:
    """Open a file that a tool named in the person's editor; the app sleeps meanwhile."""
    try:
        place = written_file(path, project)
        words = editor_command(app.config.editor, os.environ, place, line)
        program = editor_program(words[0])
        with app.suspend():
            code = at_terminal(words, program=program)
    except (GemtuiError, OSError) as error:
        app.say(str(error), problem=True)
    except SuspendNotSupported:
        app.say("This terminal can't be handed to an editor.", problem=True)
    else:
        if code:
            app.say(f"{words[0]} ended with {code}", problem=True)
