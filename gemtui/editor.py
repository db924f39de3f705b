"""Find the user's editor, and edit a string with it."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path, PureWindowsPath

from gemtui.errors import GemtuiError
from gemtui.files import read_small
from gemtui.processes import at_terminal, find_program

_PLUS_LINE = {"vi", "vim", "nvim", "nano", "emacs", "emacsclient", "micro", "kak", "joe", "ne"}
_COLON_LINE = {"hx", "helix", "subl", "zed"}
_GOTO = {"code", "code-insiders", "codium", "cursor"}
_LARGEST = 16_000_000
"""The largest file, in bytes, that is read back from an editor."""


class NoEditor(GemtuiError):
    """Raised if no editor is configured, or if the editor's command is invalid."""


def editor_command(
    setting: str, environ: Mapping[str, str], path: Path, line: int | None = None
) -> list[str]:
    """Return the command that opens `path` in the user's editor.

    `setting`: the command in gemtui's settings; if it is empty, $VISUAL or else $EDITOR is used.
    The command opens the file at `line` if the editor supports line numbers. Raises NoEditor, whose
    message says what to do.
    """
    chosen = setting or environ.get("VISUAL") or environ.get("EDITOR") or ""
    try:
        command = _words(chosen)
    except ValueError as error:
        raise NoEditor(f"the editor command {chosen!r} can't be parsed: {error}") from None
    if not command:
        raise NoEditor("no editor is set: export EDITOR, or set editor in gemtui's config file")
    return command + _place(command[0], path, line)


def _words(command: str) -> list[str]:
    """Split a command as a shell does; on Windows, where backslashes separate folders."""
    if sys.platform != "win32":
        return shlex.split(command)
    return [word.strip('"') for word in shlex.split(command, posix=False)]


def editor_program(word: str) -> str:
    """Return the path of an editor's executable, given the first word of its command.

    Raises NoEditor.
    """
    program = find_program(word)
    if program is None:
        raise NoEditor(
            f"the editor {word} was not found on PATH: install it, or choose another one"
        )
    return program


def _place(program: str, path: Path, line: int | None) -> list[str]:
    editor = PureWindowsPath(program).stem if sys.platform == "win32" else Path(program).name
    if line is not None and editor in _PLUS_LINE:
        return [f"+{line}", str(path)]
    if line is not None and editor in _COLON_LINE:
        return [f"{path}:{line}"]
    if line is not None and editor in _GOTO:
        return ["--goto", f"{path}:{line}"]
    return [str(path)]


def edited_text(
    text: str,
    name: str,
    *,
    setting: str,
    suspended: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> str:
    """Open a string in the user's editor, and return the edited string.

    `name`: the name of the temporary file that holds the string. `setting`: as in `editor_command`.
    `suspended`: returns a context manager within which the editor controls the terminal. Raises
    NoEditor, and GemtuiError or OSError if the editor failed or its result can't be read.
    """
    with tempfile.TemporaryDirectory(prefix="gemtui-") as folder:
        path = Path(folder) / name
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        command = editor_command(setting, os.environ, path)
        program = editor_program(command[0])
        with suspended():
            code = at_terminal(command, program=program)
        if code:
            raise GemtuiError(f"{command[0]} exited with {code}")
        left = read_small(path, _LARGEST)
    try:
        return left.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise GemtuiError("the file saved by the editor is not valid UTF-8") from None
