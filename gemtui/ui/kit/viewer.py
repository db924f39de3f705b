"""Show an image, a sound, a video or a PDF with the program that the desktop has for it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from gemtui.errors import GemtuiError
from gemtui.files import write_new
from gemtui.processes import FOLDER, find_program

_PATIENCE = 3.0
"""Seconds in which an opener says that it can't; one that is still there shows something."""


class NoViewer(GemtuiError):
    """Nothing here can show a file, or what is there failed."""


def opener(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> str:
    """Return the system's program that opens files: `open`, or `xdg-open` where there is a display.

    Without a display `xdg-open` could start a program in this terminal. Raises NoViewer.
    """
    mac = platform == "darwin"
    remote = "SSH_CONNECTION" in environ
    if remote if mac else not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")):
        raise NoViewer(f"No display to show it on{' over ssh' if remote else ''}")
    name = "open" if mac else "xdg-open"
    if (program := find_program(name, environ)) is None:
        raise NoViewer(f"{name}, which opens files, was not found on PATH")
    return program


def show(name: str, content: bytes) -> None:
    """Write a file into a private folder and open it; the folder goes when gemtui ends.

    `name`: a safe file name with the suffix of what `content` is. Waits up to three seconds for the
    opener to fail. Raises NoViewer and OSError.
    """
    program = opener()
    path = Path(tempfile.mkdtemp(dir=_folder().name)) / name
    write_new(path, content)
    nothing = subprocess.DEVNULL
    started = subprocess.Popen(
        [program, str(path)],
        stdin=nothing,
        stdout=nothing,
        stderr=nothing,
        cwd=FOLDER,
        start_new_session=True,
    )
    try:
        code = started.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        return
    if code:
        raise NoViewer(f"{Path(program).name} could not open it (exit code {code})")


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="gemtui-", ignore_cleanup_errors=True)
