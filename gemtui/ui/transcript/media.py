"""Save and open attached images, sounds, videos, and PDFs."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from gemtui.errors import GemtuiError
from gemtui.files import resolved, write_new
from gemtui.paths import current_folder
from gemtui.processes import FOLDER, find_program
from gemtui.text import Clean, clean_line, short_path
from gemtui.transcript.media import MediaDamaged, decoded, file_name_of, image_words, media_type
from gemtui.transcript.model import Image
from gemtui.ui.kit.dialogs import AskScreen, Choice, ChooseScreen
from gemtui.ui.kit.keys import BY_ID
from gemtui.ui.kit.new_file import free_name, place_of, problem_of

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase


def with_one(app: AppBase, images: Sequence[Image], act: Callable[[AppBase, Image], None]) -> None:
    """Apply an action to the only image, or to one of several that the user chooses."""
    if len(images) == 1:
        act(app, images[0])
        return
    choices = [Choice(str(place), image_words(image)) for place, image in enumerate(images)]

    def chosen(place: str | None) -> None:
        if place is not None:
            act(app, images[int(place)])

    app.push_screen(ChooseScreen(Clean("Which one?"), (), choices), chosen)


def save(app: AppBase, image: Image) -> None:
    """Ask for a new file name, and write the content to that file."""
    path = Path(file_name_of(image))
    forbidden = resolved(app.start.home)

    def chosen(name: str | None) -> None:
        if name is not None:
            app.run_worker(_write(app, image, place_of(name)))

    screen = AskScreen(
        clean_line(f"Save {(image.name or 'it')[:60]} to a file in {short_path(current_folder())}"),
        value=free_name(path.stem, path.suffix),
        problem=lambda name: problem_of(name, forbidden=forbidden),
    )
    app.push_screen(screen, chosen)


async def _write(app: AppBase, image: Image, path: Path) -> None:
    try:
        await asyncio.to_thread(lambda: write_new(path, decoded(image)))
    except (GemtuiError, OSError) as error:
        app.say(f"Nothing was written: {error}", problem=True)
    else:
        app.say(f"Written: {short_path(path)}")


def open_image(app: AppBase, image: Image) -> None:
    """Open the content in the desktop's program for it, if its type is supported."""
    app.run_worker(_show(app, image))


async def _show(app: AppBase, image: Image) -> None:
    try:
        content = await asyncio.to_thread(decoded, image)
    except MediaDamaged as error:
        app.say(f"{error}.", problem=True)
        return
    try:
        if media_type(content) is None:
            raise NoViewer("Not opened: its content is not an image, sound, video or PDF")
        await asyncio.to_thread(show, file_name_of(image), content)
    except (NoViewer, OSError) as error:
        key = BY_ID["transcript.save_media"].footer()
        app.say(f"{error}; {key} saves it to a file.", problem=True)


_PATIENCE = 3.0
"""Seconds in which an opener may report a failure; after that, it counts as successful."""


class NoViewer(GemtuiError):
    """Raised if no program can show a file, or if the program failed."""


def opener(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> str:
    """Return the system's program for opening files. Raises NoViewer.

    A display is required, because without one `xdg-open` could start a program in this terminal.
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
    """Write a file into a private folder and open it; the folder is deleted at exit.

    `name`: a safe file name with the right suffix for `content`. Waits up to three seconds for the
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
