"""Open attached images, sounds, videos and PDFs in the desktop's viewers."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from gemtui.errors import GemtuiError
from gemtui.files import write_new
from gemtui.processes import FOLDER, find_program
from gemtui.text import Clean
from gemtui.transcript.media import MediaDamaged, file_name_of, image_bytes, image_words, media_type
from gemtui.transcript.model import Image
from gemtui.ui.kit.dialogs import Choice, ChooseScreen

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase


def open_one(app: AppBase, images: Sequence[Image]) -> None:
    """Open the only image, or the one the user chooses, in the desktop's viewer."""
    if len(images) == 1:
        app.run_worker(_open(app, images[0]))
        return
    choices = [Choice(str(place), image_words(image)) for place, image in enumerate(images)]

    def chosen(place: str | None) -> None:
        if place is not None:
            app.run_worker(_open(app, images[int(place)]))

    app.push_screen(ChooseScreen(Clean("Which attachment?"), (), choices), chosen)


async def _open(app: AppBase, image: Image) -> None:
    """Open the content in a viewer; if its type isn't supported, show why not."""
    try:
        content = await asyncio.to_thread(image_bytes, image)
        if media_type(content) is None:
            raise NoViewer("Not opened, because it is not an image, sound, video or PDF")
        await asyncio.to_thread(open_content, file_name_of(image), content)
    except (MediaDamaged, NoViewer, OSError) as error:
        app.show_message(f"{error}.", problem=True)


_PATIENCE = 3.0
"""Seconds to wait for an opener to fail; after that, it counts as successful."""


class NoViewer(GemtuiError):
    """Raised if no program can show a file, or the program has failed."""


def opener(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> str:
    """Return the path of the system's program for opening files.

    Raises NoViewer if there is no such program or no display. Without a display, `xdg-open` could
    start a program in this terminal.
    """
    mac = platform == "darwin"
    remote = "SSH_CONNECTION" in environ
    if remote if mac else not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")):
        raise NoViewer(f"There is no display to show it on{' over ssh' if remote else ''}")
    name = "open" if mac else "xdg-open"
    if (program := find_program(name, environ)) is None:
        raise NoViewer(f"{name}, which opens files, was not found on PATH")
    return program


def open_content(name: str, content: bytes) -> None:
    """Write a file to a private folder and open it; the folder is deleted on exit.

    `name`: a safe file name with the right suffix for `content`. Waits up to three seconds for the
    opener to fail. Raises NoViewer and OSError.
    """
    program = opener()
    path = Path(tempfile.mkdtemp(dir=_folder().name)) / name
    write_new(path, content)
    nothing = subprocess.DEVNULL
    started = subprocess.Popen(
        [program, str(path)], stdin=nothing, stdout=nothing, stderr=nothing, cwd=FOLDER, start_new_session=True
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
